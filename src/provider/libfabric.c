/* libfabric.c - libfabric's functions, from the library that the system has when the first is
 * called.
 *
 * Only in the core of libstarling, which is carried to systems that may lack libfabric. The
 * header's other functions are inline and call through pointers that these return.
 */
#include <dlfcn.h>
#include <pthread.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

/* With the symbol versions that the header stands for. */
#define FUNCTIONS(X)                                                                               \
    X(fi_getinfo, "FABRIC_1.3")                                                                    \
    X(fi_freeinfo, "FABRIC_1.3")                                                                   \
    X(fi_dupinfo, "FABRIC_1.3")                                                                    \
    X(fi_fabric, "FABRIC_1.1")                                                                     \
    X(fi_strerror, "FABRIC_1.0")

static struct {
#define POINTER(name, version) __typeof__(name) *name;
    FUNCTIONS(POINTER)
#undef POINTER
    int opened;
} real;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_library(void) {
    void *library = dlopen("libfabric.so.1", RTLD_NOW);
    if (library == NULL)
        return;
    real.opened = 1;
#define LOOK_UP(name, version)                                                                     \
    real.name = (__typeof__(name) *)dlvsym(library, #name, version);                               \
    real.opened = real.opened && real.name != NULL;
    FUNCTIONS(LOOK_UP)
#undef LOOK_UP
}

static int is_open(void) {
    pthread_once(&once, open_library);
    return real.opened;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **info) {
    return is_open() ? real.fi_getinfo(version, node, service, flags, hints, info) : -FI_ENOSYS;
}

void fi_freeinfo(struct fi_info *info) {
    if (is_open())
        real.fi_freeinfo(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info) {
    return is_open() ? real.fi_dupinfo(info) : NULL;
}

int fi_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **fabric, void *context) {
    return is_open() ? real.fi_fabric(attributes, fabric, context) : -FI_ENOSYS;
}

const char *fi_strerror(int code) {
    return is_open()
               ? real.fi_strerror(code)
               : "libfabric is not installed (libfabric.so.1); install the package libfabric1 "
                 "or libfabric";
}

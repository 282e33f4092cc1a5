/* cublas.c - matrix products on a GPU, by cuBLAS, in single precision.
 *
 * Sessions, and agents without a network, multiply no matrices. So cuBLAS, which is large and slow
 * to open, is loaded with the first network, and the plug-in needs the driver alone. It is the
 * library of the toolkit that the plug-in was built with: that of STARLING_CUBLAS (a file), or of
 * the usual places. */
#include <assert.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda.h"
#include "gpu/launches.h"

/* The work space that cuBLAS takes on these GPUs by default. It is passed in, so that results do
 * not depend on what else runs. */
#define PRODUCT_BYTES ((size_t)32 << 20)
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define LIBRARY "libcublas.so." TEXT(CUBLAS_VER_MAJOR)

/* cublas_v2.h gives some of these names a suffix. */
#define FUNCTIONS(X)                                                                               \
    X(create, cublasCreate)                                                                        \
    X(set_math_mode, cublasSetMathMode)                                                            \
    X(set_atomics_mode, cublasSetAtomicsMode)                                                      \
    X(set_stream, cublasSetStream)                                                                 \
    X(set_workspace, cublasSetWorkspace)                                                           \
    X(multiply, cublasSgemm)                                                                       \
    X(multiply_all, cublasSgemmStridedBatched)                                                     \
    X(say, cublasGetStatusString)

/* Set at open, then constant, but for the stream. */
static struct {
#define DECLARE(field, function) __typeof__(function) *field;
    FUNCTIONS(DECLARE)
#undef DECLARE
    cublasHandle_t handle; /* NULL: it was not opened */
    cudaStream_t stream;
    void *space;
} cublas;

static bool check(cublasStatus_t result, const char *operation) {
    if (result != CUBLAS_STATUS_SUCCESS)
        cuda_remember(cublas.say(result), operation);
    return result == CUBLAS_STATUS_SUCCESS;
}

/* ---- opening ---- */

/* These make of single precision something else, behind the back of the settings below. */
static bool is_exact(char text[DEVICE_TEXT_MAX]) {
    static const char *const variables[] = {"NVIDIA_TF32_OVERRIDE",
                                            "CUBLAS_EMULATE_SINGLE_PRECISION"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL && value[0] != '\0' && strcmp(value, "0") != 0) {
            snprintf(text, DEVICE_TEXT_MAX,
                     "%s=%.40s in the environment lets cuBLAS round what it multiplies; unset it, "
                     "or set it to 0",
                     variables[i], value);
            return false;
        }
    }
    return true;
}

static void *load(char text[DEVICE_TEXT_MAX]) {
    const char *given = getenv("STARLING_CUBLAS");
    const bool is_given = given != NULL && given[0] != '\0';
    void *library = dlopen(is_given ? given : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        snprintf(text, DEVICE_TEXT_MAX,
                 "matrix products need cuBLAS: %.120s; install the CUDA Toolkit's, or name the "
                 "file " LIBRARY " in STARLING_CUBLAS",
                 dlerror());
    if (library == NULL && !is_given)
        library = dlopen("/usr/local/cuda/lib64/" LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool find_functions(void *library, char text[DEVICE_TEXT_MAX]) {
#define FIND(field, function) {(void **)&cublas.field, TEXT(function)},
    const struct {
        void **at;
        const char *name;
    } functions[] = {FUNCTIONS(FIND)};
#undef FIND
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if ((*functions[i].at = dlsym(library, functions[i].name)) == NULL) {
            snprintf(text, DEVICE_TEXT_MAX, "matrix products need cuBLAS: %.200s", dlerror());
            return false;
        }
    return true;
}

/* No TF32. cuBLAS fixes the order of sums by shape, and by how its arguments are aligned. */
static bool set_up(char text[DEVICE_TEXT_MAX]) {
    cublasStatus_t result = cublas.create(&cublas.handle);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = cublas.set_math_mode(cublas.handle, CUBLAS_DEFAULT_MATH);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = cublas.set_atomics_mode(cublas.handle, CUBLAS_ATOMICS_NOT_ALLOWED);
    if (result != CUBLAS_STATUS_SUCCESS) {
        snprintf(text, DEVICE_TEXT_MAX, "opening cuBLAS failed: %.200s", cublas.say(result));
        cublas.handle = NULL;
    }
    return result == CUBLAS_STATUS_SUCCESS;
}

size_t device_product_bytes(void) {
    return PRODUCT_BYTES;
}

bool device_open_products(void *space, char text[DEVICE_TEXT_MAX]) {
    void *library = is_exact(text) ? load(text) : NULL;
    cublas.space = space;
    cuda_stream(WORK); /* a new thread would open it on device 0 */
    return library != NULL && find_functions(library, text) && set_up(text);
}

/* ---- products ---- */

/* Setting the stream makes cuBLAS drop its work space. */
static void work_on(cudaStream_t stream) {
    if (stream == cublas.stream)
        return;
    cublas.stream = check(cublas.set_stream(cublas.handle, stream), "choosing cuBLAS's stream") &&
                            check(cublas.set_workspace(cublas.handle, cublas.space, PRODUCT_BYTES),
                                  "choosing cuBLAS's memory")
                        ? stream
                        : NULL;
}

/* cuBLAS is column-major. Row-major data is the transpose, and c^T = b^T a^T. A batch of one may
 * be split along k. */
void device_multiply(const device_product *p) {
    static const float zero = 0, one = 1;
    const cublasOperation_t b = p->b.turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                            a = p->a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int n = (int)p->n, m = (int)p->m, k = (int)p->k, b_line = (int)p->b.line,
              a_line = (int)p->a.line, c_line = (int)p->c_line;
    const float *kept = p->add ? &one : &zero;
    assert(cublas.handle != NULL);
    launches_count(LAUNCH_product);
    work_on(cuda_stream(WORK));
    if (p->count == 1)
        check(cublas.multiply(cublas.handle, b, a, n, m, k, &p->scale, p->b.at, b_line, p->a.at,
                              a_line, kept, p->c, c_line),
              "a matrix product");
    else
        check(cublas.multiply_all(cublas.handle, b, a, n, m, k, &p->scale, p->b.at, b_line,
                                  (long long)p->b.step, p->a.at, a_line, (long long)p->a.step, kept,
                                  p->c, c_line, (long long)p->c_step, (int)p->count),
              "a matrix product");
}

/* device.c - finds the plug-in and the device in it; see starling/device.h. */
#include "starling/device.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/backend.h"
#include "starling/text.h"
#include "starling/version.h"

enum { INDEX_MAX = 999, FOLDERS_MAX = 4 };
static const char plugin[] = "libstarling-cuda.so";

/* ---- the plug-in ---- */

/* The folder of the library that holds this function, as in a wheel. */
static bool find_own_folder(char folder[PATH_MAX]) {
    Dl_info own;
    char path[PATH_MAX];
    if (dladdr((const void *)plugin, &own) == 0 || own.dli_fname == NULL ||
        realpath(own.dli_fname, path) == NULL)
        return false;
    snprintf(folder, PATH_MAX, "%.*s", (int)(strrchr(path, '/') - path), path);
    return true;
}

/* Where the plug-in may be: in the build, in an installed tree that was moved, beside the library,
 * and where it was installed. Absolute paths; returns how many. */
static size_t plugin_folders(char folders[FOLDERS_MAX][PATH_MAX]) {
    static const char *const beside[] = {"/../gpu", "/" SL_PLUGIN_FROM_COMMAND};
    char program[PATH_MAX];
    size_t count = 0;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    for (size_t i = 0; i < sizeof beside / sizeof *beside && length > 0; i++) {
        char folder[PATH_MAX + 32];
        program[length] = '\0';
        snprintf(folder, sizeof folder, "%.*s%s", (int)(strrchr(program, '/') - program), program,
                 beside[i]);
        if (realpath(folder, folders[count]) != NULL)
            count++;
    }
    if (find_own_folder(folders[count]))
        count++;
    snprintf(folders[count++], PATH_MAX, "%s", SL_PLUGIN_FOLDER);
    return count;
}

/* STARLING_PLUGIN, or the first that can be read; false: `reason` lists the folders. */
static bool find_plugin(char path[PATH_MAX], char reason[SL_DEVICE_TEXT_MAX]) {
    const char *given = getenv("STARLING_PLUGIN");
    if (given != NULL && given[0] != '\0') {
        snprintf(path, PATH_MAX, "%s", given);
        return true;
    }
    char folders[FOLDERS_MAX][PATH_MAX];
    const size_t count = plugin_folders(folders);
    size_t used =
        (size_t)snprintf(reason, SL_DEVICE_TEXT_MAX, "there is no GPU plug-in: no %s in", plugin);
    for (size_t i = 0; i < count; i++) {
        if (snprintf(path, PATH_MAX, "%s/%s", folders[i], plugin) < PATH_MAX &&
            access(path, R_OK) == 0)
            return true;
        used += (size_t)snprintf(reason + used, SL_DEVICE_TEXT_MAX - used, "%s %.110s",
                                 i == 0 ? "" : ",", folders[i]);
    }
    snprintf(reason + used, SL_DEVICE_TEXT_MAX - used,
             "; build Starling where nvcc is, or set STARLING_PLUGIN");
    return false;
}

/* dlopen would wait for whoever writes to a pipe. */
static bool is_file(const char *path, char reason[SL_DEVICE_TEXT_MAX]) {
    sl_error error;
    const int fd = sl_file_open(path, &error);
    if (fd >= 0)
        close(fd);
    else
        snprintf(reason, SL_DEVICE_TEXT_MAX, "the GPU plug-in cannot be loaded: %.400s",
                 error.text);
    return fd >= 0;
}

/* NULL: reason. */
static const sl_backend *open_plugin(char reason[SL_DEVICE_TEXT_MAX]) {
    char path[PATH_MAX];
    if (!find_plugin(path, reason))
        return NULL;
    if (strchr(path, '/') != NULL && !is_file(path, reason))
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(reason, SL_DEVICE_TEXT_MAX, "the GPU plug-in cannot be loaded: %s", dlerror());
        return NULL;
    }
    sl_backend_entry_function *entry;
    *(void **)&entry = dlsym(library, SL_BACKEND_ENTRY);
    const sl_backend *backend = entry != NULL ? entry() : NULL;
    if (backend == NULL)
        snprintf(reason, SL_DEVICE_TEXT_MAX, "%.400s is no plug-in of Starling: it has no %s", path,
                 SL_BACKEND_ENTRY);
    else if (backend->abi != SL_BACKEND_ABI || backend->sizes != SL_BACKEND_SIZES)
        snprintf(reason, SL_DEVICE_TEXT_MAX,
                 "%.300s was built for another Starling (%.20s, interface %u); this is %s, "
                 "interface %u: build both together",
                 path, backend->abi == SL_BACKEND_ABI ? backend->version : "?", backend->abi,
                 sl_version(), SL_BACKEND_ABI);
    else
        return backend;
    dlclose(library);
    return NULL;
}

size_t sl_devices_list(sl_device_info *out, size_t max, char reason[SL_DEVICE_TEXT_MAX]) {
    reason[0] = '\0';
    const sl_backend *backend = open_plugin(reason);
    int count = backend != NULL ? backend->count(reason) : 0;
    for (int i = 0; i < count && (size_t)i < max; i++) {
        out[i] = (sl_device_info){.index = i};
        backend->describe(i, &out[i]);
    }
    return (size_t)count;
}

/* ---- a device by name ---- */

/* "cpu", "auto", "cuda", and no device's name */
enum { CPU = -1, AUTO = -2, ANY = -3, UNKNOWN = -4 };

static int index_of(const char *name) {
    static const char prefix[] = "cuda:";
    if (strcmp(name, "cpu") == 0)
        return CPU;
    if (strcmp(name, "auto") == 0)
        return AUTO;
    if (strcmp(name, "cuda") == 0)
        return ANY;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return UNKNOWN;
    const char *digits = name + sizeof prefix - 1;
    char *end;
    long index = strtol(digits, &end, 10);
    return *digits >= '0' && *digits <= '9' && *end == '\0' && index <= INDEX_MAX ? (int)index
                                                                                  : UNKNOWN;
}

int sl_device_check_name(const char *name, sl_error *error) {
    if (index_of(name) != UNKNOWN)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "device: \"%.60s\" is not allowed; it must be \"cpu\", \"cuda:N\" with the "
                   "number of a GPU, such as \"cuda:0\", \"cuda\" or \"auto\"",
                   name);
}

/* The backend, with *info the GPU to use of which the name says `index`; NULL: `reason`. */
static const sl_backend *find_gpu(int index, sl_device_info *info,
                                  char reason[SL_DEVICE_TEXT_MAX]) {
    const sl_backend *backend = open_plugin(reason);
    int count = backend != NULL ? backend->count(reason) : 0;
    if (count == 0)
        return NULL;
    if (index >= count) {
        if (count == 1)
            snprintf(reason, SL_DEVICE_TEXT_MAX, "the only GPU here is cuda:0");
        else
            snprintf(reason, SL_DEVICE_TEXT_MAX, "the GPUs here are cuda:0 to cuda:%d", count - 1);
        return NULL;
    }
    for (int i = index < 0 ? 0 : index; i < count; i++) {
        *info = (sl_device_info){.index = i};
        backend->describe(i, info);
        if (info->usable || index >= 0)
            break;
    }
    snprintf(reason, SL_DEVICE_TEXT_MAX, "%.500s", info->reason);
    return info->usable ? backend : NULL;
}

/* Fills the indices of usable GPUs; returns how many. */
static size_t find_usable(int usable[INDEX_MAX + 1]) {
    char reason[SL_DEVICE_TEXT_MAX];
    const sl_backend *backend = open_plugin(reason);
    const int count = backend != NULL ? backend->count(reason) : 0;
    size_t found = 0;
    for (int i = 0; i < count && i <= INDEX_MAX; i++) {
        sl_device_info info = {.index = i};
        backend->describe(i, &info);
        if (info.usable)
            usable[found++] = i;
    }
    return found;
}

void sl_device_place(char out[SL_DEVICE_NAME_MAX], const char *name, uint32_t place) {
    int usable[INDEX_MAX + 1];
    const size_t count = index_of(name) == ANY ? find_usable(usable) : 0;
    if (count > 0)
        snprintf(out, SL_DEVICE_NAME_MAX, "cuda:%d", usable[place % count]);
    else
        snprintf(out, SL_DEVICE_NAME_MAX, "%s", name);
}

/* Of "cuda". */
static void note_turns(char note[SL_DEVICE_TEXT_MAX]) {
    int usable[INDEX_MAX + 1];
    const size_t count = find_usable(usable);
    size_t used = (size_t)snprintf(note, SL_DEVICE_TEXT_MAX, "device cuda is ");
    for (size_t i = 0; i < count && used < SL_DEVICE_TEXT_MAX; i++)
        used += (size_t)snprintf(note + used, SL_DEVICE_TEXT_MAX - used, "%scuda:%d",
                                 i > 0 ? ", " : "", usable[i]);
    if (count > 1 && used < SL_DEVICE_TEXT_MAX)
        snprintf(note + used, SL_DEVICE_TEXT_MAX - used, " in turn, for the agents of this host");
}

static int refuse(const char *name, const char *reason, sl_error *error) {
    return sl_fail(error, SL_EDEVICE,
                   "device: %s cannot be used: %s; \"auto\" or \"cpu\" computes on the CPU", name,
                   reason);
}

int sl_device_find(const char *name, char note[SL_DEVICE_TEXT_MAX], sl_error *error) {
    char reason[SL_DEVICE_TEXT_MAX];
    int index = index_of(name);
    note[0] = '\0';
    if (index == UNKNOWN)
        return sl_device_check_name(name, error);
    if (index == CPU)
        return 0;
    const bool is_auto = index == AUTO;
    sl_device_info info;
    const sl_backend *backend = find_gpu(index, &info, reason);
    if (is_auto && backend == NULL)
        snprintf(note, SL_DEVICE_TEXT_MAX, "device auto is cpu: %.480s", reason);
    else if (is_auto)
        snprintf(note, SL_DEVICE_TEXT_MAX, "device auto is cuda:%d", info.index);
    else if (index == ANY && backend != NULL)
        note_turns(note);
    return backend != NULL || is_auto ? 0 : refuse(name, reason, error);
}

bool sl_device_describe(const char *name, sl_device_info *out) {
    char reason[SL_DEVICE_TEXT_MAX];
    sl_device_info info;
    int index = index_of(name);
    if (index == UNKNOWN || index == CPU || find_gpu(index, &info, reason) == NULL)
        return false;
    *out = info;
    return true;
}

int sl_device_open(const sl_vec_ops **out, const char *name, size_t memory_limit, sl_error *error) {
    char reason[SL_DEVICE_TEXT_MAX];
    int index = index_of(name);
    if (index == UNKNOWN)
        return sl_device_check_name(name, error);
    const bool is_auto = index == AUTO;
    sl_device_info info;
    const sl_backend *backend = index != CPU ? find_gpu(index, &info, reason) : NULL;
    if (index == CPU || (is_auto && backend == NULL)) {
        *out = sl_vec_cpu();
        return 0;
    }
    const sl_vec_ops *vec =
        backend != NULL ? backend->open(info.index, memory_limit, reason) : NULL;
    if (vec == NULL)
        return refuse(name, reason, error);
    *out = vec;
    return 0;
}

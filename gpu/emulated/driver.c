/* driver.c - of a driver, what shares memory between processes (gpu/driver.h): a memfd is the
 * memory, mapped over the devices' range of addresses, so that kernels of several processes see it.
 *
 * In the environment: STARLING_OLD_DRIVER: it lacks these functions; STARLING_NO_PEERS: it gives no
 * access to what another process has made. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/driver.h"
#include "gpu/emulated/fake.h"

enum { UNIT = 2 << 20, INVALID = 1, NOT_SUPPORTED = 801 };

static _Thread_local bool imports; /* the handle of the latest call was imported */

static driver_result cuMemGetAllocationGranularity(size_t *bytes, const driver_properties *of,
                                                   int option) {
    (void)of, (void)option;
    *bytes = UNIT;
    return 0;
}

/* A handle is a descriptor. */
static driver_result cuMemCreate(driver_handle *out, size_t bytes, const driver_properties *of,
                                 unsigned long long flags) {
    (void)flags;
    const int file = of->handles == DRIVER_BY_DESCRIPTOR && bytes % UNIT == 0
                         ? memfd_create("device memory", MFD_CLOEXEC)
                         : -1;
    if (file < 0)
        return INVALID;
    imports = false;
    *out = (driver_handle)file;
    return ftruncate(file, (off_t)bytes) == 0 ? 0 : DRIVER_OUT_OF_MEMORY;
}

static driver_result cuMemRelease(driver_handle handle) {
    return close((int)handle) == 0 ? 0 : INVALID;
}

static driver_result cuMemExportToShareableHandle(void *out, driver_handle handle, int type,
                                                  unsigned long long flags) {
    (void)flags;
    const int copy = type == DRIVER_BY_DESCRIPTOR ? fcntl((int)handle, F_DUPFD_CLOEXEC, 0) : -1;
    memcpy(out, &copy, sizeof copy);
    return copy >= 0 ? 0 : INVALID;
}

static driver_result cuMemImportFromShareableHandle(driver_handle *out, void *descriptor,
                                                    int type) {
    const int file = (int)(intptr_t)descriptor,
              copy = type == DRIVER_BY_DESCRIPTOR ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;
    *out = (driver_handle)copy;
    imports = true;
    return copy >= 0 ? 0 : INVALID;
}

static driver_result cuMemAddressReserve(driver_address *out, size_t bytes, size_t alignment,
                                         driver_address wanted, unsigned long long flags) {
    (void)alignment, (void)wanted, (void)flags;
    *out = (driver_address)(uintptr_t)fake_reserve(bytes);
    return *out != 0 ? 0 : DRIVER_OUT_OF_MEMORY;
}

static driver_result cuMemAddressFree(driver_address at, size_t bytes) {
    (void)bytes;
    fake_give_back_addresses((void *)(uintptr_t)at);
    return 0;
}

static driver_result cuMemMap(driver_address at, size_t bytes, size_t offset, driver_handle handle,
                              unsigned long long flags) {
    (void)flags;
    struct stat is;
    if (offset != 0 || fstat((int)handle, &is) != 0 || (size_t)is.st_size < bytes)
        return INVALID;
    return fake_map((void *)(uintptr_t)at, bytes, (int)handle) ? 0 : INVALID;
}

static driver_result cuMemSetAccess(driver_address at, size_t bytes, const driver_access *of,
                                    size_t count) {
    (void)at, (void)bytes, (void)of, (void)count;
    return imports && getenv("STARLING_NO_PEERS") != NULL ? NOT_SUPPORTED : 0;
}

static driver_result cuMemUnmap(driver_address at, size_t bytes) {
    return fake_map((void *)(uintptr_t)at, bytes, -1) ? 0 : INVALID;
}

static driver_result cuGetErrorString(driver_result result, const char **out) {
    *out = result == NOT_SUPPORTED          ? "operation not supported"
           : result == DRIVER_OUT_OF_MEMORY ? "out of memory"
                                            : "invalid argument";
    return 0;
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found) {
    (void)flags;
    *out = NULL;
#define NAME_IT(call, parameters)                                                                  \
    if (strcmp(name, #call) == 0)                                                                  \
        *out = (void *)call;
    SL_DRIVER_CALLS(NAME_IT)
    if (getenv("STARLING_OLD_DRIVER") != NULL)
        *out = NULL;
    *found = *out != NULL ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

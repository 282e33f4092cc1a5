/* cuda_share.c - device memory that other processes of this host map: what its owner writes, their
 * kernels read where it is, over NVLink or PCIe, or on the same GPU. It is there until its owner
 * and all who have mapped it are gone, however they go.
 *
 * The functions are the driver's, which the runtime finds: the plug-in is linked to none. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu/cuda.h"
#include "gpu/driver.h"

enum { DRIVER_VERSION = 12000 }; /* the oldest that the plug-in runs with knows all */

#define DECLARE(name, parameters) driver_result(*name) parameters;
static struct { SL_DRIVER_CALLS(DECLARE) } driver;

struct device_share {
    driver_address at;
    size_t bytes; /* a multiple of the granularity */
};

static bool find_call(const char *name, void **out) {
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t result =
        cudaGetDriverEntryPointByVersion(name, out, DRIVER_VERSION, cudaEnableDefault, &found);
#else
    const cudaError_t result = cudaGetDriverEntryPoint(name, out, cudaEnableDefault, &found);
#endif
    if (result != cudaSuccess)
        cudaGetLastError();
    return result == cudaSuccess && found == cudaDriverEntryPointSuccess && *out != NULL;
}

static bool find_calls(char text[DEVICE_TEXT_MAX]) {
    bool good = true;
#define FIND(name, parameters) good = good && find_call(#name, (void **)&driver.name);
    SL_DRIVER_CALLS(FIND)
    if (!good)
        snprintf(text, DEVICE_TEXT_MAX, "this driver cannot share memory of the GPU");
    return good;
}

static bool succeeds(driver_result result, const char *operation, char text[DEVICE_TEXT_MAX]) {
    const char *meaning = NULL;
    if (result == 0)
        return true;
    driver.cuGetErrorString(result, &meaning);
    snprintf(text, DEVICE_TEXT_MAX, "%s: %s", operation,
             meaning != NULL ? meaning : "unknown error");
    return false;
}

static driver_properties properties(void) {
    return (driver_properties){.type = DRIVER_PINNED,
                               .handles = DRIVER_BY_DESCRIPTOR,
                               .place = {DRIVER_ON_DEVICE, cuda_chosen()}};
}

/* Rounds up as the driver wants it. */
static bool round_up(size_t *bytes, char text[DEVICE_TEXT_MAX]) {
    size_t unit = 0;
    const driver_properties of = properties();
    if (!succeeds(driver.cuMemGetAllocationGranularity(&unit, &of, 0), "asking for its unit", text))
        return false;
    *bytes = (*bytes + unit - 1) / unit * unit;
    return true;
}

static device_share *map(driver_handle handle, size_t bytes, int allowed,
                         char text[DEVICE_TEXT_MAX]) {
    device_share *s = calloc(1, sizeof *s);
    const driver_access access = {{DRIVER_ON_DEVICE, cuda_chosen()}, allowed};
    if (s == NULL)
        snprintf(text, DEVICE_TEXT_MAX, "out of memory");
    else if (!succeeds(driver.cuMemAddressReserve(&s->at, bytes, 0, 0, 0), "taking addresses",
                       text))
        s->at = 0;
    else if (succeeds(driver.cuMemMap(s->at, bytes, 0, handle, 0), "mapping", text)) {
        s->bytes = bytes;
        if (succeeds(driver.cuMemSetAccess(s->at, bytes, &access, 1), "access from this GPU", text))
            return s;
    }
    if (s != NULL && s->bytes > 0)
        driver.cuMemUnmap(s->at, bytes);
    if (s != NULL && s->at != 0)
        driver.cuMemAddressFree(s->at, bytes);
    free(s);
    return NULL;
}

device_share *device_share_open(size_t bytes, int *descriptor, char text[DEVICE_TEXT_MAX]) {
    driver_handle handle = 0;
    device_share *s = NULL;
    const driver_properties of = properties();
    cuda_lane();
    if (!find_calls(text) || !round_up(&bytes, text) ||
        !succeeds(driver.cuMemCreate(&handle, bytes, &of, 0), "taking memory", text))
        return NULL;
    if (succeeds(driver.cuMemExportToShareableHandle(descriptor, handle, DRIVER_BY_DESCRIPTOR, 0),
                 "exporting", text)) {
        s = map(handle, bytes, DRIVER_READ_WRITE, text);
        if (s == NULL)
            close(*descriptor);
    }
    driver.cuMemRelease(handle); /* what is mapped, or has a descriptor, stays */
    return s;
}

device_share *device_share_map(int descriptor, size_t bytes, char text[DEVICE_TEXT_MAX]) {
    driver_handle handle = 0;
    cuda_lane();
    if (!find_calls(text) || !round_up(&bytes, text) ||
        !succeeds(driver.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor,
                                                        DRIVER_BY_DESCRIPTOR),
                  "importing", text))
        return NULL;
    device_share *s = map(handle, bytes, DRIVER_READ, text);
    if (s == NULL) /* GPUs that cannot write to each other cannot always only read */
        s = map(handle, bytes, DRIVER_READ_WRITE, text);
    driver.cuMemRelease(handle);
    return s;
}

void *device_share_memory(const device_share *share) {
    return (void *)(uintptr_t)share->at;
}

void device_share_close(device_share *share) {
    if (share == NULL)
        return;
    cuda_await(cuda_stream(WORK), "a kernel or copy");
    cuda_await(cuda_stream(OUT), "a copy from the device");
    driver.cuMemUnmap(share->at, share->bytes);
    driver.cuMemAddressFree(share->at, share->bytes);
    free(share);
}

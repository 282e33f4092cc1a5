/* cuda_devices.c - which GPUs there are, and why there is none. */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cuda.h"

enum { CAPABILITY_MAJOR_MIN = 8 };

/* Why there is no GPU; a list of those that this process may see may name none that is there: an
 * index, the UUID of a GPU or of a part of one (MIG). */
static void explain_none(cudaError_t result, char text[DEVICE_TEXT_MAX]) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const bool none = result == cudaSuccess || result == cudaErrorNoDevice;
    if (result == cudaErrorInsufficientDriver)
        snprintf(text, DEVICE_TEXT_MAX, "no NVIDIA driver, or one that is older than CUDA %d",
                 CUDART_VERSION / 1000);
    else if (none && visible != NULL)
        snprintf(
            text, DEVICE_TEXT_MAX,
            "no NVIDIA GPU that CUDA_VISIBLE_DEVICES=\"%.100s\" names; \"nvidia-smi -L\" lists "
            "indices and UUIDs, those of MIG parts too",
            visible);
    else
        snprintf(text, DEVICE_TEXT_MAX, "%s", none ? "no NVIDIA GPU" : cudaGetErrorString(result));
}

int device_count(char text[DEVICE_TEXT_MAX]) {
    int count = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (result == cudaSuccess && count > 0)
        return count;
    explain_none(result, text);
    return 0;
}

bool device_describe(int index, device_properties *out, char text[DEVICE_TEXT_MAX]) {
    struct cudaDeviceProp p;
    int version = 0;
    cudaError_t result = cudaGetDeviceProperties(&p, index);
    if (result == cudaSuccess)
        result = cudaRuntimeGetVersion(&version);
    if (result != cudaSuccess) {
        cudaGetLastError();
        snprintf(text, DEVICE_TEXT_MAX, "cuda:%d: %s", index, cudaGetErrorString(result));
        return false;
    }
    snprintf(out->name, sizeof out->name, "%s", p.name);
    out->major = p.major;
    out->minor = p.minor;
    out->bytes = p.totalGlobalMem;
    out->emulated = version == 0; /* the runtime of tests (emulated/) */
    if (p.major < CAPABILITY_MAJOR_MIN)
        snprintf(text, DEVICE_TEXT_MAX,
                 "cuda:%d (%.100s) has compute capability %d.%d; %d.0 or more is needed", index,
                 p.name, p.major, p.minor, CAPABILITY_MAJOR_MIN);
    return p.major >= CAPABILITY_MAJOR_MIN;
}

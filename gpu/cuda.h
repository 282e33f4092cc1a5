/* cuda.h - what the files of the GPU's plug-in share: cuda.cu offers it. */
#ifndef SL_GPU_CUDA_H
#define SL_GPU_CUDA_H

#include <cuda_runtime_api.h>

#include "gpu/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stream of the calling thread's operations. */
cudaStream_t cuda_work(void);
/* The operation has failed, for device_status. Both texts are kept as they are, not copied. */
void cuda_remember(const char *what, const char *operation);

#ifdef __cplusplus
}
#endif
#endif

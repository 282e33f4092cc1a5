/* cuda.cu - the kernels of kernels.h and layer_kernels.h on an NVIDIA GPU: all that is for nvcc.
 * cuda_launch.c launches them. */
#include <cuda_runtime.h>

#include "gpu/cuda.h"

/* On each multiprocessor: so a thread has at most 64 registers, whichever compiler chooses. */
enum { BLOCKS_AT_ONCE = 4 };

#define DEFINE_KERNEL(name)                                                                        \
    static __global__ __launch_bounds__(BLOCK_THREADS, BLOCKS_AT_ONCE) void kernel_##name(         \
        const __grid_constant__ name##_args arguments, size_t threads) {                           \
        const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;                            \
        if (i < threads)                                                                           \
            name(&arguments, i);                                                                   \
    }
SL_KERNELS(DEFINE_KERNEL)
SL_LAYER_KERNELS(DEFINE_KERNEL)

#define DEFINE_BLOCK_KERNEL(name)                                                                  \
    static __global__ __launch_bounds__(BLOCK_THREADS, BLOCKS_AT_ONCE) void kernel_##name(         \
        const __grid_constant__ name##_args arguments) {                                           \
        __shared__ name##_memory memory;                                                           \
        const block_place at = {threadIdx.x, blockIdx.x, gridDim.x};                               \
        SL_UNROLL(8)                                                                               \
        for (uint32_t phase = 0; phase < name##_PHASES; phase++) {                                 \
            name(&arguments, &memory, at, phase);                                                  \
            __syncthreads();                                                                       \
        }                                                                                          \
    }
SL_BLOCK_KERNELS(DEFINE_BLOCK_KERNEL)
SL_LAYER_BLOCK_KERNELS(DEFINE_BLOCK_KERNEL)

const void *cuda_kernel(launch kernel) {
#define CASE(name)                                                                                 \
    case LAUNCH_##name:                                                                            \
        return (const void *)kernel_##name;
    switch (kernel) {
        SL_KERNELS(CASE)
        SL_LAYER_KERNELS(CASE)
        SL_BLOCK_KERNELS(CASE)
        SL_LAYER_BLOCK_KERNELS(CASE)
    case LAUNCH_product:
    case LAUNCH_graph:
    case LAUNCHES:
        break;
    }
    return NULL;
}

void device_expect(const void *memory) {
    (void)memory; /* a GPU faults */
}

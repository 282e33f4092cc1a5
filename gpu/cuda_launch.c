/* cuda_launch.c - launches of a GPU's kernels: all of the lists in kernels.h and layer_kernels.h.
 */
#include "gpu/cuda.h"

/* Failures say "launching NAME". */
static void give(launch kernel, const char *launching, size_t blocks, void **arguments) {
    launches_count(kernel);
    const cudaError_t result =
        cudaLaunchKernel(cuda_kernel(kernel), (dim3){(unsigned)blocks, 1, 1},
                         (dim3){BLOCK_THREADS, 1, 1}, arguments, 0, cuda_stream(WORK));
    if (!cuda_check(result, launching))
        cudaGetLastError();
}

#define DEFINE_LAUNCH(name)                                                                        \
    void launch_##name(const name##_args *arguments, size_t threads) {                             \
        if (threads > 0)                                                                           \
            give(LAUNCH_##name, "launching " #name, ceiling(threads, BLOCK_THREADS),               \
                 (void *[]){(void *)arguments, &threads});                                         \
    }
SL_KERNELS(DEFINE_LAUNCH)
SL_LAYER_KERNELS(DEFINE_LAUNCH)

#define DEFINE_BLOCK_LAUNCH(name)                                                                  \
    void launch_##name(const name##_args *arguments, uint32_t blocks) {                            \
        if (blocks > 0)                                                                            \
            give(LAUNCH_##name, "launching " #name, blocks, (void *[]){(void *)arguments});        \
    }
SL_BLOCK_KERNELS(DEFINE_BLOCK_LAUNCH)
SL_LAYER_BLOCK_KERNELS(DEFINE_BLOCK_LAUNCH)

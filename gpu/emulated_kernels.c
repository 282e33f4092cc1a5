/* emulated_kernels.c - all kernels on the host, for the emulated device and the CUDA runtime of
 * tests. */
#include "gpu/emulated_kernels.h" /* before the kernels */

#include <assert.h>

#include "gpu/launches.h"

SL_KERNELS(DEFINE_SHARE)
SL_LAYER_KERNELS(DEFINE_SHARE)
SL_BLOCK_KERNELS(DEFINE_BLOCK_SHARE)
SL_LAYER_BLOCK_KERNELS(DEFINE_BLOCK_SHARE)

#define CHECK_BYTES(kernel)                                                                        \
    static_assert(sizeof(kernel##_args) <= HOST_KERNEL_BYTES_MAX, "the arguments of " #kernel);
SL_KERNELS(CHECK_BYTES)
SL_LAYER_KERNELS(CHECK_BYTES)
SL_BLOCK_KERNELS(CHECK_BYTES)
SL_LAYER_BLOCK_KERNELS(CHECK_BYTES)

#define ROW(kernel) [LAUNCH_##kernel] = {#kernel, sizeof(kernel##_args), false, share_##kernel},
#define BLOCK_ROW(kernel)                                                                          \
    [LAUNCH_##kernel] = {#kernel, sizeof(kernel##_args), true, share_##kernel},
const host_kernel host_kernels[LAUNCHES] = {SL_KERNELS(ROW) SL_LAYER_KERNELS(ROW) SL_BLOCK_KERNELS(
    BLOCK_ROW) SL_LAYER_BLOCK_KERNELS(BLOCK_ROW)};

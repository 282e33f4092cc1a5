/* kernels.h - the kernels of vectors and compressors. A kernel is the work of one thread: a
 * function of its arguments and the thread's index.
 *
 * nvcc compiles the list below into GPU kernels (cuda.cu), and the C compiler into loops over the
 * index (emulated/kernels.c), so that tests without a GPU run all of it. Threads of one launch
 * share atomic integers only, whose results do not depend on order. Each floating-point sum is
 * computed by one thread, in the CPU's order. So both give the CPU's bits.
 *
 * Kernel NAME has arguments of type NAME_args and a body NAME(const NAME_args *, size_t i), for i
 * in [0, threads). SL_BLOCK_KERNELS lists those whose threads work together (block.h). */
#ifndef SL_KERNELS_H
#define SL_KERNELS_H

#include "gpu/kernels_buckets.h"
#include "gpu/kernels_codes.h"
#include "gpu/kernels_entries.h"
#include "gpu/kernels_listed.h"
#include "gpu/kernels_sparse.h"
#include "gpu/kernels_vector.h"

/* By hand: clang-format moves a name to the next line each time that it runs. */
/* clang-format off */
#define SL_KERNELS(X)                                                                              \
    X(combine_four) X(step_four) X(adam_one) X(fill_four) X(keep_one) X(fold_tiles)                \
    X(sum_of_folds) X(find_largest) X(bucket_scale) X(place_scales) X(add_eight) X(keep_digit)     \
    X(settle_ties) X(take_top) X(list_word) X(gather_entry) X(gather_word) X(place_indices)        \
    X(place_bitmap) X(count_parts) X(begin_draw) X(draw_block) X(advance_draw) X(finish_draw)      \
    X(settle_subset) X(mark_kept) X(add_entries) X(load_bitmap) X(add_words) X(entry_lanes)        \
    X(sign_entry) X(begin_mark) X(begin_shares) X(list_marks) X(place_marks) X(add_marks)

#define SL_BLOCK_KERNELS(X)                                                                        \
    X(encode_eight) X(encode_buckets) X(tile_sums) X(bucket_tiles) X(count_digits) X(mark_top)     \
    X(scan_groups) X(scan_counts) X(mark_drawn) X(share_sums) X(share_more) X(entry_mean)
/* clang-format on */

#endif

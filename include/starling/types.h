/* types.h - small types and limits that several settings share. */
#ifndef STARLING_TYPES_H
#define STARLING_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define SL_NAME_MAX 64
#define SL_PATH_MAX 1024
#define SL_NODES_MAX 1000000u /* of a run */

/* A choice that Starling makes unless the experiment does. */
typedef enum sl_switch { SL_SWITCH_AUTO, SL_SWITCH_ON, SL_SWITCH_OFF } sl_switch;

#define SL_COUNT_AUTO UINT64_MAX /* a number that Starling chooses */

#define SL_ROWS_NUMBERS_MAX 1024
/* A list of lists of numbers, all of one length. */
typedef struct sl_number_rows {
    size_t rows, columns;
    double values[SL_ROWS_NUMBERS_MAX]; /* (rows, columns) */
} sl_number_rows;

#define SL_COUNTS_MAX 4096
/* A number for each rank; none: the same for all. */
typedef struct sl_counts {
    size_t count;
    uint32_t values[SL_COUNTS_MAX];
} sl_counts;

/* The same of real numbers. */
typedef struct sl_reals {
    size_t count;
    double values[SL_COUNTS_MAX];
} sl_reals;

#define SL_SETS_MAX 512
/* Sets of ranks, one behind the other. */
typedef struct sl_rank_sets {
    size_t count;
    size_t ends[SL_SETS_MAX];
    uint32_t ranks[SL_COUNTS_MAX];
} sl_rank_sets;

/* Elements of a vector. */
typedef struct sl_range {
    size_t from, count;
} sl_range;

/* What a flat vector is made of: tensors, one behind the other. Each is a matrix, row by row; one
 * of a single row is a plain vector. */
typedef struct sl_shapes {
    size_t dimension;
    const size_t *ends; /* (count) where each tensor ends, rising; NULL: it is one tensor */
    const size_t *rows; /* (count) of each; NULL: 1 */
    size_t count;
} sl_shapes;

#ifdef __cplusplus
extern "C" {
#endif

/* Who hears how far a gradient is: g is final from element `from` on, where a tensor begins, and x
 * is not read there any more. First of all with the dimension: the loss is known. On the thread
 * that computes. */
typedef struct sl_progress {
    void (*tell)(void *context, double loss, size_t from); /* from: falling, above 0 */
    void *context;
} sl_progress;

/* Who hears how far something is that takes long: the share that is done, as well as it can be
 * told, from 0 to 1; from 0 again where another part begins. On the thread that computes. */
typedef struct sl_watch {
    void (*tell)(void *context, double share);
    void *context;
} sl_watch;

#ifdef __cplusplus
}
#endif

#endif

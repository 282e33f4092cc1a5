/* data.h - data sets, and how their samples are dealt to nodes: settings. */
#ifndef STARLING_DATA_H
#define STARLING_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "starling/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows: enum suffix, name in an experiment and of the reader. */
#define SL_DATA_SETS(X)                                                                            \
    X(DIGITS, digits)                                                                              \
    X(MNIST, mnist)                                                                                \
    X(CIFAR10, cifar10)                                                                            \
    X(LIBSVM, libsvm)                                                                              \
    X(TEXT, text)                                                                                  \
    X(CSV, csv)                                                                                    \
    X(NUMPY, numpy)
typedef enum sl_data_kind {
#define SL_DATA_ENUM(kind, name) SL_DATA_##kind,
    SL_DATA_SETS(SL_DATA_ENUM)
#undef SL_DATA_ENUM
} sl_data_kind;

#define SL_PARTITIONS(X)                                                                           \
    X(IID, "iid")                                                                                  \
    X(SHARDS, "shards")                                                                            \
    X(DIRICHLET, "dirichlet")                                                                      \
    X(SPEAKERS, "speakers")                                                                        \
    X(LISTED, "listed")
typedef enum sl_partition_kind {
#define SL_PARTITION_ENUM(kind, name) SL_PARTITION_##kind,
    SL_PARTITIONS(SL_PARTITION_ENUM)
#undef SL_PARTITION_ENUM
} sl_partition_kind;

/* Whose members change: shares stay with their ranks, or follow the members. */
typedef enum sl_on_change { SL_ON_CHANGE_KEEP, SL_ON_CHANGE_SHARE } sl_on_change;

typedef struct sl_data_config {
    sl_data_kind kind;
    char path[SL_PATH_MAX];      /* mnist, cifar10: folder; numpy: folder or file; else a file */
    char test_path[SL_PATH_MAX]; /* libsvm, csv, numpy: held-out samples; empty: the last fifth, or
                                    numpy's own, are held out */
    char label[SL_NAME_MAX];     /* csv: "last", "first", a column's name or number from 1 */
    uint32_t train_samples, test_samples; /* 0: all (digits: 12000 and 2000) */
    uint32_t batch;
    uint32_t sequence; /* text: characters of a sample */
    bool real_labels;  /* labels are numbers, not classes; the learner says so */
    sl_partition_kind partition;
    uint32_t shards_per_node; /* shards */
    double alpha;             /* dirichlet */
    char owners[SL_PATH_MAX]; /* listed: file with the node of each training sample */
    sl_on_change on_change;
    sl_switch standardise; /* divide pixels by their channel's deviation? auto: for lenet5 and
                              resnet20 */
    sl_switch augment;     /* shift and mirror training images? auto: for resnet20 */
} sl_data_config;

#ifdef __cplusplus
}
#endif
#endif

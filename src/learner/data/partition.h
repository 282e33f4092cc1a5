/* partition.h - which node owns which training sample, and the batches that it draws from them.
 *
 * Both are pure functions of the seed: the partition of (seed), a batch of (seed, rank, round). A
 * node walks through its samples in an order that is shuffled afresh every epoch; only the latest
 * order of each node is kept, as a cache.
 */
#ifndef SL_LEARNER_PARTITION_H
#define SL_LEARNER_PARTITION_H

#include "learner/data/samples.h"
#include "starling/data.h"
#include "starling/error.h"

typedef struct sl_partition {
    uint32_t nodes;
    uint64_t seed;
    uint32_t *members; /* (samples) sample indices, node after node */
    uint32_t *starts;  /* (nodes + 1) node i owns members[starts[i]] to members[starts[i + 1]] */
    uint32_t *order;   /* (samples) each node's members, shuffled for its cached epoch */
    uint64_t *epochs;  /* (nodes) which epoch `order` holds, plus one; 0: none */
} sl_partition;

int sl_partition_open(sl_partition *out, const sl_data_config *config, const sl_samples *samples,
                      uint32_t nodes, uint64_t seed, sl_error *error);
void sl_partition_close(sl_partition *partition);

uint32_t sl_partition_size(const sl_partition *partition, uint32_t rank);
/* The samples of rank's batch in `round` (from 1): min(batch, size) of them; *indices is borrowed
 * until the next call. */
uint32_t sl_partition_batch(sl_partition *partition, uint32_t rank, uint64_t round, uint32_t batch,
                            const uint32_t **indices);

#endif

/* partition.h - which node owns which training sample, and the batches that it draws from them.
 *
 * Both are pure functions: the partition of the seed, a batch of (seed, rank, round). Each epoch
 * shuffles a node's samples anew. Only the latest order of each node is cached.
 */
#ifndef SL_LEARNER_PARTITION_H
#define SL_LEARNER_PARTITION_H

#include "learner/data/samples.h"
#include "starling/data.h"
#include "starling/error.h"

typedef struct sl_partition {
    uint32_t nodes; /* with the joiners */
    uint64_t seed;
    uint32_t *members; /* sample indices, node after node */
    uint32_t *starts;  /* (nodes + 1) node i owns members[starts[i]] to members[starts[i + 1]] */
    uint32_t *order;   /* each node's members, shuffled for its cached epoch */
    uint64_t *epochs;  /* (nodes) 1 + the epoch that `order` holds; 0: none */
} sl_partition;

/* Of nodes, and of joiners behind them, each of whom owns all samples. */
int sl_partition_open(sl_partition *out, const sl_data_config *config, const sl_samples *samples,
                      uint32_t nodes, uint32_t joiners, uint64_t seed, sl_error *error);
void sl_partition_close(sl_partition *partition);

uint32_t sl_partition_size(const sl_partition *partition, uint32_t rank);
/* Sets *indices to the samples of rank's batch in `round` (from 1), borrowed until the next call.
 * Returns how many they are: min(batch, size). */
uint32_t sl_partition_batch(sl_partition *partition, uint32_t rank, uint64_t round, uint32_t batch,
                            const uint32_t **indices);

#endif

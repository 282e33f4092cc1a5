/* shares.h - which share of the training samples each rank has now.
 *
 * At first the partition of all nodes, and its joiners' own. If shares follow the members
 * (data.on_change "share"), sl_shares_deal gives a rank its place in the partition of so many
 * nodes, which is the same pure function as the first.
 */
#ifndef SL_LEARNER_SHARES_H
#define SL_LEARNER_SHARES_H

#include "learner/data/partition.h"

typedef struct sl_shares {
    sl_data_config config;
    const sl_samples *samples; /* borrowed */
    uint32_t ranks_max;
    uint64_t seed;
    sl_partition *of_count; /* (ranks_max + 1) by number of nodes; not opened: nodes is 0 */
    struct sl_share_place {
        uint32_t count, place; /* in of_count[count] */
    } * places;                /* (ranks_max) */
} sl_shares;

/* Fails, too, where so many nodes and joiners could not share. */
int sl_shares_open(sl_shares *out, const sl_data_config *config, const sl_samples *samples,
                   uint32_t nodes, uint32_t joiners, uint64_t seed, sl_error *error);
void sl_shares_close(sl_shares *shares);

/* From now on rank has share `place` of `count`. */
int sl_shares_deal(sl_shares *shares, uint32_t rank, uint32_t place, uint32_t count,
                   sl_error *error);
/* Continues `hash` over what the settings do not say: a list from a file. */
uint64_t sl_shares_hash(uint64_t hash, const sl_shares *shares);
/* As of a partition. */
uint32_t sl_shares_size(const sl_shares *shares, uint32_t rank);
uint32_t sl_shares_batch(sl_shares *shares, uint32_t rank, uint64_t round, uint32_t batch,
                         const uint32_t **indices);

#endif

/* shares.c - see shares.h. Partitions stay once they were made: a network has few sizes. */
#include "learner/data/shares.h"

#include <stdlib.h>

#include "base/hash.h"

static int open_first(sl_shares *s, uint32_t nodes, uint32_t joiners, sl_error *error) {
    const bool follows = s->config.on_change == SL_ON_CHANGE_SHARE;
    const uint32_t own = follows ? 0 : joiners; /* joiners with a share of their own */
    const int result =
        sl_partition_open(&s->of_count[nodes], &s->config, s->samples, nodes, own, s->seed, error);
    for (uint32_t i = 0; i < s->ranks_max; i++)
        s->places[i] = (struct sl_share_place){nodes, i < nodes + own ? i : 0};
    if (result != 0 || !follows || joiners == 0)
        return result;
    return sl_partition_open(&s->of_count[nodes + joiners], &s->config, s->samples, nodes + joiners,
                             0, s->seed, error);
}

int sl_shares_open(sl_shares *out, const sl_data_config *config, const sl_samples *samples,
                   uint32_t nodes, uint32_t joiners, uint64_t seed, sl_error *error) {
    const uint32_t max = nodes + joiners;
    *out = (sl_shares){.config = *config,
                       .samples = samples,
                       .ranks_max = max,
                       .seed = seed,
                       .of_count = calloc((size_t)max + 1, sizeof *out->of_count),
                       .places = calloc(max, sizeof *out->places)};
    if (out->of_count == NULL || out->places == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the shares of %u nodes", max);
    return open_first(out, nodes, joiners, error);
}

void sl_shares_close(sl_shares *shares) {
    for (uint32_t i = 0; shares->of_count != NULL && i <= shares->ranks_max; i++)
        sl_partition_close(&shares->of_count[i]);
    free(shares->of_count);
    free(shares->places);
    *shares = (sl_shares){0};
}

int sl_shares_deal(sl_shares *shares, uint32_t rank, uint32_t place, uint32_t count,
                   sl_error *error) {
    sl_partition *p = &shares->of_count[count];
    int result = 0;
    if (p->nodes == 0)
        result =
            sl_partition_open(p, &shares->config, shares->samples, count, 0, shares->seed, error);
    if (result == 0)
        shares->places[rank] = (struct sl_share_place){count, place};
    return result;
}

uint64_t sl_shares_hash(uint64_t hash, const sl_shares *shares) {
    const sl_partition *p = &shares->of_count[shares->places[0].count];
    if (shares->config.partition != SL_PARTITION_LISTED)
        return hash;
    hash = sl_hash(hash, p->starts, (p->nodes + (size_t)1) * sizeof *p->starts);
    return sl_hash(hash, p->members, p->starts[p->nodes] * sizeof *p->members);
}

uint32_t sl_shares_size(const sl_shares *shares, uint32_t rank) {
    const struct sl_share_place at = shares->places[rank];
    return sl_partition_size(&shares->of_count[at.count], at.place);
}

uint32_t sl_shares_batch(sl_shares *shares, uint32_t rank, uint64_t round, uint32_t batch,
                         const uint32_t **indices) {
    const struct sl_share_place at = shares->places[rank];
    return sl_partition_batch(&shares->of_count[at.count], at.place, round, batch, indices);
}

/* partition.c - assigns samples to nodes; see partition.h.
 *
 *     iid        shuffles the samples and cuts them into equal parts
 *     shards     sorts them by label, cuts them into nodes * shards_per_node shards, and gives each
 *                node random shards (McMahan et al. 2017)
 *     dirichlet  splits each label's samples in proportions drawn from Dirichlet(alpha) over the
 *                nodes (Hsu et al. 2019)
 *     speakers   gives all samples of a speaker in a text to one node
 *     listed     takes each sample's node from a file (listed.c)
 *
 * Each scheme assigns one owner to every sample, or none where a list says so. Everything else is
 * shared.
 */
#include "learner/data/partition.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/data/listed.h"
#include "starling/rng.h"

/* Random streams of SL_PURPOSE_PARTITION: the `round` of their keys. */
enum { STREAM_SAMPLES, STREAM_SHARDS, STREAM_GAMMA };

/* Returns where part `i` of `parts` nearly equal parts starts. */
static uint32_t part_start(uint64_t total, uint64_t parts, uint64_t i) {
    return (uint32_t)(total * i / parts);
}

static void shuffle_all(uint32_t *items, uint32_t count, uint64_t seed, uint64_t stream) {
    sl_rng rng = sl_rng_open(seed, 0, stream, SL_PURPOSE_PARTITION);
    for (uint32_t i = 0; i < count; i++)
        items[i] = i;
    sl_rng_shuffle(&rng, items, count);
}

/* Sorts `items` by label (a stable counting sort). Label c begins at starts[c]; starts (classes +
 * 1). */
static void sort_by_label(uint32_t *sorted, uint32_t *starts, const uint32_t *items,
                          const sl_samples *samples) {
    uint32_t classes = sl_samples_class_count(samples);
    memset(starts, 0, (classes + 1) * sizeof *starts);
    for (uint32_t i = 0; i < samples->count; i++)
        starts[sl_samples_class(samples, i) + 1]++;
    for (uint32_t c = 0; c < classes; c++)
        starts[c + 1] += starts[c];
    for (uint32_t i = 0; i < samples->count; i++)
        sorted[starts[sl_samples_class(samples, items[i])]++] = items[i];
    for (uint32_t c = classes; c > 0; c--) /* starts[c] is now the end of c */
        starts[c] = starts[c - 1];
    starts[0] = 0;
}

typedef struct dealing {
    uint32_t *owners; /* (samples) node of each sample */
    uint32_t *items;  /* (samples) shuffled sample indices */
    uint32_t *sorted; /* (samples) items by label */
    uint32_t *starts; /* (classes + 1) */
    uint32_t *shards; /* (nodes * shards_per_node), shards only */
    double *shares;   /* (nodes), dirichlet only */
} dealing;

static void deal_iid(dealing *d, uint32_t samples, uint32_t nodes) {
    for (uint32_t node = 0; node < nodes; node++)
        for (uint32_t i = part_start(samples, nodes, node);
             i < part_start(samples, nodes, node + 1); i++)
            d->owners[d->items[i]] = node;
}

static void deal_shards(dealing *d, uint32_t samples, uint32_t nodes, uint32_t shards_per_node,
                        uint64_t seed) {
    uint32_t shards = nodes * shards_per_node;
    shuffle_all(d->shards, shards, seed, STREAM_SHARDS);
    for (uint32_t k = 0; k < shards; k++) {
        uint32_t shard = d->shards[k];
        for (uint32_t i = part_start(samples, shards, shard);
             i < part_start(samples, shards, shard + 1); i++)
            d->owners[d->sorted[i]] = k / shards_per_node;
    }
}

/* Returns the logarithm of a draw from Gamma(alpha, 1): a draw for alpha + 1 (Marsaglia, Tsang
 * 2000) times U^(1/alpha). For a small alpha the draws themselves would underflow to 0. */
static double log_gamma_draw(sl_rng *rng, double alpha) {
    double d = alpha + 1 - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = sl_rng_normal(rng), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(1 - sl_rng_uniform(rng)) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + log(1 - sl_rng_uniform(rng)) / alpha;
    }
}

/* Draws cumulative shares; the last is 1. */
static void draw_dirichlet(double *shares, uint32_t nodes, double alpha, sl_rng *rng) {
    double largest = -DBL_MAX, total = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        shares[i] = log_gamma_draw(rng, alpha);
        largest = shares[i] > largest ? shares[i] : largest;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        total += exp(shares[i] - largest);
        shares[i] = total;
    }
    for (uint32_t i = 0; i < nodes; i++)
        shares[i] /= total;
}

/* Gives each node without samples one from a node that has several. One pass over the shuffled
 * samples does it. */
static int fill_empty_nodes(dealing *d, uint32_t samples, uint32_t nodes) {
    uint32_t *sizes = calloc(nodes, sizeof *sizes);
    if (sizes == NULL)
        return SL_ENOMEM;
    for (uint32_t i = 0; i < samples; i++)
        sizes[d->owners[i]]++;
    uint32_t empty = 0;
    for (uint32_t i = 0; i < samples; i++) {
        while (empty < nodes && sizes[empty] > 0)
            empty++;
        uint32_t item = d->items[i];
        if (empty == nodes || sizes[d->owners[item]] == 1)
            continue;
        sizes[d->owners[item]]--;
        sizes[empty]++;
        d->owners[item] = empty;
    }
    free(sizes);
    return 0;
}

static int deal_dirichlet(dealing *d, const sl_samples *samples, uint32_t nodes, double alpha,
                          uint64_t seed) {
    uint32_t classes = sl_samples_class_count(samples);
    for (uint32_t class = 0; class < classes; class ++) {
        sl_rng rng = sl_rng_open(seed, class, STREAM_GAMMA, SL_PURPOSE_PARTITION);
        draw_dirichlet(d->shares, nodes, alpha, &rng);
        uint32_t first = d->starts[class], count = d->starts[class + 1] - first, node = 0;
        for (uint32_t i = 0; i < count; i++) {
            while (node + 1 < nodes && (i + 0.5) / count > d->shares[node])
                node++;
            d->owners[d->sorted[first + i]] = node;
        }
    }
    return fill_empty_nodes(d, samples->count, nodes);
}

/* A speaker and the number of its samples. */
typedef struct speaker {
    uint32_t group, size;
} speaker;

static int compare_speakers(const void *a, const void *b) {
    const speaker *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->group < y->group ? -1 : 1;
}

/* Deals speakers from the longest text to the shortest, one to each node in turn, then back from
 * the last node to the first. Each node gets about the same amount of text. */
static int deal_speakers(dealing *d, const sl_samples *samples, uint32_t nodes, sl_error *error) {
    uint32_t usable = 0, groups = samples->group_count;
    speaker *speakers = malloc(groups * sizeof *speakers);
    if (speakers == NULL)
        return SL_ENOMEM;
    for (uint32_t g = 0; g < groups; g++)
        if (d->starts[g + 1] > d->starts[g])
            speakers[usable++] = (speaker){g, d->starts[g + 1] - d->starts[g]};
    qsort(speakers, usable, sizeof *speakers, compare_speakers);
    for (uint32_t i = 0; i < usable; i++) {
        uint32_t turn = i / nodes, place = i % nodes,
                 node = turn % 2 == 0 ? place : nodes - 1 - place, g = speakers[i].group;
        for (uint32_t k = d->starts[g]; k < d->starts[g + 1]; k++)
            d->owners[d->sorted[k]] = node;
    }
    free(speakers);
    if (usable >= nodes)
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "data.partition.name: speakers needs at least one speaker per node, but the text has %u "
        "speakers with a whole sample and the topology %u nodes; use fewer nodes, or a "
        "smaller data.sequence",
        usable, nodes);
}

static int deal(dealing *d, const sl_data_config *config, const sl_samples *samples, uint32_t nodes,
                uint64_t seed, sl_error *error) {
    shuffle_all(d->items, samples->count, seed, STREAM_SAMPLES);
    sort_by_label(d->sorted, d->starts, d->items, samples);
    switch (config->partition) {
    case SL_PARTITION_IID:
        deal_iid(d, samples->count, nodes);
        return 0;
    case SL_PARTITION_SHARDS:
        deal_shards(d, samples->count, nodes, config->shards_per_node, seed);
        return 0;
    case SL_PARTITION_DIRICHLET:
        return deal_dirichlet(d, samples, nodes, config->alpha, seed);
    case SL_PARTITION_SPEAKERS:
        return deal_speakers(d, samples, nodes, error);
    case SL_PARTITION_LISTED:
        return sl_listed_read(d->owners, config->owners, samples->count, nodes, error);
    }
    return sl_fail(error, SL_EINVAL, "data.partition.name is %d, not a partition",
                   (int)config->partition);
}

/* Turns owners into members and starts (a counting sort by node). */
static void group(sl_partition *p, const dealing *d, uint32_t samples, uint32_t nodes) {
    for (uint32_t i = 0; i < samples; i++)
        if (d->owners[i] != SL_LISTED_NOBODY)
            p->starts[d->owners[i] + 1]++;
    for (uint32_t node = 0; node < nodes; node++)
        p->starts[node + 1] += p->starts[node];
    for (uint32_t i = 0; i < samples; i++)
        if (d->owners[i] != SL_LISTED_NOBODY)
            p->members[p->starts[d->owners[i]]++] = i;
    for (uint32_t node = nodes; node > 0; node--)
        p->starts[node] = p->starts[node - 1];
    p->starts[0] = 0;
    for (uint32_t node = nodes; node < p->nodes; node++) {
        p->starts[node + 1] = p->starts[node] + samples;
        for (uint32_t i = 0; i < samples; i++)
            p->members[p->starts[node] + i] = i;
    }
}

static int check(const sl_data_config *config, const sl_samples *table, uint32_t nodes,
                 sl_error *error) {
    uint32_t samples = table->count;
    if (config->partition == SL_PARTITION_SPEAKERS && !table->speakers)
        return sl_fail(
            error, SL_EINVAL,
            "data.partition.name: speakers needs a text (data.name text) whose blocks, separated "
            "by "
            "empty lines, mostly start with a line NAME:; this data has no speakers; use iid, "
            "shards or dirichlet");
    if (samples < nodes)
        return sl_fail(error, SL_EINVAL,
                       "data: %u training samples for %u nodes; every node needs at least one",
                       samples, nodes);
    if (config->partition == SL_PARTITION_SHARDS &&
        (config->shards_per_node < 1 || (uint64_t)config->shards_per_node * nodes > samples))
        return sl_fail(error, SL_EINVAL,
                       "data.partition.shards_per_node is %u; allowed are 1 to %u: %u training "
                       "samples for %u nodes, at least one per shard",
                       config->shards_per_node, samples / nodes, samples, nodes);
    if (config->partition == SL_PARTITION_DIRICHLET &&
        !(config->alpha > 0 && isfinite(config->alpha)))
        return sl_fail(error, SL_EINVAL,
                       "data.partition.alpha is %g; it must be a finite number above 0",
                       config->alpha);
    if (table->targets != NULL &&
        (config->partition == SL_PARTITION_SHARDS || config->partition == SL_PARTITION_DIRICHLET))
        return sl_fail(error, SL_EINVAL,
                       "data.partition.name: %s goes by classes, but the labels are numbers "
                       "(model.loss squared); use iid or listed",
                       config->partition == SL_PARTITION_SHARDS ? "shards" : "dirichlet");
    if (config->partition == SL_PARTITION_LISTED && config->on_change == SL_ON_CHANGE_SHARE)
        return sl_fail(error, SL_EINVAL,
                       "data.on_change: share deals samples anew by a rule, but "
                       "data.partition.name listed has none; use keep, or another partition");
    return 0;
}

int sl_partition_open(sl_partition *out, const sl_data_config *config, const sl_samples *samples,
                      uint32_t nodes, uint32_t joiners, uint64_t seed, sl_error *error) {
    const size_t count = samples->count, all = count * (1 + (size_t)joiners);
    int result = check(config, samples, nodes, error);
    if (result != 0)
        return result;
    if (all > UINT32_MAX)
        return sl_fail(error, SL_EINVAL,
                       "membership.joiners: %u, each with all %u training samples, are too many",
                       joiners, samples->count);
    sl_partition p = {.nodes = nodes + joiners,
                      .seed = seed,
                      .members = malloc(all * sizeof *p.members),
                      .starts = calloc((size_t)nodes + joiners + 1, sizeof *p.starts),
                      .order = malloc(all * sizeof *p.order),
                      .epochs = calloc((size_t)nodes + joiners, sizeof *p.epochs)};
    bool shards = config->partition == SL_PARTITION_SHARDS;
    dealing d = {
        .owners = malloc(count * sizeof *d.owners),
        .items = malloc(count * sizeof *d.items),
        .sorted = malloc(count * sizeof *d.sorted),
        .starts = malloc(((size_t)sl_samples_class_count(samples) + 1) * sizeof *d.starts),
        .shards = malloc((shards ? (size_t)nodes * config->shards_per_node : 1) * sizeof *d.shards),
        .shares = malloc(nodes * sizeof *d.shares)};
    result = SL_ENOMEM;
    if (p.members && p.starts && p.order && p.epochs && d.owners && d.items && d.sorted &&
        d.starts && d.shards && d.shares)
        result = deal(&d, config, samples, nodes, seed, error);
    if (result == 0) {
        group(&p, &d, samples->count, nodes);
        *out = p;
    } else {
        sl_partition_close(&p);
        if (result == SL_ENOMEM)
            sl_fail(error, result, "data.partition: %s for %u samples and %u nodes",
                    sl_error_meaning(result), samples->count, nodes);
    }
    free(d.owners);
    free(d.items);
    free(d.sorted);
    free(d.starts);
    free(d.shards);
    free(d.shares);
    return result;
}

void sl_partition_close(sl_partition *partition) {
    free(partition->members);
    free(partition->starts);
    free(partition->order);
    free(partition->epochs);
    *partition = (sl_partition){0};
}

uint32_t sl_partition_size(const sl_partition *partition, uint32_t rank) {
    return partition->starts[rank + 1] - partition->starts[rank];
}

uint32_t sl_partition_batch(sl_partition *partition, uint32_t rank, uint64_t round, uint32_t batch,
                            const uint32_t **indices) {
    assert(rank < partition->nodes && round > 0 && batch > 0);
    uint32_t first = partition->starts[rank], size = sl_partition_size(partition, rank);
    if (batch > size)
        batch = size;
    /* An epoch leaves out the remainder, which the next shuffle changes. */
    uint32_t batches = size / batch;
    uint64_t epoch = (round - 1) / batches;
    uint32_t *order = partition->order + first;
    if (partition->epochs[rank] != epoch + 1) {
        memcpy(order, partition->members + first, size * sizeof *order);
        sl_rng rng = sl_rng_open(partition->seed, rank, epoch, SL_PURPOSE_SHUFFLE);
        sl_rng_shuffle(&rng, order, size);
        partition->epochs[rank] = epoch + 1;
    }
    *indices = order + (round - 1) % batches * batch;
    return batch;
}

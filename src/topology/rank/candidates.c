/* candidates.c - the topologies that are worth a look for a given number of nodes; see
 * candidates.h. */
#include "topology/rank/candidates.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topology/family/family.h"

enum {
    DIMENSIONS_MAX = 3,
    PEERS_MAX = 4,
    SELDOM = 4 /* rounds from one use of the bridges between clusters to the next */
};

static sl_topology_spec *add(candidates *c, uint32_t nodes, sl_family which, uint64_t seed) {
    sl_topology_spec *spec = &c->specs[c->count++];
    sl_topology_spec_defaults(spec);
    spec->nodes = nodes;
    spec->family = which;
    spec->weighting = sl_family_describe(which)->weighting;
    if (sl_family_describe(which)->random)
        spec->seed = seed;
    return spec;
}

/* Always the largest divisor that leaves room for as large ones. */
bool sl_family_equal_sides(uint32_t *sides, uint32_t count, uint32_t nodes) {
    for (uint32_t d = 0; d < count; d++) {
        uint32_t left = count - d, best = 1;
        for (uint32_t s = 1; s <= nodes; s++) {
            double power = 1;
            for (uint32_t k = 0; k < left; k++)
                power *= s;
            if (power > nodes)
                break;
            best = nodes % s == 0 ? s : best;
        }
        if (best == 1)
            return false;
        nodes /= best;
        uint32_t at = d;
        for (; at > 0 && sides[at - 1] > best; at--)
            sides[at] = sides[at - 1];
        sides[at] = best;
    }
    return true;
}

static void add_sides(candidates *c, uint32_t nodes, sl_family which, const uint32_t *sides,
                      uint32_t count) {
    sl_topology_spec *spec = add(c, nodes, which, 0);
    memcpy(spec->sides, sides, count * sizeof *sides);
    spec->side_count = count;
}

static uint32_t prime_sides(uint32_t *sides, uint32_t nodes) {
    uint32_t count = 0;
    for (uint32_t p = 2; nodes > 1; p++)
        for (; nodes % p == 0; nodes /= p)
            sides[count++] = p;
    return count;
}

/* The longest side first, and so neighbouring numbers in the shortest. */
static void reverse(uint32_t *sides, uint32_t count) {
    for (uint32_t d = 0; d < count / 2; d++) {
        uint32_t swap = sides[d];
        sides[d] = sides[count - 1 - d];
        sides[count - 1 - d] = swap;
    }
}

static void add_cuboids(candidates *c, uint32_t nodes, bool numbered) {
    uint32_t sides[SL_SIDES_MAX];
    for (uint32_t d = 1; d <= DIMENSIONS_MAX; d++) {
        uint32_t count = d == 1 ? prime_sides(sides, nodes) : d;
        if (d > 1 && !sl_family_equal_sides(sides, d, nodes))
            continue;
        if (d > 1)
            add_sides(c, nodes, SL_FAMILY_TORUS, sides, d);
        add_sides(c, nodes, SL_FAMILY_HYPER_CUBOID, sides, count);
        reverse(sides, count);
        if (numbered)
            add_sides(c, nodes, SL_FAMILY_HYPER_CUBOID, sides, count);
    }
}

/* Inside the clusters in fast rounds, between them in few. */
static void add_clusters(candidates *c, uint32_t nodes, uint32_t clusters) {
    uint32_t sides[SL_SIDES_MAX] = {clusters, nodes / clusters}, count;
    for (uint32_t every = 1; every <= SELDOM; every += SELDOM - 1) {
        sl_topology_spec *spec = add(c, nodes, SL_FAMILY_CLUSTERS, 0);
        spec->clusters = clusters;
        spec->bridge_every = every;
    }
    add_sides(c, nodes, SL_FAMILY_HYPER_CUBOID, sides, 2);
    count = prime_sides(sides, clusters);
    count += prime_sides(sides + count, nodes / clusters);
    add_sides(c, nodes, SL_FAMILY_HYPER_CUBOID, sides, count);
}

static void add_matcha(candidates *c, uint32_t nodes, uint64_t seed) {
    static const sl_family bases[] = {SL_FAMILY_RING, SL_FAMILY_TORUS, SL_FAMILY_RANDOM_REGULAR};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        sl_topology_spec *spec = add(c, nodes, SL_FAMILY_MATCHA, seed);
        spec->base = bases[i];
        spec->degree = bases[i] == SL_FAMILY_RANDOM_REGULAR ? 4 : 0;
        if (bases[i] == SL_FAMILY_TORUS && sl_family_equal_sides(spec->sides, 2, nodes))
            spec->side_count = 2;
    }
}

/* Of the families whose degree grows with the number of nodes; one each way. */
static uint64_t edges_of(const sl_topology_spec *spec) {
    uint64_t degree = spec->family == SL_FAMILY_COMPLETE   ? spec->nodes - 1
                      : spec->family == SL_FAMILY_CLUSTERS ? spec->nodes / spec->clusters
                                                           : 0;
    for (uint32_t d = 0; spec->family == SL_FAMILY_HYPER_CUBOID && d < spec->side_count; d++)
        degree += spec->sides[d] - 1;
    return degree * spec->nodes * (spec->bridge_every > 1 ? spec->bridge_every : 1);
}

static void leave_out_large(candidates *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++)
        if (edges_of(&c->specs[i]) <= CANDIDATE_EDGES_MAX)
            c->specs[kept++] = c->specs[i];
    c->some_too_large = kept < c->count;
    c->count = kept;
}

static int ranked(sl_family which) {
    return (int)sl_family_of(which)->ranked;
}

void sl_candidates_list(candidates *out, uint32_t nodes, uint64_t seed, const clusterings *racks) {
    uint32_t logarithm = 1;
    while (logarithm < 31 && 1u << logarithm < nodes)
        logarithm++;
    const uint32_t degrees[] = {3, 4, logarithm > 4 ? logarithm : 0};
    out->count = 0;
    for (sl_family f = SL_FAMILY_EDGES + 1; f < SL_FAMILIES; f++)
        for (size_t d = 0; d < sizeof degrees / sizeof *degrees && ranked(f) != RANKED_NOT; d++)
            if (ranked(f) == RANKED_DEGREES ? degrees[d] > 0 : d == 0)
                add(out, nodes, f, seed)->degree = ranked(f) == RANKED_DEGREES ? degrees[d] : 0;
    add_cuboids(out, nodes, racks != NULL);
    for (uint32_t peers = 1; peers <= PEERS_MAX && peers < nodes; peers++)
        add(out, nodes, SL_FAMILY_BASE_K, seed)->peers = peers;
    add_matcha(out, nodes, seed);
    for (size_t i = 0; racks != NULL && i < racks->count; i++)
        add_clusters(out, nodes, racks->clusters[i]);
    leave_out_large(out);
}

static void append(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t room, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
}

void sl_candidate_name(char *text, size_t room, const sl_topology_spec *spec) {
    snprintf(text, room, "%s", sl_family_describe(spec->family)->name);
    if (spec->base != SL_FAMILY_EDGES)
        append(text, room, " %s", sl_family_describe(spec->base)->name);
    if (spec->clusters > 0) {
        append(text, room, " %u of %u", spec->clusters, spec->nodes / spec->clusters);
        if (spec->bridge_every > 1)
            append(text, room, ", every %u", spec->bridge_every);
        return;
    }
    for (uint32_t d = 0; d < spec->side_count; d++)
        append(text, room, "%s%u", d == 0 ? " " : "x", spec->sides[d]);
    if (spec->degree > 0)
        append(text, room, " %u", spec->degree);
    if (spec->peers > 0)
        append(text, room, " %u", spec->peers);
}

/* rank.c - which topology agrees soonest on a given cluster; see starling/rank.h. */
#include "starling/rank.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/watch.h"
#include "topology/graph/graph.h"
#include "topology/links/links.h"
#include "topology/rank/candidates.h"

enum { NOTES_MAX = 16, OPTIMAL_NODES_MAX = 128 };
#define BUSY 4 /* times the mean that a node sends, from where on it is worth a word */
#define SLOW 2 /* times the fastest link's time, likewise */

struct sl_ranking {
    sl_candidate *items;             /* (count) */
    uint64_t hashes[CANDIDATES_MAX]; /* of their matrices before nodes were numbered anew */
    size_t count;
    sl_left_out *left_out; /* (left_out_count) */
    size_t left_out_count;
    char *notes[NOTES_MAX];
    size_t note_count;
};

void sl_rank_defaults(sl_rank_settings *settings) {
    *settings = (sl_rank_settings){.epsilon = 1e-3, .port = SL_PORT_SERIAL, .seed = 1};
}

/* ---- what is wanted ---- */

static uint32_t most_messages(const sl_topology *t) {
    uint32_t most = 0;
    for (uint32_t k = 1; k <= sl_topology_period(t); k++)
        for (uint32_t i = 0; i < sl_topology_nodes(t); i++) {
            const uint32_t degree = sl_topology_out(t, k, i).count;
            most = degree > most ? degree : most;
        }
    return most;
}

static bool is_undirected(const sl_topology *t) {
    for (uint32_t k = 0; k < t->graph.period; k++)
        if (!t->graph.slots[k].undirected)
            return false;
    return true;
}

/* Why it is left out; false: it is not. */
static bool is_unwanted(char why[SL_RANK_WHY_MAX], const sl_candidate *c,
                        const sl_rank_settings *s) {
    const uint32_t period = sl_topology_period(c->topology);
    const bool directed = (s->undirected || s->fixed) && !is_undirected(c->topology);
    why[0] = '\0';
    if (s->degree_max > 0 && c->degree_max > s->degree_max)
        snprintf(why, SL_RANK_WHY_MAX, "a node sends %u messages a round", c->degree_max);
    else if (directed)
        snprintf(why, SL_RANK_WHY_MAX, "edges lead one way");
    else if (s->fixed && period > 1)
        snprintf(why, SL_RANK_WHY_MAX, "a schedule of %u rounds", period);
    else if (s->fixed && !sl_topology_stochasticity(c->topology).symmetric)
        snprintf(why, SL_RANK_WHY_MAX, "W is not symmetric");
    return why[0] != '\0';
}

/* ---- one candidate ---- */

/* Not known is last. */
static int compare_seconds(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return a < b ? -1 : a > b;
}

/* Keeps the better one. A family that does not fit so many nodes is passed over; one that is not
 * wanted is left out, and its name says so. */
static int try_weights(sl_candidate *best, sl_left_out *left_out, const sl_topology_spec *spec,
                       const sl_rank_settings *s, sl_error *error) {
    sl_candidate c = {0};
    int result = sl_topology_open(&c.topology, spec, error);
    if (result != 0)
        return result == SL_EINVAL ? 0 : result;
    c.family = spec->family;
    c.weighting = spec->weighting;
    sl_candidate_name(c.name, sizeof c.name, sl_topology_description(c.topology));
    c.degree_max = most_messages(c.topology);
    if (is_unwanted(left_out->why, &c, s)) {
        snprintf(left_out->name, sizeof left_out->name, "%s", c.name);
        sl_topology_close(&c.topology);
        return 0;
    }
    result = sl_candidate_judge(&c, s, error);
    if (result == 0 && (best->topology == NULL || compare_seconds(c.seconds, best->seconds) < 0)) {
        sl_topology_close(&best->topology);
        *best = c;
    } else {
        sl_topology_close(&c.topology);
    }
    return result;
}

/* With the weight scheme that agrees soonest, where the family leaves a choice; the plain one where
 * it makes no difference. */
static int try_family(sl_candidate *best, sl_left_out *left_out, const sl_topology_spec *spec,
                      const sl_rank_settings *s, sl_error *error) {
    static const sl_weighting others[] = {SL_WEIGHTING_BEST_CONSTANT, SL_WEIGHTING_FMMC};
    const sl_family_info *info = sl_family_describe(spec->family);
    int result = try_weights(best, left_out, spec, s, error);
    bool choice =
        !info->schedule && !info->directed && best->topology != NULL && best->exact_after == 0;
    for (size_t i = 0; result == 0 && choice && i < (s->nodes <= OPTIMAL_NODES_MAX ? 2 : 1); i++) {
        sl_topology_spec other = *spec;
        other.weighting = others[i];
        result = try_weights(best, left_out, &other, s, error);
    }
    return result;
}

/* ---- along fast links ---- */

/* The same topology with node i in the place of order[i]. */
static int relabel(sl_topology **out, const sl_topology *t, const uint32_t *order,
                   sl_error *error) {
    uint32_t n = sl_topology_nodes(t), period = sl_topology_period(t);
    size_t count = 0;
    for (uint32_t k = 1; k <= period; k++)
        for (uint32_t i = 0; i < n; i++)
            count += sl_topology_in(t, k, i).count + 1;
    sl_edge *edges = malloc(count * sizeof *edges), *next = edges;
    sl_slot_spec *slots = malloc(period * sizeof *slots);
    int result =
        edges && slots ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for %zu edges", count);
    for (uint32_t k = 1; result == 0 && k <= period; k++) {
        sl_edge *first = next;
        for (uint32_t i = 0; i < n; i++) {
            sl_row row = sl_topology_in(t, k, i);
            *next++ = (sl_edge){order[i], order[i], row.self};
            for (uint32_t e = 0; e < row.count; e++)
                *next++ = (sl_edge){order[row.peers[e]], order[i], row.weights[e]};
        }
        slots[k - 1] = (sl_slot_spec){first, (size_t)(next - first)};
    }
    sl_topology_spec spec;
    sl_topology_spec_defaults(&spec);
    spec.nodes = n;
    spec.family = SL_FAMILY_EDGES;
    spec.weighting = SL_WEIGHTING_EXPLICIT;
    spec.slots = slots;
    spec.slot_count = period;
    if (result == 0)
        result = sl_topology_open(out, &spec, error);
    free(edges);
    free(slots);
    return result;
}

/* For how long a period's messages occupy links, all together. */
static double occupied(const sl_topology *t, const sl_rank_settings *s) {
    double sum = 0;
    for (uint32_t k = 1; k <= sl_topology_period(t); k++)
        for (uint32_t i = 0; i < s->nodes; i++) {
            const sl_row row = sl_topology_in(t, k, i);
            for (uint32_t e = 0; e < row.count; e++)
                sum += sl_links_seconds(s->links, i, row.peers[e], s->message_bytes);
        }
    return sum;
}

static bool is_less(double a, double b) {
    return a < b * (1 - 1e-9);
}

/* Takes the numbering along fast links where that makes rounds shorter, or as long rounds occupy
 * links for less. Rounds stay as many. */
static int try_order(sl_candidate *c, const uint32_t *order, const sl_rank_settings *s,
                     sl_error *error) {
    sl_topology *moved = NULL;
    int result = relabel(&moved, c->topology, order, error);
    if (result != 0)
        return result;
    double seconds =
        sl_topology_round_seconds(moved, s->links, s->compute_s, s->message_bytes, s->port);
    if (is_less(seconds, c->round_seconds) ||
        (!is_less(c->round_seconds, seconds) &&
         is_less(occupied(moved, s), occupied(c->topology, s)))) {
        sl_topology *swap = c->topology;
        c->topology = moved;
        moved = swap;
        c->relabelled = true;
        c->round_seconds = seconds;
        c->seconds = c->rounds * seconds;
    }
    sl_topology_close(&moved);
    return 0;
}

/* ---- why ---- */

typedef struct span {
    double fastest, slowest; /* seconds of one message */
    uint32_t a, b;           /* between which it takes longest */
} span;

static void widen(span *w, const sl_rank_settings *s, uint32_t i, uint32_t j) {
    double seconds = sl_links_seconds(s->links, i, j, s->message_bytes);
    w->fastest = fmin(w->fastest, seconds);
    if (seconds > w->slowest)
        *w = (span){w->fastest, seconds, i < j ? i : j, i < j ? j : i};
}

static span all_links(const sl_rank_settings *s) {
    span w = {.fastest = INFINITY};
    if (sl_links_alike(s->links)) {
        widen(&w, s, 0, 1);
        return w;
    }
    for (uint32_t i = 0; i < s->nodes; i++)
        for (uint32_t j = 0; j < i; j++)
            widen(&w, s, i, j);
    return w;
}

static span links_of(const sl_topology *t, const sl_rank_settings *s) {
    span w = {.fastest = INFINITY};
    for (uint32_t i = 0; i < s->nodes; i++) {
        const uint32_t *peers;
        uint32_t count = sl_topology_peers(t, i, &peers);
        for (uint32_t e = 0; e < count; e++)
            widen(&w, s, i, peers[e]);
    }
    return w;
}

static bool is_power_of_two(uint32_t n) {
    return (n & (n - 1)) == 0;
}

static void because(sl_candidate *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void because(sl_candidate *c, const char *format, ...) {
    size_t used = strlen(c->why);
    if (used > 0)
        used += (size_t)snprintf(c->why + used, sizeof c->why - used, "; ");
    va_list arguments;
    va_start(arguments, format);
    if (used < sizeof c->why)
        vsnprintf(c->why + used, sizeof c->why - used, format, arguments);
    va_end(arguments);
}

static void explain(sl_candidate *c, const sl_rank_settings *s, const span *all) {
    sl_traffic traffic = sl_topology_traffic(c->topology);
    span used = links_of(c->topology, s);
    if (c->exact_after > 0)
        because(c, "exact after %u round%s", c->exact_after, c->exact_after == 1 ? "" : "s");
    else if (c->family == SL_FAMILY_ONE_PEER_EXPONENTIAL)
        because(c, "not exact: %u is not a power of two", s->nodes);
    if (isnan(c->rounds))
        because(c, "rounds not found within the limit of work");
    if (traffic.sent_max > BUSY * traffic.sent_mean)
        because(c, "one node sends %.4g models a round", traffic.sent_max);
    if (c->relabelled)
        because(c, "nodes numbered along fast links");
    if (used.slowest > SLOW * all->fastest)
        because(c, "waits for %u-%u", used.a, used.b);
}

static void note(sl_ranking *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(sl_ranking *r, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *copy = r->note_count < NOTES_MAX ? strdup(text) : NULL;
    if (copy != NULL)
        r->notes[r->note_count++] = copy;
}

/* The exact schedules, the best of each family: "base-k 1 (5 rounds) or hyper-cuboid 2x2x3 (3
 * rounds)". */
static void note_exactness(sl_ranking *r, uint32_t nodes) {
    char instead[256] = "";
    sl_family named = SL_FAMILY_EDGES;
    for (size_t i = 0; i < r->count; i++) {
        const sl_candidate *c = &r->items[i];
        size_t used = strlen(instead);
        if (c->exact_after == 0 || sl_topology_period(c->topology) == 1 || c->family == named)
            continue;
        snprintf(instead + used, sizeof instead - used, "%s%s (%u rounds)",
                 used > 0 ? " or " : ": use ", c->name, c->exact_after);
        if (used > 0)
            break;
        named = c->family;
    }
    note(r, "one-peer-exponential is not exact at n = %u, and the hypercubes need a power of two%s",
         nodes, instead);
}

static bool is_prime(uint32_t n) {
    uint32_t sides[SL_SIDES_MAX];
    return !sl_family_equal_sides(sides, 2, n);
}

static double longest_gradient(const sl_rank_settings *s) {
    double longest = 0;
    for (uint32_t i = 0; s->compute_s != NULL && i < s->nodes; i++)
        longest = fmax(longest, s->compute_s[i]);
    return longest;
}

static void note_links(sl_ranking *r, const sl_rank_settings *s, const span *all) {
    const double gradient = longest_gradient(s);
    sl_link link = sl_links_get(s->links, 0, 1);
    double latency = 1e-3 * link.latency_ms,
           travel = sl_links_seconds(s->links, 0, 1, s->message_bytes) - latency;
    if (all->slowest > all->fastest * (1 + 1e-9))
        note(r, "links differ: a message takes from %.3g s to %.3g s (between %u and %u)",
             all->fastest, all->slowest, all->a, all->b);
    else if (gradient > travel + latency)
        note(r,
             "computing decides: a gradient takes up to %.3g s and a message %.3g s, so that few "
             "rounds count",
             gradient, travel + latency);
    else if (latency > travel)
        note(r,
             "latency decides: a message waits %.3g s and travels %.3g s, so that few rounds count",
             latency, travel);
    else
        note(r,
             "bandwidth decides: a message travels %.3g s and waits %.3g s, so that each model "
             "sent counts",
             travel, latency);
}

static void note_everything(sl_ranking *r, const sl_rank_settings *s, const span *all,
                            const clusterings *racks) {
    note_links(r, s, all);
    for (size_t i = 0; i < racks->count; i++)
        note(r,
             "by their links the nodes form %u clusters of %u, which clusters and hyper-cuboids "
             "follow",
             racks->clusters[i], s->nodes / racks->clusters[i]);
    if (!is_power_of_two(s->nodes))
        note_exactness(r, s->nodes);
    if (s->nodes > 3 && is_prime(s->nodes))
        note(r, "no torus, and no hyper-cuboid of small sides: %u is prime", s->nodes);
    if (s->nodes % 2 == 1)
        note(r,
             "matchings, ou-equidyn and regular graphs of odd degree need an even number of nodes");
}

/* ---- all of them ---- */

static bool is_known(const sl_ranking *r, uint64_t hash) {
    for (size_t i = 0; i < r->count; i++)
        if (r->hashes[i] == hash)
            return true;
    return false;
}

static int by_merit(const void *x, const void *y) {
    const sl_candidate *a = x, *b = y;
    int order = compare_seconds(a->seconds, b->seconds);
    if (order == 0 && a->bytes != b->bytes)
        order = a->bytes < b->bytes ? -1 : 1;
    return order != 0 ? order : strcmp(a->name, b->name);
}

/* order: NULL where all links are alike. */
static int consider(sl_ranking *r, const sl_topology_spec *spec, const sl_rank_settings *s,
                    const uint32_t *order, const span *all, sl_error *error) {
    sl_candidate c = {0};
    sl_left_out left_out = {0};
    int result = try_family(&c, &left_out, spec, s, error);
    if (result == 0 && left_out.name[0] != '\0')
        r->left_out[r->left_out_count++] = left_out;
    uint64_t hash = c.topology != NULL ? sl_topology_hash(c.topology) : 0;
    bool wanted = result == 0 && c.topology != NULL && !is_known(r, hash);
    if (wanted && order != NULL)
        result = try_order(&c, order, s, error);
    if (!wanted || result != 0) {
        sl_topology_close(&c.topology);
        return result;
    }
    explain(&c, s, all);
    r->hashes[r->count] = hash;
    r->items[r->count++] = c;
    return 0;
}

/* What is known of links that differ. */
typedef struct layout {
    uint32_t *order; /* (nodes) along fast links */
    clusterings racks;
} layout;

static int find_layout(layout *out, const sl_rank_settings *s, sl_error *error) {
    out->order = malloc(s->nodes * sizeof *out->order);
    if (out->order == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the order of %u nodes", s->nodes);
    int result = sl_links_order(out->order, s->links, s->message_bytes, error);
    return result == 0
               ? sl_links_clusterings(&out->racks, out->order, s->links, s->message_bytes, error)
               : result;
}

static int rank_all(sl_ranking *r, const sl_rank_settings *s, sl_error *error) {
    candidates *list = malloc(sizeof *list);
    layout found = {0};
    span all = all_links(s);
    bool alike = !(all.slowest > all.fastest * (1 + 1e-9));
    r->items = calloc(CANDIDATES_MAX, sizeof *r->items);
    r->left_out = calloc(CANDIDATES_MAX, sizeof *r->left_out);
    int result =
        list && r->items && r->left_out
            ? 0
            : sl_fail(error, SL_ENOMEM, "out of memory for the candidates of %u nodes", s->nodes);
    if (result == 0 && !alike)
        result = find_layout(&found, s, error);
    if (result == 0)
        sl_candidates_list(list, s->nodes, s->seed, alike ? NULL : &found.racks);
    for (size_t i = 0; result == 0 && i < list->count; i++) {
        sl_watch_tell(s->watch, (double)i / (double)list->count);
        result = consider(r, &list->specs[i], s, found.order, &all, error);
    }
    if (result == 0) {
        qsort(r->items, r->count, sizeof *r->items, by_merit);
        note_everything(r, s, &all, &found.racks);
        if (list->some_too_large)
            note(r, "graphs of more than %u edges are left out", CANDIDATE_EDGES_MAX);
    }
    free(list);
    free(found.order);
    return result;
}

static int check_settings(const sl_rank_settings *s, sl_error *error) {
    if (s->nodes < 2 || s->nodes > SL_RANK_NODES_MAX)
        return sl_fail(error, SL_EINVAL, "nodes: %u is not allowed; it must be from 2 to %u",
                       s->nodes, SL_RANK_NODES_MAX);
    if (sl_links_nodes(s->links) != s->nodes)
        return sl_fail(error, SL_EINVAL, "links: they are of %u nodes, and %u are to be ranked",
                       sl_links_nodes(s->links), s->nodes);
    if (!(s->message_bytes >= 0) || !isfinite(s->message_bytes))
        return sl_fail(error, SL_EINVAL, "message_bytes: %g is not allowed; it must be 0 or more",
                       s->message_bytes);
    if (!(s->epsilon > 0 && s->epsilon < 1))
        return sl_fail(error, SL_EINVAL,
                       "epsilon: %g is not allowed; it must be above 0 and below 1", s->epsilon);
    return 0;
}

int sl_ranking_open(sl_ranking **out, const sl_rank_settings *settings, sl_error *error) {
    int result = check_settings(settings, error);
    if (result != 0)
        return result;
    sl_ranking *r = calloc(1, sizeof *r);
    if (r == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a ranking");
    result = rank_all(r, settings, error);
    if (result != 0)
        sl_ranking_close(&r);
    else
        *out = r;
    return result;
}

void sl_ranking_close(sl_ranking **ranking) {
    sl_ranking *r = *ranking;
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->count; i++)
        sl_topology_close(&r->items[i].topology);
    for (size_t i = 0; i < r->note_count; i++)
        free(r->notes[i]);
    free(r->items);
    free(r->left_out);
    free(r);
    *ranking = NULL;
}

size_t sl_ranking_count(const sl_ranking *ranking) {
    return ranking->count;
}

const sl_candidate *sl_ranking_at(const sl_ranking *ranking, size_t place) {
    return &ranking->items[place];
}

size_t sl_ranking_left_out(const sl_ranking *ranking, const sl_left_out **left_out) {
    *left_out = ranking->left_out;
    return ranking->left_out_count;
}

size_t sl_ranking_notes(const sl_ranking *ranking, const char *const **notes) {
    *notes = (const char *const *)ranking->notes;
    return ranking->note_count;
}

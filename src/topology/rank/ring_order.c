/* ring_order.c - the nodes of a cluster in an order along its fast links, and the clusters that
 * they form there; see starling/rank.h. */
#include <math.h>
#include <stdlib.h>

#include "starling/rank.h"
#include "topology/links/links.h"
#include "topology/rank/candidates.h"

typedef struct pair {
    double seconds;
    uint32_t a, b;
} pair;

typedef struct chains {
    uint32_t *next; /* (2, n) up to two neighbours of each node */
    uint32_t *part; /* (n) disjoint sets: whose chain */
} chains;

static int by_seconds(const void *x, const void *y) {
    const pair *p = x, *q = y;
    if (p->seconds != q->seconds)
        return p->seconds < q->seconds ? -1 : 1;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

static pair *sorted_pairs(const sl_links *links, double bytes, size_t count) {
    uint32_t n = sl_links_nodes(links);
    pair *pairs = malloc(count * sizeof *pairs);
    size_t at = 0;
    for (uint32_t a = 0; pairs != NULL && a < n; a++)
        for (uint32_t b = a + 1; b < n; b++)
            pairs[at++] = (pair){sl_links_seconds(links, a, b, bytes), a, b};
    if (pairs != NULL)
        qsort(pairs, count, sizeof *pairs, by_seconds);
    return pairs;
}

static uint32_t part_of(chains *c, uint32_t i) {
    while (c->part[i] != i) {
        c->part[i] = c->part[c->part[i]];
        i = c->part[i];
    }
    return i;
}

static void join(chains *c, uint32_t a, uint32_t b) {
    c->next[2 * a + (c->next[2 * a] != UINT32_MAX)] = b;
    c->next[2 * b + (c->next[2 * b] != UINT32_MAX)] = a;
    c->part[part_of(c, a)] = part_of(c, b);
}

/* From an end of the one chain that all have become, to its other end. */
static void walk(uint32_t *order, const chains *c, uint32_t n) {
    uint32_t at = 0, before = UINT32_MAX;
    while (c->next[2 * at + 1] != UINT32_MAX)
        at++;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t next = c->next[2 * at] != before ? c->next[2 * at] : c->next[2 * at + 1];
        order[k] = at;
        before = at;
        at = next;
    }
}

int sl_links_order(uint32_t *order, const sl_links *links, double message_bytes, sl_error *error) {
    uint32_t n = sl_links_nodes(links);
    size_t count = (size_t)n * (n - 1) / 2;
    pair *pairs = n > 1 ? sorted_pairs(links, message_bytes, count) : NULL;
    chains c = {malloc(2 * (size_t)n * sizeof *c.next), malloc((size_t)n * sizeof *c.part)};
    int result = (n > 1 && pairs == NULL) || !c.next || !c.part
                     ? sl_fail(error, SL_ENOMEM, "out of memory for the order of %u nodes", n)
                     : 0;
    for (uint32_t i = 0; result == 0 && i < n; i++) {
        c.next[2 * i] = c.next[2 * i + 1] = UINT32_MAX;
        c.part[i] = i;
    }
    for (size_t p = 0; result == 0 && p < count && n > 1; p++)
        if (c.next[2 * pairs[p].a + 1] == UINT32_MAX && c.next[2 * pairs[p].b + 1] == UINT32_MAX &&
            part_of(&c, pairs[p].a) != part_of(&c, pairs[p].b))
            join(&c, pairs[p].a, pairs[p].b);
    if (result == 0)
        walk(order, &c, n);
    free(pairs);
    free(c.next);
    free(c.part);
    return result;
}

/* Is every step between clusters of `size` nodes slower than all within them by the factor? */
static bool are_apart(const double *steps, uint32_t nodes, uint32_t size) {
    double within = 0, between = INFINITY;
    for (uint32_t k = 1; k < nodes; k++)
        if (k % size == 0)
            between = fmin(between, steps[k]);
        else
            within = fmax(within, steps[k]);
    return between > CLUSTERS_APART * within;
}

int sl_links_clusterings(clusterings *out, const uint32_t *order, const sl_links *links,
                         double message_bytes, sl_error *error) {
    uint32_t n = sl_links_nodes(links);
    double *steps = malloc(n * sizeof *steps); /* from the node before, in that order */
    if (steps == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the steps of %u nodes", n);
    for (uint32_t k = 1; k < n; k++)
        steps[k] = sl_links_seconds(links, order[k - 1], order[k], message_bytes);
    out->count = 0;
    for (uint32_t c = 2; c <= n / 2 && out->count < CLUSTERINGS_MAX; c++)
        if (n % c == 0 && are_apart(steps, n, n / c))
            out->clusters[out->count++] = c;
    free(steps);
    return 0;
}

/* ranges.c - see starling/ranges.h. */
#include "starling/ranges.h"

#include <stdbool.h>
#include <stdlib.h>

double sl_gradient_share(size_t from, size_t dimension) {
    return (3 - 2 * (double)from / (double)dimension) / 3;
}

static int allocate(sl_ranges *s, size_t count, sl_error *error) {
    *s = (sl_ranges){.items = calloc(count, sizeof *s->items)};
    return s->items != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for %zu ranges", count);
}

void sl_ranges_close(sl_ranges *s) {
    free(s->items);
    *s = (sl_ranges){0};
}

static void add(sl_ranges *s, size_t from, size_t end) {
    s->items[s->count++] = (sl_range){from, end - from};
}

/* ---- tensors ---- */

static size_t tensors_of(const sl_shapes *shapes) {
    return shapes->ends != NULL && shapes->count > 0 ? shapes->count : 1;
}

/* Where tensor t ends; of 0 tensors: where the first one begins. */
static size_t end_of(const sl_shapes *shapes, size_t tensors) {
    return tensors == 0              ? 0
           : tensors_of(shapes) == 1 ? shapes->dimension
                                     : shapes->ends[tensors - 1];
}

static double ready_at(const sl_sending_costs *c, size_t from, size_t dimension) {
    return c->gradient_s * sl_gradient_share(from, dimension);
}

static double sending_of(const sl_sending_costs *c, size_t elements) {
    return c->startup_s + c->element_s * (double)elements;
}

int sl_ranges_merged(sl_ranges *out, const sl_shapes *shapes, const sl_sending_costs *costs,
                     sl_error *error) {
    const size_t d = shapes->dimension;
    size_t end = d;
    double free_at = 0;
    int result = allocate(out, tensors_of(shapes), error);
    for (size_t t = tensors_of(shapes); result == 0 && t > 0; t--) {
        const size_t from = end_of(shapes, t - 1);
        const double ready = ready_at(costs, from, d), begins = ready > free_at ? ready : free_at;
        if (t > 1 && ready_at(costs, end_of(shapes, t - 2), d) < begins + costs->startup_s)
            continue;
        add(out, from, end);
        free_at = begins + sending_of(costs, end - from);
        end = from;
    }
    return result;
}

/* Where nothing costs anything, nothing waits. */
int sl_ranges_layers(sl_ranges *out, const sl_shapes *shapes, sl_error *error) {
    return sl_ranges_merged(out, shapes, &(sl_sending_costs){0}, error);
}

/* ---- pieces ---- */

/* Pieces are there from the last to the first: those from `there` on are, of which some have left.
 * The first of them; `pieces`: all have left. */
static size_t first_left(const bool *left, size_t there, size_t pieces) {
    size_t k = there;
    while (k < pieces && left[k])
        k++;
    return k;
}

static void order(sl_ranges *out, bool *left, size_t d, size_t elements,
                  const sl_sending_costs *costs) {
    const size_t pieces = (d - 1) / elements + 1;
    size_t there = pieces;
    double free_at = 0;
    while (out->count < pieces) {
        while (there > 0 && ready_at(costs, (there - 1) * elements, d) <= free_at)
            there--;
        size_t k = first_left(left, there, pieces);
        if (k == pieces) { /* the link waits for the next one */
            k = --there;
            free_at = ready_at(costs, k * elements, d);
        }
        const size_t from = k * elements, end = d - from < elements ? d : from + elements;
        left[k] = true;
        add(out, from, end);
        free_at += sending_of(costs, end - from);
    }
}

int sl_ranges_partitioned(sl_ranges *out, size_t dimension, size_t elements,
                          const sl_sending_costs *costs, sl_error *error) {
    const size_t pieces = (dimension - 1) / elements + 1;
    bool *left = calloc(pieces, sizeof *left);
    int result = left == NULL ? sl_fail(error, SL_ENOMEM, "out of memory for %zu ranges", pieces)
                              : allocate(out, pieces, error);
    if (result == 0)
        order(out, left, dimension, elements, costs);
    free(left);
    return result;
}

/* ---- asking ---- */

size_t sl_ranges_border(const sl_ranges *s, size_t from, size_t dimension) {
    size_t lowest = dimension;
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].from >= from && s->items[i].from < lowest)
            lowest = s->items[i].from;
    return lowest;
}

double sl_ranges_seconds(const sl_ranges *s, size_t dimension, const sl_sending_costs *costs) {
    double free_at = 0;
    for (size_t i = 0; i < s->count; i++) {
        const double ready = ready_at(costs, s->items[i].from, dimension);
        free_at = (ready > free_at ? ready : free_at) + sending_of(costs, s->items[i].count);
    }
    return free_at;
}

size_t sl_ranges_find(const sl_ranges *s, size_t element) {
    size_t i = 0;
    while (i + 1 < s->count && element - s->items[i].from >= s->items[i].count)
        i++;
    return i;
}

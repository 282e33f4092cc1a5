/* ports.c - see ports.h. */
#include "sim/ports.h"

#include <math.h>
#include <stdlib.h>

static const double ns_per_ms = 1e6;

static size_t pairs(const sl_ports *p) {
    return p->links != NULL ? p->links->rows : 0;
}

int sl_ports_open(sl_ports *out, sl_link usual, const sl_number_rows *links, uint32_t nodes,
                  sl_error *error) {
    *out = (sl_ports){.links = links, .latency = (uint64_t)llround(ns_per_ms * usual.latency_ms)};
    if (usual.bandwidth_mbit > 0)
        out->ns_per_byte = 8e3 / usual.bandwidth_mbit;
    out->out_free = calloc(nodes, sizeof *out->out_free);
    out->in_free = calloc(nodes, sizeof *out->in_free);
    out->pair_free = calloc(2 * pairs(out) + 1, sizeof *out->pair_free);
    if (out->out_free != NULL && out->in_free != NULL && out->pair_free != NULL)
        return 0;
    sl_ports_close(out);
    return sl_fail(error, SL_ENOMEM, "simulator: out of memory for the links of %u nodes", nodes);
}

void sl_ports_close(sl_ports *p) {
    free(p->out_free);
    free(p->in_free);
    free(p->pair_free);
    *p = (sl_ports){0};
}

bool sl_ports_take_time(const sl_ports *p) {
    return p->ns_per_byte > 0 || p->latency > 0 || pairs(p) > 0;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The row of the pair's own link; NULL: it has none. */
static const double *link_of(const sl_ports *p, uint32_t from, uint32_t to) {
    for (size_t r = 0; r < pairs(p); r++) {
        const double *row = p->links->values + r * p->links->columns;
        if ((row[0] == from && row[1] == to) || (row[0] == to && row[1] == from))
            return row;
    }
    return NULL;
}

uint64_t sl_ports_latency(const sl_ports *p, uint32_t from, uint32_t to) {
    const double *link = link_of(p, from, to);
    return link != NULL && p->links->columns > 3 ? (uint64_t)llround(ns_per_ms * link[3])
                                                 : p->latency;
}

uint64_t sl_ports_leave(sl_ports *p, uint32_t from, uint32_t to, double bytes, uint64_t now) {
    const uint64_t lasts = (uint64_t)llround(p->ns_per_byte * bytes),
                   begins = later(p->out_free[from], now);
    const double *link = link_of(p, from, to);
    p->out_free[from] = begins + lasts;
    uint64_t arrives = begins;
    if (link != NULL) {
        const size_t row = (size_t)(link - p->links->values) / p->links->columns;
        uint64_t *is_free = &p->pair_free[2 * row + (from > to)];
        const double slower = link[2] > 0 ? 8e3 * bytes / link[2] : 0;
        *is_free = later(*is_free, begins) + later(lasts, (uint64_t)llround(slower));
        arrives = *is_free - lasts;
    }
    return arrives + sl_ports_latency(p, from, to);
}

uint64_t sl_ports_enter(sl_ports *p, uint32_t to, double bytes, uint64_t now) {
    p->in_free[to] = later(p->in_free[to], now) + (uint64_t)llround(p->ns_per_byte * bytes);
    return p->in_free[to];
}

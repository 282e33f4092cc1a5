/* exchange.c - the messages of one exchange, told to a timeline without a run: of all-reduces and
 * servers, where who sends how much follows from the route alone. See starling/timeline.h. */
#include <math.h>
#include <stdlib.h>

#include "route/route.h"
#include "starling/timeline.h"
#include "wire/frame.h"

typedef struct teller {
    sl_timeline *timeline;
    const sl_algorithm *algorithm;
    const sl_algorithm_config *config;
    sl_route *routes; /* (nodes) */
    uint32_t nodes;
    size_t chunk_bytes, dimension;
    uint64_t round;
    const sl_ranges *early; /* NULL: nothing leaves before the gradient is there */
} teller;

static size_t bytes_of(const teller *t, const sl_stage *stage, size_t count) {
    return stage->plain ? count * sizeof(float)
                        : (size_t)ceil(sl_compressor_bits(&t->config->compressor, count) / 8);
}

/* Those parts that begin in the range, which leave when its gradient is there. */
static void tell_parts(const teller *t, uint32_t rank, uint32_t number,
                       const sl_exchange_step *step, const sl_range *within) {
    const sl_range *all = &step->published;
    const size_t bytes = bytes_of(t, step->stage, all->count),
                 parts = (bytes + t->chunk_bytes - 1) / t->chunk_bytes;
    bool begun = false;
    for (size_t p = 0; p < parts; p++) {
        const size_t first = all->from + all->count * p / parts;
        if (first < within->from || first - within->from >= within->count)
            continue;
        if (!begun) {
            sl_timeline_send(t->timeline, rank, t->round, number, false, step->out.peers,
                             step->out.count);
            sl_timeline_ready(t->timeline, sl_gradient_share(within->from, t->dimension));
        }
        begun = true;
        sl_timeline_part(t->timeline,
                         bytes * (p + 1) / parts - bytes * p / parts + SL_FRAME_HEADER_BYTES);
    }
}

static void tell_message(const teller *t, uint32_t rank, uint32_t number,
                         const sl_exchange_step *step) {
    const sl_range whole = {0, SIZE_MAX};
    if (t->early == NULL)
        tell_parts(t, rank, number, step, &whole);
    for (size_t i = 0; t->early != NULL && i < t->early->count; i++)
        tell_parts(t, rank, number, step, &t->early->items[i]);
}

/* false: there is no step of that number. */
static bool tell_step(const teller *t, uint32_t number) {
    const sl_state state = {.config = t->config, .nodes = t->nodes, .round = t->round};
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        sl_exchange_step step;
        if (!sl_route_step(&t->routes[rank], t->round, number, &step))
            return false;
        const bool wanted = step.stage->wanted == NULL || step.stage->wanted(&state);
        if (wanted && step.published.count > 0)
            tell_message(t, rank, number, &step);
    }
    return true;
}

static void tell(const teller *t) {
    for (uint32_t number = 0; tell_step(t, number); number++)
        ;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        sl_timeline_end_node_round(t->timeline, rank, UINT32_MAX);
    sl_timeline_end_round(t->timeline);
}

int sl_timeline_exchange(sl_timeline *timeline, const sl_algorithm_config *config,
                         const sl_topology *topology, const sl_shapes *shapes, size_t chunk_bytes,
                         uint64_t round, const sl_ranges *early, bool apart, sl_error *error) {
    teller t = {.timeline = timeline,
                .algorithm = sl_algorithm_of(config, error),
                .config = config,
                .nodes = sl_topology_nodes(topology),
                .chunk_bytes = chunk_bytes,
                .dimension = shapes->dimension,
                .round = round,
                .early = early};
    if (t.algorithm == NULL)
        return SL_EINVAL;
    const sl_route_kind route = t.algorithm->route;
    if (sl_algorithm_sums_sparse(t.algorithm))
        return sl_fail(error, SL_EINVAL,
                       "timeline: how much of a sum is 0, which %s does not send, only a run tells",
                       config->name);
    if (route != SL_ROUTE_ALL_REDUCE && route != SL_ROUTE_SERVER && route != SL_ROUTE_ALL)
        return sl_fail(error, SL_EINVAL, "timeline: messages of %s go along edges", config->name);
    t.routes = calloc(t.nodes, sizeof *t.routes);
    int result = t.routes != NULL
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "timeline: out of memory for %u nodes", t.nodes);
    uint32_t opened = 0;
    for (; opened < t.nodes && result == 0; opened++)
        result = sl_route_open(&t.routes[opened], t.algorithm, config, topology, NULL, opened,
                               shapes, apart ? early : NULL, error);
    if (result == 0)
        tell(&t);
    while (opened > 0)
        sl_route_close(&t.routes[--opened]);
    free(t.routes);
    return result;
}

/* buffers.c - see buffers.h. */
#include "config/buffers.h"

#include <stdlib.h>

#include "route/form.h"
#include "starling/device.h"

static const size_t receive_bytes_max = 32u << 20;
static const size_t batches_bytes = 4u << 20; /* of a neighbour, for a device: two batches' */
static const size_t near_chunks = 8, distant_chunks = 32; /* 32 of 112 KiB: 700 Mbit/s at 40 ms */
static const size_t shared_chunks = 56; /* nothing is between two that read each other's memory: who
                                           does not run holds the other up after so many */

static uint32_t partners_in_form(const sl_experiment *e, uint32_t rank) {
    const uint32_t nodes = sl_topology_nodes(e->topology);
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, NULL);
    const sl_form form = a != NULL && a->route == SL_ROUTE_MERGE
                             ? sl_form_of_merges(nodes, 1)
                             : sl_form_of(e->algorithm.all_reduce, e->algorithm.group, nodes, 1);
    uint32_t *partners = malloc(nodes * sizeof *partners),
             count = partners != NULL ? sl_form_partners(&form, rank, partners) : nodes - 1;
    free(partners);
    return count;
}

uint32_t sl_receive_degree(const sl_experiment *e, uint32_t rank) {
    const uint32_t *peers;
    const sl_algorithm *algorithm = sl_algorithm_of(&e->algorithm, NULL);
    if (e->membership.on_loss == SL_ON_LOSS_CONTINUE ||
        (algorithm != NULL &&
         (algorithm->route == SL_ROUTE_SERVER || algorithm->route == SL_ROUTE_ALL)))
        return sl_experiment_ranks(e) - 1;
    if (algorithm != NULL &&
        (algorithm->route == SL_ROUTE_ALL_REDUCE || algorithm->route == SL_ROUTE_MERGE))
        return partners_in_form(e, rank);
    const uint32_t most = sl_topology_nodes(e->topology) - 1,
                   degree = sl_topology_peers(e->topology, rank, &peers);
    if (algorithm == NULL || algorithm->route != SL_ROUTE_BOTH)
        return degree;
    const uint32_t both = degree + partners_in_form(e, rank);
    return both < most ? both : most;
}

static uint32_t window_of(const sl_experiment *e, uint32_t rank, size_t chunks) {
    const uint32_t degree = sl_receive_degree(e, rank);
    const size_t fits =
        receive_bytes_max / ((degree ? degree : 1) * (size_t)e->transport.chunk_bytes);
    const size_t taken = chunks < fits ? chunks : fits;
    return taken < 2 ? 2 : (uint32_t)taken;
}

static size_t chunks_of(const sl_experiment *e, bool is_distant) {
    const uint64_t said = e->transport.window_chunks;
    const bool shares = e->transport.memory == SL_MEMORY_AUTO &&
                        !sl_device_describe(e->device, &(sl_device_info){0});
    return said != SL_COUNT_AUTO ? said
           : is_distant          ? distant_chunks
           : shares              ? shared_chunks
                                 : near_chunks;
}

uint32_t sl_host_window(const sl_experiment *e, uint32_t rank) {
    return window_of(e, rank, chunks_of(e, false));
}

uint32_t sl_receive_window(const sl_experiment *e, uint32_t rank, bool is_distant) {
    const size_t wanted = batches_bytes / e->transport.chunk_bytes,
                 batches = wanted < SL_WINDOW_CHUNKS_MAX ? wanted : SL_WINDOW_CHUNKS_MAX,
                 chunks = chunks_of(e, is_distant);
    const bool on_device = sl_device_describe(e->device, &(sl_device_info){0});
    return window_of(e, rank, on_device && batches > chunks ? batches : chunks);
}

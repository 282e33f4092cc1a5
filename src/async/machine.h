/* machine.h - what a driver sees of its node, whichever of the two machines it is: the one that
 * goes in rounds (starling/node.h), or the one that goes at its own times (async.h). Functions are
 * named as there.
 */
#ifndef SL_MACHINE_H
#define SL_MACHINE_H

#include "async/async.h"

/* One of them is there. */
typedef struct sl_machine {
    sl_node *rounds;
    sl_async *own;
} sl_machine;

/* The algorithm says which. */
int sl_machine_open(sl_machine *out, const sl_node_settings *settings, sl_error *error);
void sl_machine_close(sl_machine *machine);
/* What the node waits for. 0: for nothing. */
int sl_machine_name_wait(const sl_machine *machine, sl_error *error);

static inline int sl_machine_step(const sl_machine *m, const sl_event *event, sl_update *update,
                                  sl_error *error) {
    return m->own != NULL ? sl_async_step(m->own, event, update, error)
                          : sl_node_step(m->rounds, event, update, error);
}
static inline float *sl_machine_model(const sl_machine *m) {
    return m->own != NULL ? sl_async_model(m->own) : sl_node_model(m->rounds);
}
static inline const float *sl_machine_point(const sl_machine *m) {
    return m->own != NULL ? sl_async_point(m->own) : sl_node_point(m->rounds);
}
static inline bool sl_machine_piece(const sl_machine *m, size_t index, sl_piece *out) {
    return m->own != NULL ? sl_async_piece(m->own, index, out)
                          : sl_node_piece(m->rounds, index, out);
}
static inline float *sl_machine_gradient(const sl_machine *m) {
    return m->own != NULL ? sl_async_gradient(m->own) : sl_node_gradient_buffer(m->rounds);
}
static inline double sl_machine_push_sum_weight(const sl_machine *m) {
    return m->own != NULL ? sl_async_push_sum_weight(m->own) : sl_node_push_sum_weight(m->rounds);
}
static inline uint64_t sl_machine_round(const sl_machine *m) {
    return m->own != NULL ? sl_async_round(m->own) : sl_node_round(m->rounds);
}
/* Of a node at its own times: its round. */
static inline uint64_t sl_machine_exchange(const sl_machine *m) {
    return m->own != NULL ? sl_async_round(m->own) : sl_node_exchange(m->rounds);
}
static inline uint32_t sl_machine_peers(const sl_machine *m, const uint32_t **peers) {
    return m->own != NULL ? sl_async_peers(m->own, peers) : sl_node_peers(m->rounds, peers);
}
static inline bool sl_machine_varies(const sl_machine *m) {
    return m->own == NULL && sl_node_varies(m->rounds);
}
static inline bool sl_machine_awaits(const sl_machine *m, uint32_t peer) {
    return m->own != NULL ? sl_async_awaits(m->own, peer) != NULL : sl_node_awaits(m->rounds, peer);
}
static inline size_t sl_machine_part_bytes_max(const sl_machine *m) {
    return m->own != NULL ? sl_async_part_bytes_max(m->own) : sl_node_part_bytes_max(m->rounds);
}
static inline size_t sl_machine_memory(const sl_machine *m) {
    return m->own != NULL ? sl_async_memory(m->own) : sl_node_memory(m->rounds);
}
static inline size_t sl_machine_regions(const sl_machine *m, void **bases, size_t *bytes,
                                        size_t max) {
    return m->own != NULL ? sl_async_regions(m->own, bases, bytes, max)
                          : sl_node_regions(m->rounds, bases, bytes, max);
}

#endif

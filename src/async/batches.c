/* batches.c - see batches.h. */
#include "async/batches.h"

#include "async/serving.h"

/* How many are applied together now: nodes that are done commit no more. */
static uint32_t size_of_batch(const sl_async *n) {
    const uint64_t all = sl_async_exchanges_before(n, n->settings.rounds + 1);
    uint32_t active = 0;
    for (uint32_t i = 0; i < n->ranks; i++)
        active += n->served.clocks[i] != SL_TAKES_NO_PART &&
                  (n->view != NULL || n->served.clocks[i] < all);
    return n->algorithm->async->together(n->state.config, active);
}

/* The version that a kept commit was taken at. */
static uint64_t version_of(const sl_async *n, uint32_t rank) {
    return rank == n->settings.rank
               ? n->pulled
               : (uint64_t)sl_queue_first(&n->inbox.queues[sl_async_slot(n, rank)])->scalar;
}

static bool is_current(const sl_async *n, uint32_t rank) {
    return sl_serving_has(n, rank) && version_of(n, rank) >= n->served.batch.version;
}

/* Those that were here before, then the others by rank; at one instant nobody is first. */
static void choose_batch(sl_async *n, uint32_t size) {
    sl_batch *batch = &n->served.batch;
    batch->left = size;
    for (int early = 1; early >= 0; early--)
        for (uint32_t i = 0; i < n->ranks && size > 0; i++)
            if (is_current(n, i) && batch->early[i] == (early == 1)) {
                batch->chosen[i] = true;
                size--;
            }
}

/* Are enough of them here? Fewer are enough when others are done. */
static bool is_batch_here(const sl_async *n) {
    uint32_t here = 0;
    for (uint32_t i = 0; i < n->ranks; i++)
        here += is_current(n, i);
    return here > 0 && here >= size_of_batch(n);
}

static void begin_batch(sl_async *n) {
    sl_batch *batch = &n->served.batch;
    if (is_batch_here(n))
        choose_batch(n, size_of_batch(n));
    for (uint32_t i = 0; i < n->ranks; i++)
        batch->early[i] = is_current(n, i);
}

/* It comes to nothing: others were first. */
static void drop_commit(sl_async *n, uint32_t rank) {
    uint64_t number = n->out.number;
    if (rank == n->settings.rank) {
        n->served.holds_own = false;
    } else {
        sl_queue *queue = &n->inbox.queues[sl_async_slot(n, rank)];
        number = sl_queue_first(queue)->exchange;
        for (uint32_t part = 0; part < n->own->parts; part++) {
            sl_inbox_release(&n->inbox, sl_queue_first(queue)->token);
            sl_queue_drop_first(queue);
        }
    }
    sl_serving_count(n, rank, number);
    sl_async_note(n, &(sl_act){.kind = SL_ACT_COMMIT, .peer = rank, .number = number});
}

static int apply_of_batch(sl_async *n, uint32_t rank, sl_error *error) {
    sl_batch *batch = &n->served.batch;
    batch->chosen[rank] = false;
    batch->version += --batch->left == 0;
    return sl_serving_apply(n, rank, error);
}

/* As its log says. */
static int repeat_commit(sl_async *n, sl_error *error) {
    const sl_act *act = n->expected;
    if (act == NULL || act->kind != SL_ACT_COMMIT || !sl_serving_has(n, act->peer))
        return 0;
    if (act->to > 0)
        return sl_serving_apply(n, act->peer, error);
    drop_commit(n, act->peer);
    return 0;
}

/* One commit in a step, by rank. */
int sl_batch_take(sl_async *n, sl_error *error) {
    const sl_batch *batch = &n->served.batch;
    if (n->repeats)
        return repeat_commit(n, error);
    if (batch->left == 0)
        begin_batch(n);
    for (uint32_t i = 0; i < n->ranks; i++)
        if (batch->left > 0 && batch->chosen[i])
            return apply_of_batch(n, i, error);
    for (uint32_t i = 0; i < n->ranks; i++)
        if (sl_serving_has(n, i) && !is_current(n, i)) {
            drop_commit(n, i);
            return 0;
        }
    return 0;
}

/* Is one to be applied, or dropped, or noted as early? */
bool sl_batch_has_work(const sl_async *n) {
    const sl_batch *batch = &n->served.batch;
    bool any = batch->left > 0 || is_batch_here(n);
    for (uint32_t i = 0; i < n->ranks && !any; i++)
        any = sl_serving_has(n, i) && (!is_current(n, i) || !batch->early[i]);
    return n->repeats ? n->expected != NULL && n->expected->kind == SL_ACT_COMMIT &&
                            sl_serving_has(n, n->expected->peer)
                      : any;
}

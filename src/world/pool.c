/* pool.c - receive buffers that outlive connections; see fabric.h.
 *
 * A connection that breaks leaves buffers behind whose messages are not combined yet. The next
 * connection to the same peer posts the rest, and these as they become free. A closed endpoint
 * writes to no buffer any more, but may still report one: so each connection has operations of its
 * own for the same buffers.
 *
 * TCP keeps what comes until it is received. So few receives are posted, in the buffers that were
 * used last: those stay in cache. Other providers want a receive for whatever comes.
 *
 * A device copies messages at once that lie in a row. So there buffers are posted in turn: a
 * control frame's, which is free at once, waits for the data before it. A few do at most.
 */
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "starling/vec.h"
#include "world/fabric_state.h"

enum { WAITING_MAX = 3, POSTED_AT_ONCE = 2 };

static uint32_t posted_at_once(const sl_fabric *f, const sl_buffers *b) {
    const bool tcp = f->info->ep_attr->protocol == FI_PROTO_SOCK_TCP;
    return b->vec->on_host && tcp ? POSTED_AT_ONCE : b->count;
}

int sl_pool_open(sl_pool **out, sl_fabric *fabric, const sl_buffers *b, void *owner,
                 sl_error *error) {
    sl_pool *p = calloc(1, sizeof *p);
    if (p != NULL) {
        *p = (sl_pool){.fabric = fabric,
                       .vec = b->vec,
                       .owner = owner,
                       .count = b->count,
                       .stride = sl_round_up(b->bytes, SL_VEC_ALIGNMENT),
                       .rest_bytes = b->rest_bytes,
                       .posted_max = posted_at_once(fabric, b)};
        p->buffers = calloc(b->count, sizeof *p->buffers);
        p->free = calloc(b->count, sizeof *p->free);
        p->memory = b->vec->allocate_host(b->count * p->stride);
    }
    if (p == NULL || p->buffers == NULL || p->free == NULL || p->memory == NULL) {
        sl_pool_close(&p);
        return sl_fail(error, SL_ENOMEM,
                       "fabric: out of memory for %u receive buffers of %zu bytes", b->count,
                       b->bytes);
    }
    for (uint32_t i = 0; i < b->count; i++)
        p->buffers[i].base =
            (sl_buffer){.pool = p,
                        .data = p->memory + i * p->stride,
                        .rest = b->rest != NULL ? b->rest + i * b->rest_bytes : NULL};
    int result = sl_fabric_register_range(fabric, p->memory, b->count * p->stride, -1, FI_RECV,
                                          &p->mr, error);
    if (result != 0)
        sl_pool_close(&p);
    else
        *out = p;
    return result;
}

void sl_pool_close(sl_pool **pool) {
    sl_pool *p = *pool;
    if (p == NULL)
        return;
    *pool = NULL;
    CLOSE(p->mr);
    free(p->buffers);
    free(p->free);
    p->vec->release_host(p->memory);
    free(p);
}

void *sl_pool_owner(const sl_pool *pool) {
    return pool->owner;
}

static void post(sl_connection *c, uint32_t number) {
    const int result = sl_connection_post(&c->receives[number]);
    if (result != 0)
        sl_connection_take_down(c, fi_strerror(-result));
}

static bool is_connected(const sl_pool *pool) {
    return pool->connection != NULL && !pool->connection->down;
}

/* What is posted may take the connection down. */
static void post_free(sl_pool *pool) {
    while (pool->free_count > 0 && pool->posted < pool->posted_max && is_connected(pool)) {
        pool->posted++;
        post(pool->connection, pool->free[--pool->free_count]);
    }
}

void sl_connection_grant(sl_connection *c, sl_pool *pool) {
    c->receives = calloc(pool->count, sizeof *c->receives);
    if (c->receives == NULL) {
        sl_connection_take_down(c, "out of memory for receives");
        return;
    }
    c->pool = pool;
    pool->connection = c;
    pool->waiting = pool->posted = pool->free_count = 0;
    for (uint32_t i = pool->count; i-- > 0;) {
        c->receives[i] = (operation){.connection = c,
                                     .kind = OPERATION_RECEIVE,
                                     .buffer = &pool->buffers[i].base,
                                     .buffer_bytes = pool->stride};
        pool->buffers[i].waits = false;
        if (!pool->buffers[i].held)
            pool->free[pool->free_count++] = i;
    }
    post_free(pool);
}

/* Whoever heard of it may have closed the connection. */
void sl_pool_top_up(const operation *o) {
    sl_pool *pool = o->connection->pool;
    if (o->kind != OPERATION_RECEIVE || o == &o->connection->first || pool == NULL)
        return;
    pool->posted--;
    post_free(pool);
}

static void give_back(sl_pool *pool, uint32_t number) {
    pool->free[pool->free_count++] = number;
    post_free(pool);
}

static void post_waiting(sl_pool *pool, uint32_t number) {
    pool->buffers[number].waits = false;
    pool->waiting--;
    give_back(pool, number);
}

/* As far as the next one that is held; and others than that if too many wait. */
static void post_in_turn(sl_pool *pool) {
    while (pool->waiting > 0 && !pool->buffers[pool->next].held) {
        if (pool->buffers[pool->next].waits)
            post_waiting(pool, pool->next);
        pool->next = (pool->next + 1) % pool->count;
    }
    for (uint32_t i = 0; pool->waiting > WAITING_MAX && i < pool->count; i++)
        if (pool->buffers[i].waits)
            post_waiting(pool, i);
}

void sl_buffer_release(sl_buffer *buffer) {
    sl_pool *pool = buffer->pool;
    if (pool == NULL)
        return;
    pooled *p = (pooled *)buffer;
    p->held = false;
    if (!is_connected(pool))
        return;
    if (pool->vec->on_host) {
        give_back(pool, (uint32_t)(p - pool->buffers));
        return;
    }
    p->waits = true;
    pool->waiting++;
    post_in_turn(pool);
}

/* pool.c - receive buffers that outlive connections; see fabric.h.
 *
 * A connection that breaks leaves buffers behind whose messages are not combined yet. The next
 * connection to the same peer posts the rest, and these as they become free. A closed endpoint
 * writes to no buffer any more, but may still report one: so each connection has operations of its
 * own for the same buffers.
 */
#include <stdlib.h>

#include "base/round_up.h"
#include "starling/vec.h"
#include "world/fabric_state.h"

int sl_pool_open(sl_pool **out, sl_fabric *fabric, const sl_buffers *b, void *owner,
                 sl_error *error) {
    sl_pool *p = calloc(1, sizeof *p);
    if (p != NULL) {
        *p = (sl_pool){.fabric = fabric,
                       .vec = b->vec,
                       .owner = owner,
                       .count = b->count,
                       .stride = sl_round_up(b->bytes, SL_VEC_ALIGNMENT),
                       .rest_bytes = b->rest_bytes};
        p->buffers = calloc(b->count, sizeof *p->buffers);
        p->memory = b->vec->allocate_host(b->count * p->stride);
    }
    if (p == NULL || p->buffers == NULL || p->memory == NULL) {
        sl_pool_close(&p);
        return sl_fail(error, SL_ENOMEM,
                       "fabric: out of memory for %u receive buffers of %zu bytes", b->count,
                       b->bytes);
    }
    for (uint32_t i = 0; i < b->count; i++)
        p->buffers[i].base = (sl_buffer){p, p->memory + i * p->stride,
                                         b->rest != NULL ? b->rest + i * b->rest_bytes : NULL};
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

void sl_connection_grant(sl_connection *c, sl_pool *pool) {
    c->receives = calloc(pool->count, sizeof *c->receives);
    if (c->receives == NULL) {
        sl_connection_take_down(c, "out of memory for receives");
        return;
    }
    c->pool = pool;
    pool->connection = c;
    for (uint32_t i = 0; i < pool->count && !c->down; i++) {
        c->receives[i] = (operation){.connection = c,
                                     .kind = OPERATION_RECEIVE,
                                     .buffer = &pool->buffers[i].base,
                                     .buffer_bytes = pool->stride};
        if (!pool->buffers[i].held)
            post(c, i);
    }
}

void sl_buffer_release(sl_buffer *buffer) {
    sl_pool *pool = buffer->pool;
    if (pool == NULL)
        return;
    pooled *p = (pooled *)buffer;
    p->held = false;
    if (pool->connection != NULL && !pool->connection->down)
        post(pool->connection, (uint32_t)(p - pool->buffers));
}

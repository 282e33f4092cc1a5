/* numbers.c - x, in the caller's memory: a snapshot of it, what a round makes of it, checksums; see
 * state.h.
 *
 * On the host these are passes over memory, which one core does not fill: the driver's thread,
 * which waits then, takes a share. The bits do not depend on who does what.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "session/state.h"
#include "vec/asked.h"
#include "wire/checksum.h"

enum {
    NAME_BYTES = 64,
    PIECE = 1 << 18, /* elements that a thread takes at a time */
    BLOCK = 1 << 14  /* that have a checksum of their own: fewer than a frame carries */
};

/* ---- where x is ---- */

size_t sl_session_tensors(const sl_session *s) {
    return s->layout.ends != NULL ? s->layout.count : 1;
}

size_t sl_session_end_of(const sl_session *s, size_t tensor) {
    return s->layout.ends != NULL ? s->layout.ends[tensor] : s->layout.dimension;
}

size_t sl_session_beginning_of(const sl_session *s, size_t tensor) {
    return tensor > 0 ? s->layout.ends[tensor - 1] : 0;
}

float *sl_session_memory_of(const sl_session *s, const sl_where *x, size_t tensor) {
    return x->whole != NULL ? x->whole + sl_session_beginning_of(s, tensor) : x->tensors[tensor];
}

int sl_session_place(sl_session *s, float *const *tensors, sl_error *error) {
    int result = sl_session_check_hook(s, "place", error);
    if (result == 0 && tensors == NULL)
        result = sl_fail(error, SL_EINVAL, "place: tensors is NULL");
    const size_t count = result == 0 ? sl_session_tensors(s) : 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "tensor %zu of %zu", i, count);
        result = sl_session_check_floats(s, "place", name, tensors[i], error);
    }
    if (result == 0 && s->memory.places == NULL &&
        (s->memory.places = calloc(count, sizeof *s->memory.places)) == NULL)
        result = sl_fail(error, SL_ENOMEM, "place: out of memory for %zu tensors", count);
    if (result == 0)
        memcpy(s->memory.places, tensors, count * sizeof *tensors);
    return result;
}

int sl_session_locate(const sl_session *s, const char *call, const float *x, sl_where *out,
                      sl_error *error) {
    *out = (sl_where){.whole = (float *)x, .tensors = s->memory.places};
    return x == NULL && s->memory.places != NULL ? 0
                                                 : sl_session_check_floats(s, call, "x", x, error);
}

/* ---- passes over it ---- */

typedef enum pass_kind { TAKE, LEAVE, MOVE } pass_kind;

/* TAKE: vector <- x. LEAVE: x <- vector. MOVE: x <- vector + (x - snapshot). */
typedef struct pass {
    sl_session *session;
    const sl_where *x;
    float *vector;
    const float *snapshot;
    pass_kind kind;
    _Atomic size_t next; /* the first element that nobody has taken */
} pass;

static void do_part(const pass *p, float *x, size_t at, size_t count) {
    const sl_vec_ops *vec = p->session->memory.vec;
    float *vector = p->vector + at;
    if (p->kind == TAKE)
        vec->copy(vector, x, count * sizeof *x);
    else if (p->kind == LEAVE)
        vec->copy(x, vector, count * sizeof *x);
    else
        vec->combine(x, (const float *const[]){x, p->snapshot + at, vector},
                     (const float[]){1, -1, 1}, 3, count);
}

/* Of rising ends (count, at least 1), of which the last is beyond the element. */
static size_t first_beyond(const size_t *ends, size_t count, size_t element) {
    size_t low = 0, high = count - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ends[middle] > element)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

size_t sl_session_tensor_at(const sl_session *s, size_t element) {
    return s->layout.ends != NULL ? first_beyond(s->layout.ends, s->layout.count, element) : 0;
}

static void do_range(const pass *p, size_t from, size_t to) {
    const sl_session *s = p->session;
    for (size_t tensor = sl_session_tensor_at(s, from); from < to; tensor++) {
        const size_t end = sl_session_end_of(s, tensor) < to ? sl_session_end_of(s, tensor) : to;
        do_part(p,
                sl_session_memory_of(s, p->x, tensor) + (from - sl_session_beginning_of(s, tensor)),
                from, end - from);
        from = end;
    }
}

static void take_pieces(void *pass_) {
    pass *p = pass_;
    const size_t d = p->session->layout.dimension;
    size_t from;
    while ((from = atomic_fetch_add(&p->next, PIECE)) < d)
        do_range(p, from, d - from < PIECE ? d : from + PIECE);
}

static void run_pass(pass *p) {
    sl_session *s = p->session;
    const size_t d = s->layout.dimension;
    if (s->memory.vec->guest == NULL && d > 2 * PIECE) {
        sl_session_share_work(s, take_pieces, p);
        return;
    }
    sl_session_enter_stream(s);
    do_range(p, 0, d);
    sl_session_leave_stream(s);
}

void sl_session_copy_x(sl_session *s, const sl_where *x, float *to) {
    run_pass(&(pass){.session = s, .x = x, .vector = to, .kind = TAKE});
    pthread_mutex_lock(&s->shared.mutex);
    s->shared.copied += sl_session_bytes(s);
    pthread_mutex_unlock(&s->shared.mutex);
}

int sl_session_snapshot(sl_session *s, const char *call, const sl_where *x, bool lent,
                        sl_error *error) {
    float *room = lent ? sl_session_take_room(s) : NULL;
    int result = room != NULL ? 0 : sl_session_open_snapshot(s, call, error);
    if (result != 0)
        return result;
    if (room != NULL)
        s->memory.snapshot = room;
    sl_session_copy_x(s, x, s->memory.snapshot);
    return 0;
}

int sl_session_take_x(sl_session *s, const char *call, const sl_where *x, bool lent,
                      const float **out, sl_error *error) {
    int result = x->whole != NULL ? 0 : sl_session_snapshot(s, call, x, lent, error);
    *out = x->whole != NULL ? x->whole : s->memory.snapshot;
    return result;
}

void sl_session_leave_x(sl_session *s, const sl_where *x, bool moved) {
    sl_session_take_turn(s);
    run_pass(&(pass){.session = s,
                     .x = x,
                     .vector = (float *)s->shared.model,
                     .snapshot = s->memory.snapshot,
                     .kind = moved ? MOVE : LEAVE});
    sl_session_give_turn(s);
}

/* ---- are they finite? ---- */

static size_t first_not_finite(const float *x, size_t count) {
    size_t i = 0;
    while (i < count && isfinite(x[i]))
        i++;
    return i;
}

bool sl_session_check_numbers(sl_session *s, const float *x, size_t from, size_t count) {
    sl_error error = {.code = 0};
    if (sl_vec_are_finite(s->memory.vec, x, count))
        return true;
    if (s->memory.vec->fence(&error) != 0) {
        sl_session_fail(s, &error);
        return false;
    }
    char where[SL_SESSION_TEXT_MAX];
    const float *seen = sl_session_view_some(s, x, count);
    size_t at = first_not_finite(seen, count);
    sl_layout_name_element(&s->layout, from + at, where, sizeof where);
    sl_fail_node(&error, SL_EDIVERGED, s->rank, s->shared.round, "x is %g at %s",
                 at < count ? (double)seen[at] : NAN, where);
    sl_session_fail(s, &error);
    return false;
}

/* ---- checksums ---- */

static uint64_t checksum_of(sl_session *s, const float *memory, size_t count) {
    sl_session_enter_stream(s);
    const float *seen = sl_session_view_some(s, memory, count);
    sl_session_leave_stream(s);
    return sl_checksum(seen, count * sizeof *seen);
}

uint64_t sl_session_checksum(sl_session *s, const sl_where *x) {
    uint64_t sum = SL_HASH_START;
    for (size_t i = 0; i < sl_session_tensors(s); i++)
        sum =
            sl_hash_word(sum, checksum_of(s, sl_session_memory_of(s, x, i),
                                          sl_session_end_of(s, i) - sl_session_beginning_of(s, i)));
    return sum;
}

/* ---- what is borrowed ---- */

/* On a GPU a tensor is one block, as each is copied to the host. */
static size_t block_limit(const sl_session *s) {
    return s->memory.vec->guest != NULL ? s->layout.dimension : BLOCK;
}

static int open_blocks(sl_session *s, sl_error *error) {
    const size_t limit = block_limit(s), tensors = sl_session_tensors(s);
    sl_blocks *b = &s->caller.blocks;
    size_t count = 0;
    for (size_t i = 0; i < tensors; i++)
        count += (sl_session_end_of(s, i) - sl_session_beginning_of(s, i) + limit - 1) / limit;
    if (b->ends == NULL)
        b->ends = calloc(count, sizeof *b->ends);
    if (b->sums == NULL)
        b->sums = calloc(count, sizeof *b->sums);
    if (b->ends == NULL || b->sums == NULL)
        return sl_fail(error, SL_ENOMEM, "begin: out of memory for %zu checksums", count);
    for (size_t i = 0, at = 0; i < tensors; i++)
        while (at < sl_session_end_of(s, i)) {
            at = sl_session_end_of(s, i) - at < limit ? sl_session_end_of(s, i) : at + limit;
            b->ends[b->count++] = at;
        }
    return 0;
}

static uint64_t sum_of_block(sl_session *s, size_t block) {
    const size_t *ends = s->caller.blocks.ends, from = block > 0 ? ends[block - 1] : 0;
    return checksum_of(s, s->caller.round.borrowed + from, ends[block] - from);
}

int sl_session_borrow(sl_session *s, const float *x, uint64_t round, sl_error *error) {
    int result = s->caller.blocks.count == 0 ? open_blocks(s, error) : 0;
    if (result != 0)
        return result;
    s->caller.round.borrowed = x;
    s->caller.round.borrowed_in = round;
    for (size_t i = 0; i < s->caller.blocks.count; i++)
        s->caller.blocks.sums[i] = sum_of_block(s, i);
    return 0;
}

int sl_session_fail_changed(sl_session *s, size_t element, sl_error *error) {
    char name[SL_SESSION_TEXT_MAX];
    sl_layout_name_tensor(&s->layout, sl_session_tensor_at(s, element), name, sizeof name);
    return sl_fail_node(error, SL_EINVAL, s->rank, s->caller.round.borrowed_in,
                        "%s%s was changed between begin and end, while the exchange read it "
                        "(options.borrow): end comes first, or leave options.borrow 0",
                        name[0] == '\0' || name[0] == ' ' ? "x" : "", name);
}

int sl_session_check_borrowed(sl_session *s, size_t from, size_t to, sl_error *error) {
    const sl_blocks *b = &s->caller.blocks;
    size_t block = first_beyond(b->ends, b->count, from);
    for (; from < to && sum_of_block(s, block) == b->sums[block]; block++)
        from = b->ends[block];
    return from >= to ? 0 : sl_session_fail_changed(s, b->ends[block] - 1, error);
}

/* saving.c - a session's state: given to the caller, and taken back; see starling/session.h.
 *
 * The bytes are those of a checkpoint's file: the node's pieces, and where the caller stood.
 * Between offer, or begin, and end, a state is that of the round's end, which end then only hands
 * out. So no state holds a message.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/image_reader.h"
#include "session/state.h"

enum { NUMBERS = 4, VECTORS = 2, PIECES = NUMBERS + VECTORS };
static const char source_name[] = "load: the state";

/* What a state holds beside the node's pieces; each vector only if a number says so. */
static sl_image_extras extras_of(sl_session *s, sl_piece pieces[PIECES]) {
    size_t count = NUMBERS;
    pieces[0] = (sl_piece){.name = "form", .whole = &s->moment.form};
    pieces[1] = (sl_piece){.name = "x", .whole = &s->moment.sum};
    pieces[2] = (sl_piece){.name = "behind", .whole = &s->moment.behind};
    pieces[3] = (sl_piece){.name = "apart", .whole = &s->moment.apart};
    if (s->moment.behind)
        pieces[count++] = (sl_piece){.name = "before", .vector = s->base};
    if (s->moment.apart)
        pieces[count++] = (sl_piece){.name = "snapshot", .vector = s->snapshot};
    return (sl_image_extras){pieces, count};
}

static size_t vectors_of(const sl_moment *m) {
    return (m->behind ? 1 : 0) + (m->apart ? 1 : 0);
}

/* A run that was started again may have another id. What a session does not use counts as equal. */
static int find_owner(const sl_session *s, sl_checkpoint_owner *out, sl_error *error) {
    const sl_task task = sl_session_task(s);
    return sl_checkpoint_owner_of(out, s->experiment, &task, 0, error);
}

/* ---- saving ---- */

void sl_session_write(sl_session *s) {
    sl_piece pieces[PIECES];
    const sl_image_extras extras = extras_of(s, pieces);
    sl_image_take(&s->image, s->node, s->rank, &extras);
    sl_image_seal(&s->image);
}

/* May x be saved now? Waits for the round under way. */
static int prepare(sl_session *s, const float *x, sl_where *at, const uint64_t *bytes,
                   sl_error *error) {
    int result = sl_session_check_call(s, "save", error);
    if (result == 0 && !s->started)
        result = sl_fail(error, SL_EINVAL, "save: start comes first");
    if (result == 0)
        result = sl_session_locate(s, "save", x, at, error);
    if (result == 0 && s->borrowed != NULL && x != s->borrowed)
        result = sl_fail(error, SL_EINVAL,
                         "save: x is other memory than begin had; with options.borrow it must be "
                         "the same");
    if (result == 0 && bytes == NULL)
        result = sl_fail(error, SL_EINVAL, "save: bytes is NULL; it must be a place for a number");
    return result == 0 && s->in_round ? sl_session_finish_round(s, error) : result;
}

static sl_moment moment_of(sl_session *s, const sl_where *x) {
    const sl_where snapshot = {.whole = s->snapshot};
    const uint64_t sum = sl_session_checksum(s, x);
    return (sl_moment){.round = sl_session_round(s) - 1,
                       .form = s->in_round ? 1 + (uint64_t)s->begun : 0,
                       .sum = sum,
                       .behind = s->behind,
                       .apart = s->in_round && s->borrowed == NULL &&
                                sl_session_checksum(s, &snapshot) != sum};
}

static int write_state(sl_session *s, size_t vectors, void *state, sl_error *error) {
    sl_checkpoint_owner owner;
    int result = find_owner(s, &owner, error);
    if (result == 0)
        result = sl_image_open(&s->image, vectors, state, s->vec, &owner, error);
    if (result != 0)
        return sl_session_run_short(s, "save", vectors * sizeof *s->image.names, error);
    if (s->simulation != NULL) { /* whose nodes all rest */
        sl_session_follow_driver(s);
        sl_session_write(s);
    } else {
        sl_session_wish(s, WISH_SAVE);
        result = sl_session_wait(s, error);
    }
    sl_image_close(&s->image);
    return result;
}

int sl_session_save(sl_session *s, const float *x, void *state, uint64_t *bytes, sl_error *error) {
    sl_where at;
    int result = prepare(s, x, &at, bytes, error);
    if (result != 0)
        return result;
    s->moment = moment_of(s, &at);
    if (s->moment.round == 0)
        return sl_fail(error, SL_EINVAL,
                       "save: no round has ended yet: there is nothing to go on from");
    const size_t vectors = s->vectors + vectors_of(&s->moment);
    const uint64_t wanted = sl_image_bytes(vectors, s->layout.dimension);
    if (state != NULL && *bytes < wanted)
        return sl_fail(error, SL_EINVAL,
                       "save: state has room for %" PRIu64 " bytes; it takes %" PRIu64, *bytes,
                       wanted);
    *bytes = wanted;
    return state != NULL ? write_state(s, vectors, state, error) : 0;
}

/* ---- loading ---- */

static int read_moment(const sl_image_reader *r, sl_session *s, sl_error *error) {
    sl_piece pieces[PIECES];
    sl_piece round = {.name = "round", .whole = &s->moment.round};
    int result = sl_image_reader_number(r, &round, error);
    extras_of(s, pieces);
    for (size_t i = 0; i < NUMBERS && result == 0; i++)
        result = sl_image_reader_number(r, &pieces[i], error);
    if (result == 0 && (s->moment.round == 0 || s->moment.round >= SL_SESSION_ROUNDS))
        result = sl_fail(error, SL_EFILE, "%s: is of round %" PRIu64 ", which no session has saved",
                         source_name, s->moment.round);
    return result;
}

/* All but what the node may lack. */
static int check_state(const sl_image_reader *r, sl_session *s, sl_error *error) {
    sl_checkpoint_owner owner;
    int result = sl_image_reader_expect(r, "rank", "rank", s->rank, error);
    if (result == 0)
        result = find_owner(s, &owner, error);
    if (result == 0)
        result = sl_image_reader_expect_owner(r, &owner, error);
    if (result == 0)
        result = sl_image_reader_check(r, error);
    return result != 0 ? result : read_moment(r, s, error);
}

static int open_reader(sl_image_reader *r, const void *state, uint64_t bytes, sl_error *error) {
    const sl_image_source source = {
        .name = source_name, .handle = -1, .memory = state, .bytes = bytes};
    return sl_image_reader_open(r, &source, error);
}

int sl_session_load(sl_session *s, const void *state, uint64_t bytes, sl_error *error) {
    sl_image_reader r;
    int result = sl_session_check_call(s, "load", error);
    if (result == 0 && s->started)
        result = sl_fail(error, SL_EINVAL,
                         "load: the session has started; a state is loaded before start");
    if (result == 0 && s->options.joins)
        result =
            sl_fail(error, SL_EINVAL,
                    "load: who joins takes a model of the others (options.joins), not a state");
    if (result == 0 && state == NULL)
        result = sl_fail(error, SL_EINVAL, "load: state is NULL; it must be what save has written");
    if (result == 0)
        result = open_reader(&r, state, bytes, error);
    if (result != 0)
        return result;
    s->moment = (sl_moment){0};
    result = check_state(&r, s, error);
    sl_image_reader_close(&r);
    s->state = result == 0 ? state : NULL;
    s->state_bytes = bytes;
    if (result != 0)
        s->moment = (sl_moment){0};
    return result;
}

int sl_session_check_x(sl_session *s, const sl_where *x, sl_error *error) {
    if (s->state == NULL || sl_session_checksum(s, x) == s->moment.sum)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "start: x is not what it was when the state of round %" PRIu64
                   " was saved; restore your parameters first",
                   s->moment.round);
}

int sl_session_stand(sl_session *s, const sl_where *x, sl_error *error) {
    s->in_round = s->over = s->moment.form > 0;
    s->begun = s->moment.form > 1;
    if (!s->in_round || s->moment.apart)
        return 0;
    return s->begun && s->options.borrow && x->whole != NULL
               ? sl_session_borrow(s, x->whole, s->moment.round, error)
               : sl_session_snapshot(s, "start", x, error);
}

static int load_node(sl_session *s, const sl_image_reader *r, sl_error *error) {
    sl_piece pieces[PIECES];
    if (s->moment.behind)
        s->base = s->vec->allocate(s->layout.dimension);
    if (s->moment.apart && s->snapshot == NULL)
        s->snapshot = s->vec->allocate(s->layout.dimension);
    s->behind = s->base != NULL;
    if ((s->moment.behind && !s->behind) || (s->moment.apart && s->snapshot == NULL))
        return sl_fail(error, SL_ENOMEM, "load: out of memory for %zu parameters",
                       s->layout.dimension);
    const sl_image_extras extras = extras_of(s, pieces);
    return sl_image_reader_load(r, s->layout.dimension, s->node, false, s->vec, &extras, error);
}

int sl_session_open_node(sl_session *s, sl_node *node, sl_error *error) {
    sl_image_reader r;
    s->node = node;
    s->vectors = sl_image_vectors(node);
    if (s->state == NULL)
        return 0;
    int result = open_reader(&r, s->state, s->state_bytes, error);
    if (result != 0)
        return result;
    result = load_node(s, &r, error);
    sl_image_reader_close(&r);
    return result;
}

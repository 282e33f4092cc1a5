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

enum { NUMBERS = 4, VECTORS = 2, PIECES = NUMBERS + VECTORS + 1 + SL_VIEW_PIECES };
static const char source_name[] = "load: the state";

static bool at_own_times(const sl_session *s) {
    return sl_experiment_is_asynchronous(s->experiment);
}

/* What a state holds beside the node's pieces; each vector only if a number says so. */
static sl_image_extras extras_of(sl_session *s, sl_piece pieces[PIECES]) {
    sl_moment *moment = &s->caller.moment;
    size_t count = NUMBERS;
    pieces[0] = (sl_piece){.name = "form", .whole = &moment->form};
    pieces[1] = (sl_piece){.name = "x", .whole = &moment->sum};
    pieces[2] = (sl_piece){.name = "behind", .whole = &moment->behind};
    pieces[3] = (sl_piece){.name = "apart", .whole = &moment->apart};
    if (at_own_times(s)) {
        pieces[count++] = (sl_piece){.name = "round", .whole = &moment->round};
        sl_checkpoint_view_pieces(&moment->view, pieces + count);
        count += SL_VIEW_PIECES;
    }
    if (moment->behind)
        pieces[count++] = (sl_piece){.name = "before", .vector = s->driver.base};
    if (moment->apart)
        pieces[count++] = (sl_piece){.name = "snapshot", .vector = s->memory.snapshot};
    return (sl_image_extras){pieces, count};
}

/* At own times rounds may go by while the others come. */
static size_t vectors_of(const sl_session *s) {
    const sl_moment *m = &s->caller.moment;
    return (m->behind || at_own_times(s) ? 1 : 0) + (m->apart ? 1 : 0);
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
    sl_image_take(&s->shared.image, &s->driver.node, s->rank, &extras);
    s->shared.bytes = sl_image_seal(&s->shared.image);
}

void sl_session_cut(sl_session *s, uint64_t round, const sl_checkpoint_view *view) {
    s->caller.moment.round = round;
    s->caller.moment.view = *view;
    s->caller.moment.behind = s->driver.behind;
    if (s->driver.wish == WISH_SAVE)
        sl_session_write(s);
}

/* At own times nothing is on its way as a view begins, which says who is in it. */
static int check_algorithm(const sl_session *s, const char *call, sl_error *error) {
    const bool views =
        s->options.simulation != NULL || s->experiment->membership.on_loss == SL_ON_LOSS_CONTINUE;
    if (!at_own_times(s) || (views && sl_session_nodes(s) <= SL_CHECKPOINT_RANKS_MAX))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s: algorithm \"%s\" lets peers go at their own times here, whose state is cut "
                   "where a view of them begins: that takes membership.on_loss \"continue\", and "
                   "at most %d peers; here are %u",
                   call, s->experiment->algorithm.name, SL_CHECKPOINT_RANKS_MAX,
                   sl_session_nodes(s));
}

/* Rounds may change the model between a round's two halves while the others come; or it is left in
 * parts. */
static int check_halves(const sl_session *s, sl_error *error) {
    const sl_begun begun = s->caller.round.begun;
    if (begun == BEGUN_FINAL)
        return sl_fail(error, SL_EINVAL, "save: a round is under way since final; end comes first");
    return begun == BEGUN_NONE || !at_own_times(s)
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "save: algorithm \"%s\" lets peers go at their own times here, and a "
                         "round is under way; end comes first",
                         s->experiment->algorithm.name);
}

/* May x be saved now? Waits for the round under way. */
static int prepare(sl_session *s, const float *x, sl_where *at, const uint64_t *bytes,
                   sl_error *error) {
    int result = sl_session_check_call(s, "save", error);
    if (result == 0)
        result = check_algorithm(s, "save", error);
    if (result == 0 && !s->caller.started)
        result = sl_fail(error, SL_EINVAL, "save: start comes first");
    if (result == 0)
        result = check_halves(s, error);
    if (result == 0)
        result = sl_session_locate(s, "save", x, at, error);
    if (result == 0 && s->caller.round.borrowed != NULL && x != s->caller.round.borrowed)
        result = sl_fail(error, SL_EINVAL,
                         "save: x is other memory than begin had; with options.borrow it must be "
                         "the same");
    if (result == 0 && bytes == NULL)
        result = sl_fail(error, SL_EINVAL, "save: bytes is NULL; it must be a place for a number");
    if (result == 0 && s->caller.round.begun != BEGUN_NONE)
        result = sl_session_finish_round(s, error);
    return result;
}

static sl_moment moment_of(sl_session *s, const sl_where *x) {
    const sl_where snapshot = {.whole = s->memory.snapshot};
    const uint64_t sum = sl_session_checksum(s, x);
    return (sl_moment){.round = sl_session_round(s) - 1,
                       .form = (uint64_t)s->caller.round.begun,
                       .sum = sum,
                       .behind = s->driver.behind,
                       .apart = s->caller.round.begun != BEGUN_NONE &&
                                s->caller.round.borrowed == NULL &&
                                sl_session_checksum(s, &snapshot) != sum};
}

static int write_state(sl_session *s, size_t vectors, void *state, sl_error *error) {
    sl_checkpoint_owner owner;
    int result = find_owner(s, &owner, error);
    if (result == 0)
        result = sl_image_open(&s->shared.image, vectors, state, s->memory.vec, &owner, error);
    if (result != 0)
        return sl_session_run_short(s, "save", vectors * sizeof *s->shared.image.names, error);
    if (s->options.simulation != NULL && !at_own_times(s)) { /* whose nodes all rest */
        sl_session_follow_driver(s);
        sl_session_write(s);
    } else {
        s->shared.asked.is_void = false;
        sl_session_wish(s, WISH_SAVE);
        result = sl_session_wait(s, error);
    }
    sl_image_close(&s->shared.image);
    return result == 0 && s->shared.asked.is_void ? sl_session_fail_void(s, "save", error) : result;
}

int sl_session_save(sl_session *s, const float *x, void *state, uint64_t *bytes, sl_error *error) {
    sl_where at;
    int result = prepare(s, x, &at, bytes, error);
    if (result != 0)
        return result;
    s->caller.moment = moment_of(s, &at);
    if (s->caller.moment.round == 0 && !at_own_times(s))
        return sl_fail(error, SL_EINVAL,
                       "save: no round has ended yet: there is nothing to go on from");
    const size_t vectors = s->driver.vectors + vectors_of(s);
    const uint64_t wanted = sl_image_bytes(vectors, s->layout.dimension);
    if (state != NULL && *bytes < wanted)
        return sl_fail(error, SL_EINVAL,
                       "save: state has room for %" PRIu64 " bytes; it takes %" PRIu64, *bytes,
                       wanted);
    *bytes = wanted;
    if (state == NULL)
        return 0;
    result = write_state(s, vectors, state, error);
    if (result == 0)
        *bytes = s->shared.bytes;
    return result;
}

/* ---- loading ---- */

static int read_moment(const sl_image_reader *r, sl_session *s, sl_error *error) {
    sl_piece pieces[PIECES];
    sl_piece round = {.name = "round", .whole = &s->caller.moment.round};
    int result = sl_image_reader_number(r, &round, error);
    const sl_image_extras extras = extras_of(s, pieces);
    for (size_t i = 0; i < extras.count && result == 0; i++)
        result = sl_image_reader_number(r, &pieces[i], error);
    if (result == 0 && (s->caller.moment.round == 0 || s->caller.moment.round >= SL_SESSION_ROUNDS))
        result = sl_fail(error, SL_EFILE, "%s: is of round %" PRIu64 ", which no session has saved",
                         source_name, s->caller.moment.round);
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
    if (result == 0 && s->caller.started)
        result = sl_fail(error, SL_EINVAL,
                         "load: the session has started; a state is loaded before start");
    if (result == 0)
        result = check_algorithm(s, "load", error);
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
    s->caller.moment = (sl_moment){0};
    result = check_state(&r, s, error);
    sl_image_reader_close(&r);
    s->caller.beginning = (sl_beginning){0};
    if (result == 0)
        s->caller.beginning = (sl_beginning){.state = state, .bytes = bytes};
    else
        s->caller.moment = (sl_moment){0};
    return result;
}

int sl_session_check_x(sl_session *s, const sl_where *x, sl_error *error) {
    if (s->caller.beginning.state == NULL || sl_session_checksum(s, x) == s->caller.moment.sum)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "start: x is not what it was when the state of round %" PRIu64
                   " was saved; restore your parameters first",
                   s->caller.moment.round);
}

int sl_session_stand(sl_session *s, const sl_where *x, sl_error *error) {
    const uint64_t form = s->caller.moment.form;
    if (form == BEGUN_NONE)
        return 0;
    s->caller.round =
        (sl_caller_round){.begun = form > BEGUN_OFFER ? BEGUN_BEGIN : BEGUN_OFFER, .over = true};
    if (s->caller.moment.apart)
        return 0;
    return s->caller.round.begun == BEGUN_BEGIN && s->options.borrow && x->whole != NULL
               ? sl_session_borrow(s, x->whole, s->caller.moment.round, error)
               : sl_session_snapshot(s, "start", x, false, error);
}

static int load_node(sl_session *s, const sl_image_reader *r, sl_error *error) {
    sl_piece pieces[PIECES];
    if (s->caller.moment.behind)
        s->driver.base = s->memory.vec->allocate(s->layout.dimension);
    if (s->caller.moment.apart && s->memory.own_snapshot == NULL)
        s->memory.own_snapshot = s->memory.vec->allocate(s->layout.dimension);
    s->memory.snapshot = s->memory.own_snapshot;
    s->driver.behind = s->driver.base != NULL;
    if ((s->caller.moment.behind && !s->driver.behind) ||
        (s->caller.moment.apart && s->memory.snapshot == NULL))
        return sl_fail(error, SL_ENOMEM, "load: out of memory for %zu parameters",
                       s->layout.dimension);
    const sl_image_extras extras = extras_of(s, pieces);
    return sl_image_reader_load(r, s->layout.dimension, &s->driver.node, false, s->memory.vec,
                                &extras, error);
}

int sl_session_open_node(sl_session *s, const sl_machine *node, sl_error *error) {
    sl_image_reader r;
    s->driver.node = *node;
    s->driver.vectors = sl_image_vectors(node);
    if (s->caller.beginning.state == NULL)
        return 0;
    int result = open_reader(&r, s->caller.beginning.state, s->caller.beginning.bytes, error);
    if (result != 0)
        return result;
    result = load_node(s, &r, error);
    sl_image_reader_close(&r);
    return result;
}

/* saving.c - see saving.h.
 *
 * Agents on several hosts see their own files only. So those that go on gather, by one sum, which
 * rounds each has: an agent fills its own row and leaves the others zero. All then choose the same
 * round. A second sum says that all have loaded it: data may come from then on.
 */
#include "agent/saving.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"
#include "checkpoint/cut_file.h"

enum { ROUNDS_TOLD = 16, WORDS = 4, ROW = (ROUNDS_TOLD + 1) * WORDS };

/* ---- opening ---- */

static int check_round(const sl_agent *a, uint64_t round, sl_error *error) {
    const uint64_t last = a->settings.task.rounds;
    return round <= last
               ? 0
               : sl_fail_node(error, SL_EINVAL, a->side.rank, round,
                              "the checkpoint is of a round beyond the last, %" PRIu64, last);
}

static int load(sl_agent *a, sl_error *error) {
    sl_saving *s = &a->saving;
    sl_piece totals[SL_RECORD_PIECES];
    sl_record_pieces(&a->record, totals);
    int result = a->node.own == NULL ? check_round(a, s->resumed, error) : 0;
    if (result == 0)
        result = sl_first_view_check(a, error);
    if (result != 0)
        return result;
    s->passed_over_count =
        sl_cut_newer(s->passed_over, SL_LOG_PASSED_MAX, a->settings.checkpoints->folder,
                     a->side.rank, a->side.rank + 1, s->resumed);
    result =
        sl_cut_load(a->settings.checkpoints->folder, (sl_checkpoint_file){s->resumed, a->side.rank},
                    &s->owner, &a->node, a->cohort.resumed.number > 0, a->side.vec,
                    &(sl_image_extras){totals, SL_RECORD_PIECES}, error);
    if (result != 0 || a->node.own == NULL)
        return result;
    a->record.round.round = sl_saving_first_round(a) - 1;
    return check_round(a, sl_async_round(a->node.own), error);
}

uint64_t sl_saving_first_round(const sl_agent *a) {
    const bool apart = a->node.own != NULL && a->saving.resumed > 0;
    const uint64_t own = apart ? sl_async_round(a->node.own) : a->saving.resumed + 1;
    return own > 0 ? own : 1; /* 0: it has not begun */
}

/* On the saver's thread, as the next one. */
static void on_notice(void *context, const char *text) {
    sl_agent_notice(context, "%s", text);
}

static void on_written(void *context, uint64_t round, uint32_t rank, const char *why) {
    sl_agent *a = context;
    sl_log_entry entry = {.kind = SL_LOG_CHECKPOINT,
                          .round = a->node.own != NULL ? a->saving.saved : round};
    (void)rank;
    snprintf(entry.why, sizeof entry.why, "%s", why != NULL ? why : "");
    sl_agent_log(context, &entry);
    if (why == NULL)
        sl_agent_note_saved(a);
    unsigned long long asked = round;
    if (atomic_compare_exchange_strong(&a->saving.awaited, &asked, 0) && why == NULL)
        sl_agent_notice(a, "saved on request: the checkpoint of round %" PRIu64, round);
}

static int open_saver(sl_agent *a, sl_error *error) {
    const sl_saver_settings settings = {.folder = a->settings.checkpoints->folder,
                                        .owner = a->saving.owner,
                                        .from = a->side.rank,
                                        .to = a->side.rank + 1,
                                        .keep = a->settings.experiment->checkpoint.keep,
                                        .resumed =
                                            a->settings.joins ? UINT64_MAX : a->saving.resumed,
                                        .vec = a->side.vec,
                                        .notice = on_notice,
                                        .written = on_written,
                                        .context = a};
    return a->settings.experiment->checkpoint.every > 0
               ? sl_saver_open(&a->saving.saver, &settings, &a->node, error)
               : 0;
}

int sl_saving_begin(sl_agent *a, sl_error *error) {
    const bool known = a->saving.agreement == SL_AGREED;
    const sl_checkpoints *c = a->settings.checkpoints;
    return c != NULL && c->opened == NULL && known ? open_saver(a, error) : 0;
}

int sl_saving_open(sl_agent *a, sl_error *error) {
    const sl_experiment *e = a->settings.experiment;
    const sl_checkpoints *c = a->settings.checkpoints;
    sl_saving *s = &a->saving;
    if (c == NULL)
        return 0;
    s->resumed = c->resume ? c->round : 0;
    if (e->checkpoint.every > 0 && a->node.own != NULL && a->side.ranks > SL_CHECKPOINT_RANKS_MAX)
        return sl_fail(
            error, SL_EINVAL,
            "checkpoint.every: algorithm '%s' lets nodes go at their own times here, and "
            "then a file has room for %d ranks, not for %u; set it to 0",
            e->algorithm.name, (int)SL_CHECKPOINT_RANKS_MAX, a->side.ranks);
    if (c->opened != NULL)
        return c->opened(c->context, a->side.rank, &a->node, error);
    int result = sl_checkpoint_owner_of(&s->owner, e, &a->settings.task, c->run_id, error);
    if (result == 0 && e->checkpoint.every > 0 && a->node.own == NULL)
        result = sl_algorithm_spread(&s->spread, &a->plan.config, e->topology, error);
    if (result != 0)
        return result;
    s->agreement = c->resume && c->round == 0 ? SL_AGREEMENT_OPEN : SL_AGREED;
    return s->resumed > 0 ? load(a, error) : 0;
}

void sl_saving_log(sl_agent *a) {
    const sl_saving *s = &a->saving;
    const uint64_t from = sl_saving_first_round(a);
    const sl_log_entry start = {.kind = SL_LOG_START,
                                .round = a->settings.joins ? 0 : from,
                                .rounds = a->settings.task.rounds,
                                .run_id = a->settings.checkpoints != NULL ? s->owner.run
                                                                          : a->settings.run_id,
                                .incarnation = a->side.incarnation};
    sl_log_entry resume = {.kind = SL_LOG_RESUME,
                           .round = from - 1,
                           .exchange = a->node.own != NULL ? a->cohort.resumed.number : 0,
                           .passed_over_count = s->passed_over_count};
    memcpy(resume.passed_over, s->passed_over, sizeof s->passed_over);
    char *text = sl_experiment_settings(a->settings.experiment);
    sl_agent_log(a, &start);
    if (s->resumed > 0)
        sl_agent_log(a, &resume);
    sl_agent_log(a,
                 &(sl_log_entry){.kind = SL_LOG_SETTINGS, .round = start.round, .settings = text});
    free(text);
}

void sl_saving_close(sl_agent *a) {
    sl_saver_close(&a->saving.saver);
    free(a->saving.rows);
}

/* ---- writing ---- */

static void save(sl_agent *a, uint64_t round, sl_record *record, double patience_s) {
    sl_piece pieces[SL_RECORD_PIECES + SL_VIEW_PIECES];
    sl_checkpoint_view view = sl_first_view_now(a);
    record->times.total = sl_clock_seconds() - a->times.began_s;
    sl_record_pieces(record, pieces);
    sl_checkpoint_view_pieces(&view, pieces + SL_RECORD_PIECES);
    const size_t count = SL_RECORD_PIECES + (view.number > 0 ? SL_VIEW_PIECES : 0);
    sl_saver_take(a->saving.saver, &a->node, round, a->side.rank, &(sl_image_extras){pieces, count},
                  patience_s);
    a->saving.saved = round;
}

/* Files of the view before are of no use without the members that it lacks. */
static bool is_first_without_some(const sl_agent *a, uint64_t round) {
    return round == a->cohort.view.round && sl_first_view_now(a).number > 0;
}

/* Of a view that lacks somebody now no cut is whole: it is made of the next one. */
static bool is_due(const sl_agent *a, sl_cut_kind kind, uint64_t round) {
    return round == a->saving.asked[kind] && a->cohort.cutting == SL_CUTTING_NOTHING;
}

bool sl_saving_end_round(sl_agent *a, const sl_round *round) {
    sl_saving *s = &a->saving;
    const sl_experiment *e = a->settings.experiment;
    if (s->saver == NULL || round->round == s->resumed)
        return false;
    if (a->node.own != NULL) {
        sl_own_cut_round(a, round->round);
        return false;
    }
    s->left = is_due(a, SL_CUT_LEAVE, round->round);
    if (s->left)
        save(a, round->round, &a->record, e->transport.round_timeout_s);
    const bool asked = is_due(a, SL_CUT_GO_ON, round->round);
    if (asked)
        atomic_store(&s->awaited, round->round);
    if (!s->left && (round->round % e->checkpoint.every == 0 || asked ||
                     is_first_without_some(a, round->round)))
        save(a, round->round, &a->record, sl_saving_wait_share * e->transport.timeout_s);
    if (asked)
        s->asked[SL_CUT_GO_ON] = 0;
    return s->left;
}

void sl_saving_leave(sl_agent *a, sl_record *record, bool with_all) {
    sl_saving *s = &a->saving;
    if (s->left) /* it is saved, as it rests */
        return;
    s->left = true;
    s->alone = !with_all || s->saver == NULL;
    const bool at_end =
        !sl_cohort_is_aside(&a->cohort); /* not in the midst of a round that it gave up */
    if (s->saver != NULL && a->node.own == NULL && at_end && s->saved != a->record.round.round)
        save(a, a->record.round.round, record, a->settings.experiment->transport.round_timeout_s);
}

int sl_saving_outcome(sl_agent *a, sl_error *error) {
    const sl_saving *s = &a->saving;
    if (!s->left)
        return 0;
    const int result = s->saver != NULL ? sl_saver_wait(s->saver, error) : 0;
    if (result != 0)
        return result;
    if (s->minority)
        return sl_fail_node(error, SL_ELEFT, a->side.rank, a->record.round.round,
                            "fewer members than membership.quorum were reached for %g s "
                            "(membership.minority_s); it can come back as one that was stopped",
                            a->settings.experiment->membership.minority_s);
    return s->alone ? sl_fail_node(error, SL_ELEFT, a->side.rank, a->record.round.round,
                                   "left on request; the others go on")
                    : sl_fail_node(error, SL_ESAVED, a->side.rank, a->record.round.round,
                                   "ended on request, after a checkpoint");
}

/* ---- what was asked for ---- */

static void tell_of(const sl_agent *a, sl_neighbour *n, sl_cut_kind kind) {
    const sl_frame frame = {
        .type = SL_FRAME_CHECKPOINT, .exchange = a->saving.asked[kind], .step = (uint32_t)kind};
    if (frame.exchange != 0)
        sl_neighbour_send(n, frame, NULL, false);
}

void sl_saving_tell(const sl_agent *a, sl_neighbour *n) {
    for (int kind = 0; kind < SL_CUT_KINDS; kind++)
        tell_of(a, n, (sl_cut_kind)kind);
}

/* What requests are counted by. */
static uint64_t now_of(const sl_agent *a) {
    return a->node.own != NULL ? a->side.now.view : a->side.now.round;
}

/* Of several rounds the first counts; a round that was saved makes place for a later one. An
 * agent that has left leaves no other round. */
static void note(sl_agent *a, sl_cut_kind kind, uint64_t round) {
    uint64_t *asked = &a->saving.asked[kind];
    if (a->saving.left || (*asked >= now_of(a) && *asked <= round && *asked != 0) ||
        (kind == SL_CUT_GO_ON && a->node.own == NULL && round <= a->saving.saved))
        return;
    *asked = round;
    sl_agent_log(a, &(sl_log_entry){.kind = SL_LOG_REQUEST,
                                    .round = a->node.own != NULL ? a->side.now.round : round,
                                    .then = kind == SL_CUT_LEAVE ? SL_LOG_LEAVE : SL_LOG_GO_ON});
    for (sl_neighbour *n = a->neighbours; n < sl_agent_behind(a); n++)
        tell_of(a, n, kind);
}

void sl_saving_turn(sl_agent *a, uint64_t round) {
    if (a->node.own != NULL)
        return;
    for (int kind = 0; kind < SL_CUT_KINDS; kind++) {
        uint64_t *asked = &a->saving.asked[kind];
        const bool missed = *asked != 0 && *asked < round;
        *asked = missed ? 0 : *asked;
        if (missed && !sl_cohort_is_outside(&a->cohort))
            note(a, (sl_cut_kind)kind, round + a->saving.spread);
    }
}

bool sl_saving_ask(sl_agent *a, sl_cut_kind kind) {
    const sl_saving *s = &a->saving;
    const uint64_t under_way = a->side.now.round > s->resumed ? a->side.now.round : s->resumed + 1,
                   next = a->node.own != NULL ? a->side.now.view + 1u : under_way + s->spread;
    if (s->left) /* it ends so */
        return true;
    if (s->saver == NULL || a->phase != PHASE_TRAINING)
        return false;
    if (sl_cohort_is_outside(&a->cohort)) { /* it has no part in a cut */
        if (kind == SL_CUT_LEAVE)
            sl_agent_leave(a);
        return kind == SL_CUT_LEAVE;
    }
    note(a, kind, next);
    return true;
}

int sl_saving_hear(sl_agent *a, const sl_neighbour *from, const sl_frame *frame, sl_error *error) {
    sl_saving *s = &a->saving;
    if (s->saver == NULL || frame->step >= SL_CUT_KINDS || frame->exchange == 0)
        return sl_fail_edge(error, SL_EPROTO, from->rank, a->side.rank, a->side.now.round,
                            "agent %u asks for a checkpoint of round %" PRIu64
                            " and kind %u, which cannot be",
                            from->rank, frame->exchange, frame->step);
    const sl_cut_kind kind = (sl_cut_kind)frame->step;
    if (kind == SL_CUT_LEAVE && sl_cohort_is_outside(&a->cohort))
        sl_agent_leave(a); /* there will be nobody to join */
    else if (a->node.own == NULL ? frame->exchange >= now_of(a) : frame->exchange > now_of(a))
        note(a, kind, frame->exchange);
    else if (a->node.own != NULL && kind == SL_CUT_LEAVE) /* that view has begun: the next one */
        note(a, kind, a->side.now.view + 1u);
    return 0;
}

/* ---- agreeing on a round ---- */

/* Sixteen bits a number: floats hold them, and sums with zeros, as they are. */
static void write_words(float *out, uint64_t value) {
    for (int i = 0; i < WORDS; i++)
        out[i] = (float)(value >> 16 * i & 0xffff);
}

static uint64_t read_words(const float *words) {
    uint64_t value = 0;
    for (int i = 0; i < WORDS; i++)
        value |= (uint64_t)words[i] << 16 * i;
    return value;
}

/* This agent's run, and its newest good files. */
static int fill_row(sl_agent *a, sl_error *error) {
    const char *folder = a->settings.checkpoints->folder;
    float *row = a->saving.rows + (size_t)a->side.rank * ROW;
    sl_checkpoint_file *files = NULL;
    size_t count = 0, good = 0;
    sl_error why = {0};
    write_words(row, a->saving.owner.run);
    int result = sl_checkpoint_list(&files, &count, folder, error);
    for (size_t i = count; result == 0 && i-- > 0 && good < ROUNDS_TOLD;) {
        if (files[i].rank != a->side.rank)
            continue;
        const int checked = sl_checkpoint_check(folder, files[i], &a->saving.owner, NULL, &why);
        if (checked == 0)
            write_words(row + ++good * WORDS, files[i].round);
        else if (checked == SL_ENOMEM) /* nothing is wrong with the file */
            result = sl_fail(error, SL_ENOMEM, "%s", why.text);
        else
            sl_agent_notice(a, "warning: left out: %s", why.text);
    }
    free(files);
    return result != 0 || good > 0
               ? result
               : sl_fail(error, SL_EFILE, "%s: holds no good checkpoint of rank %u%s%s", folder,
                         a->side.rank, why.text[0] != '\0' ? ": " : "; checkpoint.every makes them",
                         why.text);
}

static int gather(sl_agent *a, sl_error *error) {
    const size_t count = (size_t)a->side.ranks * ROW;
    a->saving.rows = calloc(count, sizeof *a->saving.rows);
    if (a->saving.rows == NULL)
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory", a->side.rank);
    int result = fill_row(a, error);
    if (result == 0)
        sl_calls_give(
            &a->calls,
            &(sl_call){SL_CALL_SUM, .share = {.x = a->saving.rows, .count = count, .divisor = 1}});
    return result;
}

static bool has_round(const float *row, uint64_t round) {
    for (int i = 1; i <= ROUNDS_TOLD; i++)
        if (read_words(row + i * WORDS) == round)
            return true;
    return false;
}

/* The first rank that goes on and lacks the round; the number of ranks: none does. */
static uint32_t who_lacks(const sl_agent *a, uint64_t round) {
    uint32_t rank = 0;
    while (rank < a->side.ranks &&
           (!sl_first_view_has(a, rank) || has_round(a->saving.rows + (size_t)rank * ROW, round)))
        rank++;
    return rank;
}

static int check_runs(const sl_agent *a, sl_error *error) {
    for (uint32_t rank = 0; rank < a->side.ranks; rank++) {
        const uint64_t run = read_words(a->saving.rows + (size_t)rank * ROW);
        if (sl_first_view_has(a, rank) && run != a->saving.owner.run)
            return sl_fail(error, SL_EFILE,
                           "agent %u goes on with run %" PRIu64 ", agent %u with run %" PRIu64,
                           rank, run, a->side.rank, a->saving.owner.run);
    }
    return 0;
}

/* The newest of the lowest rank's rounds that all have: all agents find the same. */
static int choose(sl_agent *a, sl_error *error) {
    uint32_t lowest = 0;
    while (!sl_first_view_has(a, lowest))
        lowest++;
    const float *row = a->saving.rows + (size_t)lowest * ROW;
    int result = check_runs(a, error);
    for (int i = 1; result == 0 && i <= ROUNDS_TOLD && a->saving.resumed == 0; i++) {
        const uint64_t round = read_words(row + i * WORDS);
        if (round != 0 && who_lacks(a, round) == a->side.ranks)
            a->saving.resumed = round;
    }
    const uint64_t newest = read_words(row + WORDS);
    if (result == 0 && a->saving.resumed == 0)
        result = sl_fail(error, SL_EFILE,
                         "no round has a good checkpoint of every agent: of round %" PRIu64
                         ", the newest of agent %u, agent %u lacks one",
                         newest, lowest, who_lacks(a, newest));
    else if (result == 0 && a->saving.resumed != newest)
        sl_agent_notice(a,
                        "warning: going on from round %" PRIu64 ": agent %u has none of %" PRIu64,
                        a->saving.resumed, who_lacks(a, newest), newest);
    return result;
}

static int load_chosen(sl_agent *a, sl_error *error) {
    const sl_observer *o = &a->settings.observer;
    int result = choose(a, error);
    if (result == 0)
        result = load(a, error);
    if (result == 0)
        result = open_saver(a, error);
    if (result == 0 && o->resumed != NULL &&
        (result = o->resumed(o->context, sl_saving_first_round(a) - (a->node.own == NULL))) != 0)
        sl_fail(error, result, "the run folder cannot be gone on with: %s",
                sl_error_meaning(result));
    if (result == 0)
        sl_calls_give(
            &a->calls,
            &(sl_call){SL_CALL_SUM, .share = {.x = a->saving.rows, .count = 1, .divisor = 1}});
    return result;
}

int sl_saving_agree(sl_agent *a, sl_error *error) {
    sl_saving *s = &a->saving;
    int result = 0;
    if (s->agreement == SL_AGREEMENT_OPEN) {
        result = gather(a, error);
        s->agreement = SL_AGREEMENT_ASKED;
    } else if (s->agreement == SL_AGREEMENT_ASKED && sl_calls_answered(&a->calls, NULL)) {
        result = load_chosen(a, error);
        s->agreement = SL_AGREEMENT_LOADED;
    } else if (s->agreement == SL_AGREEMENT_LOADED && sl_calls_answered(&a->calls, NULL)) {
        s->agreement = SL_AGREED;
    }
    return result != 0 ? result : s->agreement == SL_AGREED;
}

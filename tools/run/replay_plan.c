/* replay_plan.c - see replay_plan.h. */
#include "run/replay_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MISSING_NAMED = 8 };

/* A start in a log. */
typedef struct begin {
    uint64_t from, rounds, simulations, line;
    uint64_t last; /* round of the end */
    int64_t log;   /* whose it is in; -1: the simulator's */
    bool ended;
    bool joins; /* another process has taken the rank since, which counts rounds from 0 */
    sl_log_outcome outcome;
    char kernels[SL_LOG_WORD_MAX], blas[SL_LOG_WORD_MAX], settings[REPLAY_SETTINGS_MAX];
} begin;

typedef struct begins {
    begin *items; /* (count) */
    size_t count, room;
    bool joined; /* it is in a view */
} begins;

typedef struct reader {
    begins *ranks; /* (ranks) */
    begins shared;
    begins *into;   /* of the file that is read */
    int64_t rank;   /* likewise; -1: the simulator's */
    bool resumes;   /* the line before is a start that does not begin at round 1 */
    uint32_t nodes, /* that the run began with */
        ranks_max;  /* those that may have joined, too */
    uint64_t run_id, breaks, cuts, views;
} reader;

/* ---- one line ---- */

static int refuse_round(const sl_log_entry *entry, const begin *b, sl_error *error) {
    return sl_fail(error, SL_EFILE,
                   "round: %" PRIu64 " is not allowed; the start before it goes on from round "
                   "%" PRIu64 " of %" PRIu64,
                   entry->round, b->from, b->rounds);
}

/* A new process has taken the rank of the one before. Its rounds are of the same stretch. */
static int take_joiner(const reader *r, const sl_log_entry *e, sl_error *error) {
    begin *b = r->into->count > 0 ? &r->into->items[r->into->count - 1] : NULL;
    if (b == NULL || b->rounds != e->rounds)
        return sl_fail(error, SL_EFILE,
                       "round: 0 is not allowed here: it is the start of a process that took the "
                       "rank of another one, in a run of as many rounds");
    b->ended = false;
    b->joins = true;
    b->outcome = SL_LOG_FAILED;
    return 0;
}

static int take_start(reader *r, uint64_t line, const sl_log_entry *e, sl_error *error) {
    if (e->run_id != r->run_id)
        return sl_fail(error, SL_EFILE,
                       "run_id: %" PRIu64 " is another run's; run.json has %" PRIu64, e->run_id,
                       r->run_id);
    if (e->round == 0 && (r->rank < r->nodes || r->into->count > 0))
        return take_joiner(r, e, error);
    if (e->round > 0 && r->rank >= r->nodes)
        return sl_fail(error, SL_EFILE,
                       "round: %" PRIu64 " is not allowed; it must be 0: rank %" PRId64
                       " is beyond the topology, and joins",
                       e->round, r->rank);
    begin b = {.from = e->round > 0 ? e->round - 1 : 0,
               .rounds = e->rounds,
               .simulations = e->simulations,
               .line = line,
               .log = r->rank,
               .outcome = SL_LOG_FAILED};
    memcpy(b.kernels, e->kernels, sizeof b.kernels);
    memcpy(b.blas, e->blas, sizeof b.blas);
    if (b.from > b.rounds)
        return refuse_round(e, &b, error);
    if (r->into->count == r->into->room) {
        const size_t room = r->into->room > 0 ? 2 * r->into->room : 4;
        begin *items = realloc(r->into->items, room * sizeof *items);
        if (items == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for %zu starts", room);
        r->into->items = items;
        r->into->room = room;
    }
    r->into->items[r->into->count++] = b;
    r->resumes = b.from > 0;
    return 0;
}

static int check_node(const reader *r, const sl_log_entry *e, sl_error *error) {
    const bool good =
        r->rank >= 0 ? e->rank == r->rank : e->rank == SL_LOG_ALL || e->rank < r->ranks_max;
    if (good)
        return 0;
    if (e->rank == SL_LOG_ALL)
        return sl_fail(error, SL_EFILE, "node: null is not allowed; it must be %" PRId64, r->rank);
    return sl_fail(error, SL_EFILE, "node: %u is not allowed; this is the log of %s %" PRId64,
                   e->rank, r->rank >= 0 ? "node" : "nodes below",
                   r->rank >= 0 ? r->rank : (int64_t)r->nodes);
}

static int check_peer(const reader *r, const sl_log_entry *e, sl_error *error) {
    return e->peer < r->ranks_max && e->peer != e->rank
               ? 0
               : sl_fail(error, SL_EFILE, "peer: %u is not allowed; it must be another of %u nodes",
                         e->peer, r->ranks_max);
}

/* A simulation tells of its own. */
static int check_view(reader *r, const sl_log_entry *e, sl_error *error) {
    const uint32_t last = e->ranks[e->members - 1];
    if (r->rank < 0)
        return sl_fail(error, SL_EFILE,
                       "event: \"view\": a simulation with faults is repeated by its experiment");
    if (last >= r->ranks_max || e->round <= 1)
        return sl_fail(error, SL_EFILE,
                       "members: rank %u is not allowed; there are %u nodes, and the first view "
                       "begins after round 1",
                       last, r->ranks_max);
    for (uint64_t i = 0; i < e->members; i++)
        r->ranks[e->ranks[i]].joined = true;
    return 0;
}

/* A rank that joins, which says so in round 0, has those of the others. */
static int take_settings(begin *b, const sl_log_entry *e, sl_error *error) {
    if (e->round == 0)
        return 0;
    if (e->round != b->from + 1)
        return refuse_round(e, b, error);
    if (e->settings != NULL && strlen(e->settings) >= sizeof b->settings)
        return sl_fail(error, SL_EFILE, "settings: they are longer than %zu bytes",
                       sizeof b->settings - 1);
    snprintf(b->settings, sizeof b->settings, "%s", e->settings != NULL ? e->settings : "");
    return 0;
}

/* What comes after a start. */
static int take_event(reader *r, begin *b, const sl_log_entry *e, sl_error *error) {
    const bool first = r->resumes;
    r->resumes = false;
    switch (e->kind) {
    case SL_LOG_START:
    case SL_LOG_REQUEST: /* of a round ahead, perhaps beyond the last */
        return 0;
    case SL_LOG_RESUME:
        if (!first)
            return sl_fail(error, SL_EFILE,
                           "event: \"resume\" is not allowed here; it follows a \"start\" that "
                           "does not begin with round 1");
        return e->round == b->from ? 0 : refuse_round(e, b, error);
    case SL_LOG_SETTINGS:
        return take_settings(b, e, error);
    case SL_LOG_DOWN:
        r->breaks++;
        break;
    case SL_LOG_CUT:
        r->cuts++;
        return e->round <= b->rounds ? 0 : refuse_round(e, b, error);
    case SL_LOG_VIEW:
        r->views++;
        return check_view(r, e, error);
    case SL_LOG_JOIN:
        if (e->after == 0 || e->after > b->rounds)
            return sl_fail(error, SL_EFILE,
                           "after: %" PRIu64 " is not allowed; there are rounds 1 to %" PRIu64,
                           e->after, b->rounds);
        break;
    case SL_LOG_COMMIT:
        return e->round <= b->rounds ? 0 : refuse_round(e, b, error);
    case SL_LOG_EDGE:
    case SL_LOG_LOST:
    case SL_LOG_UP:
    case SL_LOG_CHECKPOINT:
        break;
    case SL_LOG_END:
        b->ended = true;
        b->outcome = e->outcome;
        b->last = e->round;
        if ((e->outcome == SL_LOG_DONE && e->round != b->rounds) ||
            (e->outcome == SL_LOG_SAVED && e->round <= b->from) || e->round > b->rounds)
            return refuse_round(e, b, error);
        return 0;
    }
    if (e->round > b->rounds + 1 || (e->round < b->from && !b->joins))
        return refuse_round(e, b, error);
    return e->kind == SL_LOG_CHECKPOINT ? 0 : check_peer(r, e, error);
}

static int take_line(void *context, uint64_t line, const sl_log_entry *e, sl_error *error) {
    reader *r = context;
    begin *b = r->into->count > 0 ? &r->into->items[r->into->count - 1] : NULL;
    int result = check_node(r, e, error);
    if (result != 0)
        return result;
    if (e->kind == SL_LOG_START)
        return take_start(r, line, e, error);
    /* The last checkpoint may still be written when all rounds are done. */
    if (b == NULL || (b->ended && e->kind != SL_LOG_CHECKPOINT))
        return sl_fail(error, SL_EFILE, "event: must be \"start\" %s",
                       b == NULL ? "in the first line" : "after an \"end\"");
    return take_event(r, b, e, error);
}

/* ---- the files ---- */

static int read_log(reader *r, const char *folder, int64_t rank, void (*tell)(const char *text),
                    sl_error *error) {
    char path[SL_EVENT_LOG_PATH_MAX], text[SL_EVENT_LOG_PATH_MAX + 128];
    bool torn;
    sl_event_log_path(path, folder, rank);
    r->rank = rank;
    r->into = rank < 0 ? &r->shared : &r->ranks[rank];
    r->resumes = false;
    int result = sl_event_log_read(path, take_line, r, &torn, error);
    if (result == 0 && torn) {
        snprintf(text, sizeof text,
                 "%s: its last line has no end, as a process that was killed leaves it; it is left "
                 "out",
                 path);
        tell(text);
    }
    return result;
}

static bool has_log(const char *folder, int64_t rank) {
    char path[SL_EVENT_LOG_PATH_MAX];
    sl_event_log_path(path, folder, rank);
    return access(path, F_OK) == 0;
}

/* Ranks beyond the topology are there if they have been in a view. */
static bool is_wanted(const reader *r, uint32_t rank) {
    return rank < r->nodes || r->ranks[rank].joined;
}

/* Which ranks have none, where there is none of all nodes. */
static int refuse_missing(const reader *r, const char *folder, uint32_t logs, sl_error *error) {
    char ranks[MISSING_NAMED * 12] = "", more[32] = "";
    uint32_t missing = 0;
    for (uint32_t i = 0; i < r->ranks_max; i++) {
        const size_t used = strlen(ranks);
        if (is_wanted(r, i) && !has_log(folder, i) && missing++ < MISSING_NAMED)
            snprintf(ranks + used, sizeof ranks - used, "%s%u", used > 0 ? ", " : "", i);
    }
    if (missing == 0)
        return 0;
    if (logs == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: holds no log of events (events-RANK.jsonl), from which a run is "
                       "repeated",
                       folder);
    if (missing > MISSING_NAMED)
        snprintf(more, sizeof more, " and %u more", missing - MISSING_NAMED);
    return sl_fail(error, SL_EFILE,
                   "%s: holds the logs of some ranks (events-RANK.jsonl); missing are those of "
                   "ranks %s%s; where agents have folders of their own, copy these files, metrics "
                   "and models into one",
                   folder, ranks, more);
}

static int read_logs(reader *r, const char *folder, void (*tell)(const char *text),
                     sl_error *error) {
    const bool shared = has_log(folder, -1);
    uint32_t logs = 0;
    int result = shared ? read_log(r, folder, -1, tell, error) : 0;
    for (uint32_t i = 0; i < r->ranks_max && result == 0; i++)
        if (has_log(folder, i)) {
            logs++;
            result = read_log(r, folder, i, tell, error);
        }
    return result != 0 || (shared && logs == 0) ? result : refuse_missing(r, folder, logs, error);
}

/* ---- what lasted ---- */

/* Of as many simulations before it: agents began before the next one did. */
static int by_beginning(const void *x, const void *y) {
    const begin *a = x, *b = y;
    if (a->simulations != b->simulations)
        return a->simulations < b->simulations ? -1 : 1;
    if ((a->log < 0) != (b->log < 0))
        return a->log < 0 ? 1 : -1;
    return a->line < b->line ? -1 : 1;
}

/* Those of the simulator are of every rank. */
static int add_shared(begins *rank, const begins *shared, sl_error *error) {
    const size_t count = rank->count + shared->count;
    if (shared->count == 0)
        return 0;
    begin *items = realloc(rank->items, count * sizeof *items);
    if (items == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu starts", count);
    memcpy(items + rank->count, shared->items, shared->count * sizeof *items);
    rank->items = items;
    rank->count = rank->room = count;
    qsort(items, count, sizeof *items, by_beginning);
    return 0;
}

/* Leaves the starts out whose rounds a later one computed anew. */
static void leave_out(begins *rank) {
    size_t kept = 0;
    for (size_t i = 0; i < rank->count; i++) {
        while (kept > 0 && rank->items[kept - 1].from >= rank->items[i].from)
            kept--;
        rank->items[kept++] = rank->items[i];
    }
    rank->count = kept;
}

static const begin *top_of(const begins *rank) {
    return &rank->items[rank->count - 1];
}

static bool is_whole(const begin *b) {
    return b->ended && (b->outcome == SL_LOG_DONE || b->outcome == SL_LOG_SAVED);
}

static bool has_ended(const begins *rank) {
    return rank->count > 0 && is_whole(top_of(rank));
}

static const begin *begin_at(const begins *rank, size_t i) {
    return &rank->items[i < rank->count ? i : rank->count - 1];
}

static void describe(const begin *b, char out[256]) {
    char path[SL_EVENT_LOG_PATH_MAX];
    sl_event_log_path(path, "", b->log);
    snprintf(out, 256, "%.60s:%" PRIu64 " begins after round %" PRIu64 " of %" PRIu64, path + 1,
             b->line, b->from, b->rounds);
}

static int refuse_unlike(const char *folder, const reader *r, uint32_t a, uint32_t b, size_t i,
                         sl_error *error) {
    char one[256], other[256];
    describe(begin_at(&r->ranks[a], i), one);
    describe(begin_at(&r->ranks[b], i), other);
    return sl_fail(error, SL_EFILE,
                   "%s: the logs of ranks %u and %u differ in from where the run went on: %s, %s",
                   folder, a, b, one, other);
}

/* The rank with the fewest stretches. */
static uint32_t shortest(const reader *r) {
    uint32_t rank = 0;
    for (uint32_t i = 1; i < r->nodes; i++)
        rank = r->ranks[i].count < r->ranks[rank].count ? i : rank;
    return rank;
}

/* How many stretches all ranks have. One more that was cut short as it began need not be there on
 * all. */
static int agree(size_t *out, const char *folder, const reader *r, sl_error *error) {
    const uint32_t least = shortest(r);
    const size_t common = r->ranks[least].count;
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        const begins *b = &r->ranks[rank];
        for (size_t i = 0; i < common; i++)
            if (r->ranks[0].items[i].from != b->items[i].from ||
                r->ranks[0].items[i].rounds != b->items[i].rounds)
                return refuse_unlike(folder, r, 0, rank, i, error);
        if (b->count > common + 1 || (b->count > common && is_whole(top_of(b))))
            return refuse_unlike(folder, r, rank, least, common, error);
    }
    *out = common;
    return 0;
}

/* Where a rank began after stretch i; 0: none did. */
static uint64_t next_from(const reader *r, size_t i) {
    for (uint32_t rank = 0; rank < r->nodes; rank++)
        if (r->ranks[rank].count > i + 1)
            return r->ranks[rank].items[i + 1].from;
    return 0;
}

static uint32_t first_unlike(const reader *r, size_t i) {
    const begin *a = &r->ranks[0].items[i];
    for (uint32_t rank = 1; rank < r->ranks_max; rank++) {
        const begin *b = i < r->ranks[rank].count ? &r->ranks[rank].items[i] : a;
        if (strcmp(a->kernels, b->kernels) != 0 || strcmp(a->blas, b->blas) != 0)
            return rank;
    }
    return 0;
}

static bool has_losses(const reader *r) {
    return r->cuts + r->views > 0;
}

/* The first rank that came to an end, or rank 0. */
static uint32_t first_whole(const reader *r) {
    uint32_t rank = 0;
    while (rank < r->ranks_max && !has_ended(&r->ranks[rank]))
        rank++;
    return rank < r->ranks_max ? rank : 0;
}

/* Who was lost need not have come to an end. */
static sl_log_outcome outcome_of(const reader *r) {
    const begin *first = top_of(&r->ranks[first_whole(r)]);
    if (!is_whole(first))
        return SL_LOG_FAILED;
    for (uint32_t i = 0; i < r->ranks_max; i++) {
        if (!has_ended(&r->ranks[i])) {
            if (has_losses(r) || i >= r->nodes)
                continue;
            return SL_LOG_FAILED;
        }
        const begin *b = top_of(&r->ranks[i]);
        if (b->outcome != first->outcome || b->last != first->last)
            return SL_LOG_FAILED;
    }
    return first->outcome;
}

/* Stretch i ends where the next one, if there is one, goes on. */
static int draw_stretch(replay_plan *plan, const char *folder, const reader *r, size_t i,
                        sl_error *error) {
    const begin *b = &r->ranks[first_whole(r)].items[i];
    replay_stretch *s = &plan->stretches[i];
    *s = (replay_stretch){.from = b->from, .rounds = b->rounds, .unlike = first_unlike(r, i)};
    memcpy(s->kernels, b->kernels, sizeof s->kernels);
    memcpy(s->blas, b->blas, sizeof s->blas);
    memcpy(s->settings, b->settings, sizeof s->settings);
    const uint64_t next = next_from(r, i);
    s->to = next > 0 ? next : plan->outcome == SL_LOG_FAILED ? s->from : b->last;
    return s->to <= s->rounds
               ? 0
               : sl_fail(error, SL_EFILE,
                         "%s: the log of rank 0 goes on from round %" PRIu64
                         ", and the start before that was of a run of %" PRIu64 " rounds",
                         folder, s->to, s->rounds);
}

static bool resumes(const reader *r) {
    bool any = false;
    for (uint32_t rank = 0; rank < r->nodes; rank++)
        any = any || r->ranks[rank].count > 1;
    return any;
}

static int draw(replay_plan *plan, const char *folder, const reader *r, sl_error *error) {
    plan->outcome = outcome_of(r);
    if (has_losses(r) && (resumes(r) || plan->outcome != SL_LOG_DONE))
        return sl_fail(error, SL_EFILE,
                       "%s: a run that has lost members is repeated if it came to its end without "
                       "going on from a checkpoint; this one did not",
                       folder);
    int result = agree(&plan->count, folder, r, error);
    if (result != 0)
        return result;
    const uint64_t from = r->ranks[0].items[0].from;
    if (from > 0)
        return sl_fail(error, SL_EFILE,
                       "%s: the log of rank 0 begins after round %" PRIu64
                       "; that of the rounds before is missing",
                       folder, from);
    plan->stretches = calloc(plan->count, sizeof *plan->stretches);
    if (plan->stretches == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu stretches", plan->count);
    plan->breaks = r->breaks;
    plan->cuts = r->cuts;
    plan->views = r->views;
    for (size_t i = 0; i < plan->count && result == 0; i++)
        result = draw_stretch(plan, folder, r, i, error);
    return result;
}

int replay_plan_open(replay_plan *out, const char *folder, uint32_t nodes, uint32_t ranks,
                     uint64_t run_id, void (*tell)(const char *text), sl_error *error) {
    reader r = {.nodes = nodes,
                .ranks_max = ranks,
                .run_id = run_id,
                .ranks = calloc(ranks, sizeof *r.ranks)};
    replay_plan plan = {0};
    int result = r.ranks != NULL ? read_logs(&r, folder, tell, error)
                                 : sl_fail(error, SL_ENOMEM, "out of memory for %u logs", ranks);
    for (uint32_t i = 0; i < nodes && result == 0; i++) {
        result = add_shared(&r.ranks[i], &r.shared, error);
        if (result == 0 && r.ranks[i].count == 0)
            result =
                sl_fail(error, SL_EFILE, "%s: the log of rank %u holds no whole line", folder, i);
        plan.starts = r.ranks[0].count;
    }
    for (uint32_t i = 0; i < nodes && result == 0; i++)
        leave_out(&r.ranks[i]);
    if (result == 0)
        result = draw(&plan, folder, &r, error);
    for (uint32_t i = 0; r.ranks != NULL && i < ranks; i++)
        free(r.ranks[i].items);
    free(r.ranks);
    free(r.shared.items);
    if (result == 0)
        *out = plan;
    else
        replay_plan_close(&plan);
    return result;
}

void replay_plan_close(replay_plan *plan) {
    free(plan->stretches);
    *plan = (replay_plan){0};
}

/* replay_plan.c - see replay_plan.h. */
#include "run/replay_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MISSING_NAMED = 8 };

/* A start that begins the run or goes on with it, in a log. */
typedef struct begin {
    uint64_t from, rounds, simulations, line;
    int64_t log; /* whose it is in; -1: the simulator's */
    bool anew;   /* its rounds were computed again later */
    char kernels[SL_LOG_WORD_MAX], blas[SL_LOG_WORD_MAX], settings[REPLAY_SETTINGS_MAX];
} begin;

typedef struct begins {
    begin *items; /* (count) */
    size_t count, room;
    bool joined;          /* it is in a view */
    uint64_t done, saved; /* the last round of the last process, if it ended so; else 0 */
} begins;

typedef struct reader {
    begins *ranks; /* (ranks) */
    begins shared;
    begins *into;           /* of the file that is read */
    int64_t rank;           /* likewise; -1: the simulator's */
    uint64_t first, rounds; /* of the process whose lines are read; rounds 0: none is */
    bool ended;             /* likewise */
    bool resumes;           /* the line before is a start that does not begin at round 1 */
    uint32_t nodes,         /* that the run began with */
        ranks_max;          /* those that may have joined, too */
    bool apart; /* nodes at their own times: the run is one stretch, whatever it went on from */
    uint64_t run_id, breaks, cuts, views;
} reader;

/* ---- one line ---- */

static int refuse_round(const reader *r, const sl_log_entry *entry, sl_error *error) {
    return sl_fail(error, SL_EFILE,
                   "round: %" PRIu64 " is not allowed; the start before it has round %" PRIu64
                   " of %" PRIu64,
                   entry->round, r->first, r->rounds);
}

static int add_begin(begins *into, const begin *b, sl_error *error) {
    if (into->count == into->room) {
        const size_t room = into->room > 0 ? 2 * into->room : 4;
        begin *items = realloc(into->items, room * sizeof *items);
        if (items == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for %zu starts", room);
        into->items = items;
        into->room = room;
    }
    into->items[into->count++] = *b;
    return 0;
}

/* Who joins others begins nothing. */
static int take_start(reader *r, uint64_t line, const sl_log_entry *e, sl_error *error) {
    if (e->run_id != r->run_id)
        return sl_fail(error, SL_EFILE,
                       "run_id: %" PRIu64 " is another run's; run.json has %" PRIu64, e->run_id,
                       r->run_id);
    if (e->round > 0 && r->rank >= r->nodes)
        return sl_fail(error, SL_EFILE,
                       "round: %" PRIu64 " is not allowed; it must be 0: rank %" PRId64
                       " is beyond the topology, and joins",
                       e->round, r->rank);
    r->first = e->round;
    r->rounds = e->rounds;
    r->ended = false;
    r->resumes = e->round > 1;
    r->into->done = r->into->saved = 0;
    if (e->round > e->rounds + 1 || (e->round == 0 && r->rank < 0))
        return refuse_round(r, e, error);
    begin b = {.from = e->round - 1,
               .rounds = e->rounds,
               .simulations = e->simulations,
               .line = line,
               .log = r->rank};
    memcpy(b.kernels, e->kernels, sizeof b.kernels);
    memcpy(b.blas, e->blas, sizeof b.blas);
    return e->round == 0 || (r->apart && r->into->count > 0) ? 0 : add_begin(r->into, &b, error);
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
    if (last >= r->ranks_max || (e->round <= 1 && !r->apart))
        return sl_fail(error, SL_EFILE,
                       "members: rank %u is not allowed; there are %u nodes, and the first view "
                       "begins after round 1",
                       last, r->ranks_max);
    for (uint64_t i = 0; i < e->members; i++)
        r->ranks[e->ranks[i]].joined = true;
    return 0;
}

/* A rank that joins, which says so in round 0, has those of the others. */
static int take_settings(const reader *r, const sl_log_entry *e, sl_error *error) {
    if (e->round != r->first)
        return refuse_round(r, e, error);
    if (e->round == 0)
        return 0;
    begin *b = &r->into->items[r->into->count - 1];
    if (e->settings != NULL && strlen(e->settings) >= sizeof b->settings)
        return sl_fail(error, SL_EFILE, "settings: they are longer than %zu bytes",
                       sizeof b->settings - 1);
    snprintf(b->settings, sizeof b->settings, "%s", e->settings != NULL ? e->settings : "");
    return 0;
}

/* What comes after a start. */
static int take_event(reader *r, const sl_log_entry *e, sl_error *error) {
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
        return e->round + 1 == r->first ? 0 : refuse_round(r, e, error);
    case SL_LOG_SETTINGS:
        return take_settings(r, e, error);
    case SL_LOG_DOWN:
        r->breaks++;
        break;
    case SL_LOG_CUT:
        r->cuts++;
        return e->round <= r->rounds ? 0 : refuse_round(r, e, error);
    case SL_LOG_VIEW:
        r->views++;
        return check_view(r, e, error);
    case SL_LOG_JOIN:
        if (e->after == 0 || e->after > r->rounds)
            return sl_fail(error, SL_EFILE,
                           "after: %" PRIu64 " is not allowed; there are rounds 1 to %" PRIu64,
                           e->after, r->rounds);
        break;
    case SL_LOG_COMMIT:
        return e->round <= r->rounds ? 0 : refuse_round(r, e, error);
    case SL_LOG_EDGE:
    case SL_LOG_LOST:
    case SL_LOG_UP:
    case SL_LOG_CHECKPOINT:
        break;
    case SL_LOG_END:
        r->ended = true;
        r->into->done = e->outcome == SL_LOG_DONE ? e->round : 0;
        r->into->saved = e->outcome == SL_LOG_SAVED ? e->round : 0;
        if ((e->outcome == SL_LOG_DONE && e->round != r->rounds) ||
            (e->outcome == SL_LOG_SAVED && e->round < r->first) || e->round > r->rounds)
            return refuse_round(r, e, error);
        return 0;
    }
    if (e->round > r->rounds + 1 || e->round + 1 < r->first)
        return refuse_round(r, e, error);
    return e->kind == SL_LOG_CHECKPOINT ? 0 : check_peer(r, e, error);
}

static int take_line(void *context, uint64_t line, const sl_log_entry *e, sl_error *error) {
    reader *r = context;
    int result = check_node(r, e, error);
    if (result != 0)
        return result;
    if (e->kind == SL_LOG_START)
        return take_start(r, line, e, error);
    /* The last checkpoint may still be written when all rounds are done. */
    if (r->rounds == 0 || (r->ended && e->kind != SL_LOG_CHECKPOINT))
        return sl_fail(error, SL_EFILE, "event: must be \"start\" %s",
                       r->rounds == 0 ? "in the first line" : "after an \"end\"");
    return take_event(r, e, error);
}

/* ---- the files ---- */

static int read_log(reader *r, const char *folder, int64_t rank, void (*tell)(const char *text),
                    sl_error *error) {
    char path[SL_EVENT_LOG_PATH_MAX], text[SL_EVENT_LOG_PATH_MAX + 128];
    bool torn;
    sl_act_log_path(path, folder, rank < 0 ? 0 : (uint32_t)rank);
    r->apart = access(path, F_OK) == 0;
    sl_event_log_path(path, folder, rank);
    r->rank = rank;
    r->into = rank < 0 ? &r->shared : &r->ranks[rank];
    r->rounds = 0;
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
    int result = 0;
    for (size_t i = 0; i < shared->count && result == 0; i++)
        result = add_begin(rank, &shared->items[i], error);
    if (rank->count > 0)
        qsort(rank->items, rank->count, sizeof *rank->items, by_beginning);
    return result;
}

/* Those whose rounds a later one computed anew. */
static void find_anew(const begins *rank) {
    for (size_t i = 0; i < rank->count; i++)
        for (size_t k = i + 1; k < rank->count; k++)
            rank->items[i].anew = rank->items[i].anew || rank->items[k].from <= rank->items[i].from;
}

static bool has_begin(const begins *rank, uint64_t from, bool anew) {
    size_t i = 0;
    while (i < rank->count && (rank->items[i].from != from || rank->items[i].anew != anew))
        i++;
    return i < rank->count;
}

/* Of one that was lost before, its own log does not say that the others went back. */
static bool others_went_back(const reader *r, uint64_t from) {
    bool any = false;
    for (uint32_t i = 0; i < r->nodes; i++) {
        const bool again = has_begin(&r->ranks[i], from, true);
        if (again && has_begin(&r->ranks[i], from, false))
            return false;
        any = any || again;
    }
    return any;
}

/* The earliest stretch after that of `from` which lasted; NULL: there is none. */
static const begin *next_begin(const reader *r, const begin *before) {
    const begin *found = NULL;
    for (uint32_t rank = 0; rank < r->nodes; rank++)
        for (size_t i = 0; i < r->ranks[rank].count; i++) {
            const begin *b = &r->ranks[rank].items[i];
            if (!b->anew && (before == NULL || b->from > before->from) &&
                (found == NULL || b->from < found->from) && !others_went_back(r, b->from))
                found = b;
        }
    return found;
}

/* Of those who began the stretch as well. */
static uint32_t first_unlike(const reader *r, const begin *a) {
    for (uint32_t rank = 0; rank < r->nodes; rank++)
        for (size_t i = 0; i < r->ranks[rank].count; i++) {
            const begin *b = &r->ranks[rank].items[i];
            if (!b->anew && b->from == a->from &&
                (strcmp(a->kernels, b->kernels) != 0 || strcmp(a->blas, b->blas) != 0))
                return rank;
        }
    return 0;
}

/* As any rank came to its end: others may have been lost. */
static void find_end(replay_plan *plan, const reader *r) {
    replay_stretch *top = &plan->stretches[plan->count - 1];
    plan->outcome = SL_LOG_FAILED;
    top->to = top->from;
    for (uint32_t i = 0; i <= r->ranks_max; i++) {
        const begins *b = i < r->ranks_max ? &r->ranks[i] : &r->shared;
        const uint64_t last = b->done == top->rounds ? b->done : b->saved;
        if (last <= top->to || last > top->rounds)
            continue;
        top->to = last;
        plan->outcome = b->done == last ? SL_LOG_DONE : SL_LOG_SAVED;
    }
}

/* Each ends where the next one goes on. */
static int add_stretch(replay_plan *plan, const char *folder, const reader *r, const begin *b,
                       sl_error *error) {
    replay_stretch *all = realloc(plan->stretches, (plan->count + 1) * sizeof *all);
    if (all == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu stretches", plan->count + 1);
    plan->stretches = all;
    replay_stretch *s = &all[plan->count++];
    *s = (replay_stretch){.from = b->from,
                          .rounds = b->rounds,
                          .simulated = b->log < 0,
                          .unlike = first_unlike(r, b)};
    memcpy(s->kernels, b->kernels, sizeof s->kernels);
    memcpy(s->blas, b->blas, sizeof s->blas);
    memcpy(s->settings, b->settings, sizeof s->settings);
    if (plan->count == 1)
        return 0;
    s[-1].to = s->from;
    return s[-1].to <= s[-1].rounds
               ? 0
               : sl_fail(error, SL_EFILE,
                         "%s: a log goes on from round %" PRIu64
                         ", and the start before that was of a run of %" PRIu64 " rounds",
                         folder, s->from, s[-1].rounds);
}

static int draw(replay_plan *plan, const char *folder, const reader *r, sl_error *error) {
    int result = 0;
    for (const begin *b = NULL; result == 0 && (b = next_begin(r, b)) != NULL;)
        result = add_stretch(plan, folder, r, b, error);
    if (result == 0)
        find_end(plan, r);
    plan->starts = r->ranks[0].count;
    plan->breaks = r->breaks;
    plan->cuts = r->cuts;
    plan->views = r->views;
    return result;
}

/* All begin the run. */
static int prepare(begins *rank, const reader *r, const char *folder, uint32_t i, sl_error *error) {
    const int result = add_shared(rank, &r->shared, error);
    if (result != 0)
        return result;
    if (rank->count == 0)
        return sl_fail(error, SL_EFILE, "%s: the log of rank %u holds no whole line", folder, i);
    find_anew(rank);
    return has_begin(rank, 0, false) ? 0
                                     : sl_fail(error, SL_EFILE,
                                               "%s: the log of rank %u begins after round %" PRIu64
                                               "; that of the rounds before is missing",
                                               folder, i, rank->items[0].from);
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
    for (uint32_t i = 0; i < nodes && result == 0; i++)
        result = prepare(&r.ranks[i], &r, folder, i, error);
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

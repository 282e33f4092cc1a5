/* logbook.c - see logbook.h. */
#include "logbook.h"

#include "virtual.h"

static void require(bool holds, const sl_log_entry *e, const char *what) {
    if (!holds)
        world_fail("agent %u logs event %d of round %llu: %s", e->rank, (int)e->kind,
                   (unsigned long long)e->round, what);
}

static void take_start(logbook *book, const sl_log_entry *e, uint64_t rounds) {
    require(!book->begun, e, "it has begun already");
    require(e->round <= rounds + 1 && e->rounds == rounds, e, "no such round");
    *book = (logbook){.begun = true, .from = e->round > 0 ? e->round - 1 : 0}; /* 0: it joins */
}

static void take_later(logbook *book, const sl_log_entry *e) {
    switch (e->kind) {
    case SL_LOG_START:
        break;
    case SL_LOG_RESUME:
        require(book->last == SL_LOG_START && e->round == book->from && e->round > 0, e,
                "it began elsewhere");
        break;
    case SL_LOG_SETTINGS:
        require(book->last == SL_LOG_START || book->last == SL_LOG_RESUME, e, "it has begun");
        break;
    case SL_LOG_EDGE:
        require(book->last == SL_LOG_SETTINGS || book->last == SL_LOG_EDGE, e,
                "training has begun");
        require(e->why[0] != '\0', e, "it does not say how it is protected");
        break;
    case SL_LOG_DOWN:
        require(e->peer < NODES_MAX && !book->down[e->peer], e, "the connection was down");
        require(e->why[0] != '\0', e, "it does not say why");
        book->down[e->peer] = true;
        break;
    case SL_LOG_UP:
        require(e->peer < NODES_MAX && book->down[e->peer], e, "the connection was not down");
        require(e->seconds >= 0, e, "time went back");
        book->down[e->peer] = false;
        break;
    case SL_LOG_REQUEST:
        require(e->round > book->from, e, "that round is over");
        break;
    case SL_LOG_LOST:
        require(e->peer < NODES_MAX && e->why[0] != '\0', e, "it does not say whom, and why");
        break;
    case SL_LOG_CUT:
        require(!book->is_cut, e, "it is cut already");
        book->is_cut = true;
        break;
    case SL_LOG_COMMIT:
        require(e->after > 0, e, "it begins nowhere");
        break;
    case SL_LOG_VIEW:
        require(e->members > 0 && e->members <= NODES_MAX && e->round > book->from, e,
                "there is no such view");
        book->is_cut = false;
        break;
    case SL_LOG_JOIN:
        require(e->peer < NODES_MAX && e->peer != e->rank && e->after > 0, e, "nobody's model");
        break;
    case SL_LOG_CHECKPOINT:
        require(e->round > book->from && e->round != book->saved, e, "that round is saved");
        if (e->why[0] ==
            '\0') /* one that is left out may be told while the one before is written */
            require(e->round > book->saved, e, "a later round is saved");
        book->saved = e->why[0] == '\0' ? e->round : book->saved;
        break;
    case SL_LOG_END:
        book->ended = true;
        book->outcome = e->outcome;
        break;
    }
}

void logbook_take(logbook *book, const sl_log_entry *e, uint64_t rounds) {
    world_note("logs", e->rank, (uint64_t)e->kind, e->round);
    world_say(e->rank, e->why);
    if (e->kind == SL_LOG_START)
        take_start(book, e, rounds);
    require(book->begun, e, "it has not begun");
    require(!book->ended || e->kind == SL_LOG_CHECKPOINT, e, "it has ended");
    take_later(book, e);
    if (e->kind == SL_LOG_JOIN) /* the others may be behind */
        book->saved = 0;
    book->last = e->kind;
}

void logbook_close(const logbook *book, uint32_t rank, int code) {
    sl_error error = {.code = code};
    if (book->begun && (!book->ended || book->outcome != sl_log_end(0, &error).outcome))
        world_fail("agent %u ended with code %d, and its log says %s of it", rank, code,
                   book->ended ? "otherwise" : "nothing");
    if (!book->begun && code == 0)
        world_fail("agent %u has trained, and its log is empty", rank);
}

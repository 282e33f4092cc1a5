/* timeline.c - virtual time; see starling/timeline.h.
 *
 * Predicting is one pass over the run. All that is known of a node is when its round began and when
 * its two links are free; what is on its way to it waits in a list and is only given its place on
 * the link in when the node moves on, since only then is everything there that comes before.
 */
#include "sim/messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
    WORDS_MAX = 16 << 20, /* kept; later rounds are taken to be like the last one that was */
    LOOK_BACK = 256       /* distinct rounds that a new one is compared with */
};

int sl_timeline_open(sl_timeline **out, uint32_t nodes, sl_error *error) {
    sl_timeline *t = calloc(1, sizeof *t);
    if (t == NULL)
        return sl_fail(error, SL_ENOMEM, "timeline: out of memory");
    *t = (sl_timeline){.nodes = nodes, .message = SIZE_MAX};
    *out = t;
    return 0;
}

void sl_timeline_close(sl_timeline **timeline) {
    sl_timeline *t = *timeline;
    for (size_t i = 0; t != NULL && i < t->pattern_count; i++)
        free(t->patterns[i].words);
    if (t != NULL) {
        free(t->patterns);
        free(t->rounds);
        free(t->words);
    }
    free(t);
    *timeline = NULL;
}

uint64_t sl_timeline_rounds(const sl_timeline *t) {
    return t->round_count;
}

uint64_t sl_timeline_copies(const sl_timeline *t) {
    return t->copies;
}

/* ---- recording ---- */

/* Room for `more` beyond `count` items. */
static bool make_room(void **items, size_t count, size_t more, size_t *room, size_t item_bytes) {
    if (count + more <= *room)
        return true;
    size_t wanted = 2 * (count + more) + 8;
    void *grown = realloc(*items, wanted * item_bytes);
    if (grown == NULL)
        return false;
    *items = grown;
    *room = wanted;
    return true;
}

/* NULL without memory. */
static uint32_t *add_words(sl_timeline *t, size_t count) {
    if (!make_room((void **)&t->words, t->word_count, count, &t->word_room, sizeof *t->words))
        t->out_of_memory = true;
    if (t->out_of_memory)
        return NULL;
    t->word_count += count;
    return t->words + t->word_count - count;
}

void sl_timeline_send(sl_timeline *t, uint32_t rank, uint64_t exchange, uint32_t step,
                      bool overlaps, const uint32_t *peers, uint32_t count) {
    t->message = SIZE_MAX;
    t->exchanges = exchange > t->exchanges ? exchange : t->exchanges;
    uint32_t *w = count > 0 ? add_words(t, SEND_WORDS + count) : NULL;
    if (w == NULL)
        return;
    const uint32_t head[SEND_WORDS] = {
        SEND, rank, (uint32_t)(exchange - t->exchanges_before), step, 0, 0, 0, overlaps, count};
    memcpy(w, head, sizeof head);
    memcpy(w + SEND_WORDS, peers, count * sizeof *peers);
    t->message = (size_t)(w - t->words);
}

void sl_timeline_part(sl_timeline *t, size_t bytes) {
    if (t->message == SIZE_MAX)
        return;
    uint32_t *w = t->words + t->message;
    uint64_t sum;
    memcpy(&sum, w + SEND_BYTES, sizeof sum);
    sum += bytes;
    memcpy(w + SEND_BYTES, &sum, sizeof sum);
    w[SEND_PARTS]++;
    t->copies += w[SEND_PEERS];
}

void sl_timeline_end_node_round(sl_timeline *t, uint32_t rank, uint64_t frames) {
    uint32_t *w = add_words(t, DONE_WORDS);
    if (w != NULL)
        memcpy(w, (const uint32_t[DONE_WORDS]){DONE, rank, (uint32_t)frames},
               DONE_WORDS * sizeof *w);
}

/* The pattern that the round under way repeats; pattern_count: it is a new one. */
static size_t find_pattern(const sl_timeline *t, uint64_t hash) {
    size_t oldest = t->pattern_count > LOOK_BACK ? t->pattern_count - LOOK_BACK : 0;
    for (size_t i = t->pattern_count; i-- > oldest;) {
        const pattern *p = &t->patterns[i];
        if (p->hash == hash && p->count == t->word_count &&
            memcmp(p->words, t->words, p->count * sizeof *p->words) == 0)
            return i;
    }
    return t->pattern_count;
}

static bool add_pattern(sl_timeline *t, uint64_t hash) {
    if (!make_room((void **)&t->patterns, t->pattern_count, 1, &t->pattern_room,
                   sizeof *t->patterns))
        return false;
    pattern p = {.words = malloc((t->word_count + 1) * sizeof *p.words),
                 .count = t->word_count,
                 .hash = hash,
                 .exchanges = t->exchanges - t->exchanges_before};
    if (p.words == NULL)
        return false;
    if (p.count > 0)
        memcpy(p.words, t->words, p.count * sizeof *p.words);
    t->patterns[t->pattern_count++] = p;
    t->words_kept += p.count;
    return true;
}

void sl_timeline_end_round(sl_timeline *t) {
    uint64_t hash = sl_hash(SL_HASH_START, t->words, t->word_count * sizeof *t->words);
    size_t found = find_pattern(t, hash);
    if (found == t->pattern_count && found > 0 && t->words_kept + t->word_count > WORDS_MAX)
        found--;
    if (t->out_of_memory || (found == t->pattern_count && !add_pattern(t, hash)) ||
        !make_room((void **)&t->rounds, t->round_count, 1, &t->round_room, sizeof *t->rounds))
        t->out_of_memory = true;
    else
        t->rounds[t->round_count++] = (uint32_t)found;
    t->word_count = 0;
    t->message = SIZE_MAX;
    t->exchanges_before = t->exchanges;
}

/* ---- predicting ---- */

/* A part that is on its way. */
typedef struct arrival {
    uint64_t exchange;
    uint32_t step, from;
    double left, at, lasts; /* it has begun to leave; its first bit is there; how long it occupies
                               the link */
} arrival;

typedef struct node_clock {
    double began, computed;   /* this round; its computing is done */
    double out_free, in_free; /* the links */
    uint64_t taken;           /* parts in this round */
    uint64_t round;           /* under way, from 1 */
    arrival *coming;
    size_t count, room;
} node_clock;

typedef struct forecast {
    const sl_timeline *timeline;
    const sl_platform *platform;
    double *links_free; /* (2 * links) when each is, from the lower rank and to it */
    double second_per_byte, latency;
    node_clock *clocks;                               /* (nodes) */
    uint64_t exchanges;                               /* before the round under way */
    void (*take)(void *context, const sl_span *span); /* NULL: nobody asks */
    void *context;
    bool out_of_memory;
} forecast;

static double larger(double a, double b) {
    return a > b ? a : b;
}

static int by_turn(const void *x, const void *y) {
    const arrival *a = x, *b = y;
    if (a->exchange != b->exchange)
        return a->exchange < b->exchange ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static void show(const forecast *f, const sl_span *span) {
    if (f->take != NULL && span->ends_s > span->begins_s)
        f->take(f->context, span);
}

/* The first `count` that are coming go over the link in. */
static void take(const forecast *f, node_clock *c, size_t count) {
    const uint32_t rank = (uint32_t)(c - f->clocks);
    for (size_t i = 0; i < count; i++) {
        const arrival *a = &c->coming[i];
        c->in_free = larger(c->in_free, a->at) + a->lasts;
        show(f, &(sl_span){SL_SPAN_MESSAGE, a->from, rank, 0, a->left, c->in_free});
    }
    if (count > 0)
        memmove(c->coming, c->coming + count, (c->count - count) * sizeof *c->coming);
    c->count -= count;
    c->taken += count;
}

static void sort(node_clock *c) {
    if (c->count > 1)
        qsort(c->coming, c->count, sizeof *c->coming, by_turn);
}

static void take_before(const forecast *f, node_clock *c, uint64_t exchange, uint32_t step) {
    size_t count = 0;
    sort(c);
    while (count < c->count &&
           (c->coming[count].exchange < exchange ||
            (c->coming[count].exchange == exchange && c->coming[count].step < step)))
        count++;
    take(f, c, count);
}

static void put(forecast *f, uint32_t peer, const arrival *a) {
    node_clock *c = &f->clocks[peer];
    if (!make_room((void **)&c->coming, c->count, 1, &c->room, sizeof *c->coming))
        f->out_of_memory = true;
    else
        c->coming[c->count++] = *a;
}

/* The row of the pair's own link; `rows`: it has none. */
static size_t find_link(const sl_number_rows *links, double i, double j) {
    size_t row = 0;
    for (const double *at = links->values; row < links->rows; row++, at += links->columns)
        if ((at[0] == i && at[1] == j) || (at[0] == j && at[1] == i))
            break;
    return row;
}

/* A copy that begins to leave at `from` on the pair's own link, if that is slower: when its first
 * bit is there, for a link in that takes it no slower than the others. */
static double pass_link(const forecast *f, uint32_t rank, uint32_t peer, double from, double lasts,
                        double bytes) {
    const sl_number_rows *links = f->platform->links;
    const size_t row = links != NULL ? find_link(links, rank, peer) : 0;
    if (links == NULL || row == links->rows)
        return from + f->latency;
    const double *link = links->values + row * links->columns;
    double *is_free = &f->links_free[2 * row + (rank > peer)];
    const double slower = link[2] > 0 ? larger(lasts, 8e-6 * bytes / link[2]) : lasts;
    *is_free = larger(*is_free, from) + slower;
    return *is_free - lasts + (links->columns > 3 ? 1e-3 * link[3] : f->latency);
}

static const uint32_t *send(forecast *f, const uint32_t *w) {
    uint32_t rank = w[1], parts = w[SEND_PARTS], count = w[SEND_PEERS], first = 0;
    const uint32_t *peers = w + SEND_WORDS;
    uint64_t bytes;
    memcpy(&bytes, w + SEND_BYTES, sizeof bytes);
    node_clock *c = &f->clocks[rank];
    arrival a = {
        .exchange = f->exchanges + w[SEND_EXCHANGE], .step = w[SEND_EXCHANGE + 1], .from = rank};
    a.lasts = parts > 0 ? (double)bytes / parts * f->second_per_byte : 0;
    take_before(f, c, a.exchange, a.step);
    c->out_free =
        larger(larger(c->out_free, c->in_free), w[SEND_OVERLAPS] ? c->began : c->computed);
    while (first < count && peers[first] < rank)
        first++;
    for (uint64_t i = 0; i < (uint64_t)parts * count; i++) {
        const uint32_t peer = peers[(first + i % count) % count];
        a.left = c->out_free;
        a.at = pass_link(f, rank, peer, c->out_free, a.lasts, (double)bytes / parts);
        c->out_free += a.lasts;
        put(f, peer, &a);
    }
    return peers + count;
}

/* The node's next round begins. */
static double compute_seconds(forecast *f, uint32_t rank) {
    const sl_platform *p = f->platform;
    const uint64_t round = ++f->clocks[rank].round;
    return 1e-3 * (p->drawn != NULL
                       ? sl_network_gradient_ms(p->drawn, p->compute_ms, p->seed, rank, round)
                       : p->compute_ms / (p->speeds != NULL ? p->speeds[rank] : 1));
}

static const uint32_t *finish(forecast *f, const uint32_t *w) {
    node_clock *c = &f->clocks[w[1]];
    size_t left = w[2] - c->taken;
    sort(c);
    take(f, c, left < c->count ? left : c->count);
    const double ends = larger(c->computed, larger(c->in_free, c->out_free));
    show(f, &(sl_span){SL_SPAN_GRADIENT, w[1], 0, c->round, c->began, c->computed});
    show(f, &(sl_span){SL_SPAN_WAIT, w[1], 0, c->round, c->computed, ends});
    c->began = ends;
    c->computed = c->began + compute_seconds(f, w[1]);
    c->taken = 0;
    return w + DONE_WORDS;
}

static void pass_round(forecast *f, const pattern *p) {
    const uint32_t *w = p->words, *end = p->words + p->count;
    while (w < end && !f->out_of_memory)
        w = *w == SEND ? send(f, w) : finish(f, w);
    f->exchanges += p->exchanges;
}

/* The time at which the last node has finished each of these rounds (count), rising. */
static void pass_rounds(forecast *f, double *out, const uint64_t *rounds, size_t count) {
    const sl_timeline *t = f->timeline;
    uint64_t passed = 0;
    for (uint32_t i = 0; i < t->nodes; i++)
        f->clocks[i].computed = compute_seconds(f, i);
    for (size_t k = 0; k < count; k++) {
        for (; passed < rounds[k] && passed < t->round_count && !f->out_of_memory; passed++)
            pass_round(f, &t->patterns[t->rounds[passed]]);
        out[k] = 0;
        for (uint32_t i = 0; i < t->nodes; i++)
            out[k] = larger(out[k], f->clocks[i].began);
    }
}

static int open_forecast(forecast *f, const sl_timeline *t, const sl_platform *platform) {
    *f = (forecast){.timeline = t,
                    .platform = platform,
                    .latency = 1e-3 * platform->latency_ms,
                    .out_of_memory = t->out_of_memory};
    f->second_per_byte = platform->bandwidth_mbit > 0 ? 8e-6 / platform->bandwidth_mbit : 0;
    f->clocks = calloc(t->nodes, sizeof *f->clocks);
    f->links_free =
        calloc(platform->links != NULL ? 2 * platform->links->rows + 1 : 1, sizeof *f->links_free);
    f->out_of_memory = f->out_of_memory || f->clocks == NULL || f->links_free == NULL;
    return f->out_of_memory ? SL_ENOMEM : 0;
}

static int close_forecast(forecast *f, sl_error *error) {
    for (uint32_t i = 0; f->clocks != NULL && i < f->timeline->nodes; i++)
        free(f->clocks[i].coming);
    free(f->clocks);
    free(f->links_free);
    return f->out_of_memory
               ? sl_fail(error, SL_ENOMEM, "timeline: out of memory for the messages of %u nodes",
                         f->timeline->nodes)
               : 0;
}

int sl_timeline_times(double *out, const uint64_t *rounds, size_t count, const sl_timeline *t,
                      const sl_platform *platform, sl_error *error) {
    forecast f;
    if (open_forecast(&f, t, platform) == 0)
        pass_rounds(&f, out, rounds, count);
    return close_forecast(&f, error);
}

int sl_timeline_spans(const sl_timeline *t, const sl_platform *platform,
                      void (*each)(void *context, const sl_span *span), void *context,
                      sl_error *error) {
    forecast f;
    double end;
    if (open_forecast(&f, t, platform) == 0) {
        f.take = each;
        f.context = context;
        pass_rounds(&f, &end, &(uint64_t){t->round_count}, 1);
    }
    return close_forecast(&f, error);
}

int sl_timeline_seconds(double *out, const sl_timeline *t, const sl_platform *platform,
                        uint64_t rounds, sl_error *error) {
    const uint64_t last = rounds > 0 ? rounds : t->round_count;
    return sl_timeline_times(out, &last, 1, t, platform, error);
}

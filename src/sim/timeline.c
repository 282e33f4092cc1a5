/* timeline.c - what a run's messages were, round by round; see starling/timeline.h. What they take
 * on a platform: played.c. */
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

void sl_timeline_ready(sl_timeline *t, double share) {
    const float early = (float)share;
    if (t->message != SIZE_MAX && share > 0 && share < 1)
        memcpy(t->words + t->message + SEND_READY, &early, sizeof early);
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

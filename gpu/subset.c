/* subset.c - which kernels run in which order; see subset.h. */
#include "gpu/subset.h"

#include "gpu/device.h"

enum {
    SCAN_LEVELS = 9,  /* FAN^8 > 2^32 */
    DRAWN_BY_ONE = 64 /* so few elements that one thread draws them */
};

bitmap bitmap_take(memory_list *m, size_t elements) {
    bitmap b = {.elements = elements, .words = ceiling(elements, WORD_BITS)};
    size_t sums = 0;
    for (size_t n = b.words; n > 1;)
        sums += n = ceiling(n, FAN);
    b.bits = memory_list_take(m, b.words * sizeof *b.bits);
    b.ranks = memory_list_take(m, b.words * sizeof *b.ranks);
    b.sums = memory_list_take(m, sums * sizeof *b.sums);
    return b;
}

void bitmap_scan(const bitmap *const *maps, size_t k) {
    scan_args levels[SCAN_LEVELS];
    size_t top = 0, at = 0; /* at: of the next level in `sums` */
    levels[0].count = maps[0]->words;
    for (size_t j = 0; j < k; j++)
        levels[0].counts[j] = maps[j]->ranks;
    for (;; top++) {
        scan_args *l = &levels[top];
        l->groups = ceiling(l->count, FAN);
        for (size_t j = 0; j < k; j++)
            levels[top + 1].counts[j] = l->sums[j] = l->groups > 1 ? maps[j]->sums + at : NULL;
        if (l->groups <= 1)
            break;
        launch_scan_up(l, k * l->groups);
        at += levels[top + 1].count = l->groups;
    }
    for (size_t l = top + 1; l-- > 0;)
        launch_scan_down(&levels[l], k * levels[l].groups);
}

subset subset_take(memory_list *m, const sl_coding *c) {
    return (subset){.map = bitmap_take(m, c->dimension),
                    .state = memory_list_take(m, sizeof(draw_state)),
                    .indices = memory_list_take(m, c->k * sizeof(uint32_t))};
}

static bool is_same_key(const sl_rng_key *a, const sl_rng_key *b) {
    return a->seed == b->seed && a->round == b->round && a->rank == b->rank &&
           a->purpose == b->purpose;
}

void subset_draw(subset *s, const sl_coding *c, const sl_rng_key *key) {
    if (s->ready && is_same_key(&s->key, key))
        return;
    const bool others = c->k > c->dimension / 2;
    const size_t wanted = others ? c->dimension - c->k : c->k;
    const draw_word_args draw = {s->state, s->map.bits, *key, (uint32_t)c->dimension};
    device_clear(s->map.bits, s->map.words * sizeof *s->map.bits);
    launch_begin_draw(&(begin_draw_args){s->state, (uint32_t)wanted}, 1);
    /* At least half of the draws find new elements, so each pass needs half the threads. */
    for (size_t threads = wanted; threads > DRAWN_BY_ONE; threads /= 2) {
        launch_draw_word(&draw, threads);
        launch_advance_draw(&(advance_draw_args){s->state, (uint32_t)threads}, 1);
    }
    launch_finish_draw(&draw, 1);
    launch_settle_subset(&(settle_subset_args){s->map.bits, s->map.ranks, c->dimension, others},
                         s->map.words);
    bitmap_scan(&(const bitmap *){&s->map}, 1);
    launch_list_word(&(list_word_args){s->map.bits, s->map.ranks, s->indices}, s->map.words);
    s->key = *key;
    s->ready = true;
}

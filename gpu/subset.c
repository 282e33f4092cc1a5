/* subset.c - which kernels run in which order; see subset.h. */
#include "gpu/subset.h"

#include "gpu/device.h"

enum { DRAWN_BY_ONE = 64 }; /* so few elements that one thread draws them */

bitmap bitmap_take(memory_list *m, size_t elements) {
    bitmap b = {.elements = elements, .words = ceiling(elements, WORD_BITS)};
    b.bits = memory_list_take(m, b.words * sizeof *b.bits);
    b.ranks = memory_list_take(m, b.words * sizeof *b.ranks);
    b.sums = memory_list_take(m, ceiling(b.words, SCANNED) * sizeof *b.sums);
    return b;
}

void bitmap_scan(const bitmap *const *maps, size_t k) {
    scan_args a = {.count = maps[0]->words, .groups = (uint32_t)ceiling(maps[0]->words, SCANNED)};
    const uint32_t blocks = (uint32_t)k * a.groups;
    for (size_t j = 0; j < k; j++) {
        a.counts[j] = maps[j]->ranks;
        a.sums[j] = maps[j]->sums;
    }
    if (a.groups > 1)
        launch_scan_groups(&a, blocks);
    launch_scan_counts(&a, blocks);
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
    draw_block_args draw = {s->state, s->map.bits, *key, (uint32_t)c->dimension, 0};
    device_clear(s->map.bits, s->map.words * sizeof *s->map.bits);
    launch_begin_draw(&(begin_draw_args){s->state, (uint32_t)wanted}, 1);
    /* At least half of the draws find new elements, so each pass needs half the words. */
    for (size_t most = wanted; most > DRAWN_BY_ONE; most /= 2) {
        draw.most = (uint32_t)most;
        launch_draw_block(&draw, most / DRAWN_WORDS + 2);
        launch_advance_draw(&(advance_draw_args){s->state, (uint32_t)most}, 1);
    }
    launch_finish_draw(&draw, 1);
    launch_settle_subset(&(settle_subset_args){s->map.bits, s->map.ranks, c->dimension, others},
                         s->map.words);
    bitmap_scan(&(const bitmap *){&s->map}, 1);
    launch_list_word(&(list_word_args){s->map.bits, s->map.ranks, s->indices}, s->map.words);
    s->key = *key;
    s->ready = true;
}

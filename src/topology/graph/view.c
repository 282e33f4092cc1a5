/* view.c - the hash of a view, and what is asked of its lists; see starling/view.h. */
#include "starling/view.h"

#include "base/hash.h"

uint64_t sl_view_hash(const sl_view *e) {
    uint64_t hash = sl_hash_word(SL_HASH_START, e->number);
    hash = sl_hash_word(hash, e->round);
    hash = sl_hash_word(hash, e->exchange);
    hash = sl_hash_word(hash, e->count);
    for (uint32_t i = 0; i < e->count; i++) {
        hash = sl_hash_word(hash, e->members[i].rank);
        hash = sl_hash_word(hash, e->members[i].incarnation);
    }
    hash = sl_hash_word(hash, e->broken_count);
    for (uint32_t i = 0; i < e->broken_count; i++)
        hash = sl_hash_word(hash, (uint64_t)e->broken[i].low << 32 | e->broken[i].high);
    return hash != 0 ? hash : 1;
}

uint32_t sl_view_place(const sl_view *e, uint32_t rank) {
    uint32_t low = 0, high = e->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (e->members[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < e->count && e->members[low].rank == rank ? low : e->count;
}

bool sl_view_is_broken(const sl_view *e, uint32_t a, uint32_t b) {
    const uint32_t low = a < b ? a : b, high = a < b ? b : a;
    for (uint32_t i = 0; i < e->broken_count; i++)
        if (e->broken[i].low == low && e->broken[i].high == high)
            return true;
    return false;
}

static bool rises(sl_pair a, sl_pair b) {
    return a.low < b.low || (a.low == b.low && a.high < b.high);
}

bool sl_view_is_valid(const sl_view *e) {
    if (e->number == 0 || e->round == 0 || e->count == 0)
        return false;
    for (uint32_t i = 1; i < e->count; i++)
        if (e->members[i - 1].rank >= e->members[i].rank)
            return false;
    for (uint32_t i = 0; i < e->broken_count; i++) {
        const sl_pair edge = e->broken[i];
        if (edge.low >= edge.high || sl_view_place(e, edge.low) == e->count ||
            sl_view_place(e, edge.high) == e->count || (i > 0 && !rises(e->broken[i - 1], edge)))
            return false;
    }
    return true;
}

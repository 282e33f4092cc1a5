/* places.c - see places.h. */
#include "base/places.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/address.h"

void sl_places_open(sl_places *p, unsigned count, unsigned of_host, double patience_s) {
    assert(count > 0 && count <= SL_PLACES_MAX);
    *p = (sl_places){.count = count, .of_host = of_host, .patience_s = patience_s};
}

/* The oldest of a host (NULL: of all), or -1; and how many there are. */
static int find_oldest(const sl_places *p, const struct sockaddr_storage *host, unsigned *count) {
    int oldest = -1;
    *count = 0;
    for (unsigned i = 0; i < p->count; i++) {
        const sl_place *at = &p->places[i];
        if (!at->taken || (host != NULL && !sl_address_same_host(&at->other, host)))
            continue;
        ++*count;
        if (oldest < 0 || at->order < p->places[oldest].order)
            oldest = (int)i;
    }
    return oldest;
}

static unsigned first_free(const sl_places *p) {
    unsigned i = 0;
    while (p->places[i].taken)
        i++;
    return i;
}

/* Whose place the next one of this host takes, or -1. */
static int find_evicted(const sl_places *p, const struct sockaddr_storage *other, bool is_short) {
    unsigned count;
    if (p->of_host > 0 && !sl_address_is_loopback(other)) {
        const int oldest = find_oldest(p, other, &count);
        if (count >= p->of_host)
            return oldest;
    }
    return is_short || p->taken == p->count ? sl_places_oldest(p) : -1;
}

unsigned sl_places_take(sl_places *p, const struct sockaddr_storage *other, double now_s,
                        bool is_short, bool *evicted) {
    const int old = find_evicted(p, other, is_short);
    const unsigned at = old >= 0 ? (unsigned)old : first_free(p);
    *evicted = old >= 0;
    p->taken += old < 0;
    p->places[at] = (sl_place){true, *other, now_s, p->came++};
    return at;
}

void sl_places_leave(sl_places *p, unsigned place) {
    assert(place < p->count && p->places[place].taken);
    p->places[place].taken = false;
    p->taken--;
}

int sl_places_oldest(const sl_places *p) {
    unsigned count;
    return find_oldest(p, NULL, &count);
}

int sl_places_expired(const sl_places *p, double now_s) {
    return sl_places_left_s(p, now_s) <= 0 ? sl_places_oldest(p) : -1;
}

double sl_places_left_s(const sl_places *p, double now_s) {
    const int oldest = sl_places_oldest(p);
    return oldest < 0 ? INFINITY : fmax(0, p->places[oldest].came_s + p->patience_s - now_s);
}

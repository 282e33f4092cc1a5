/* places.h - who may stay at a listening port while it has not said what it has to say.
 *
 * Strangers have few places, of which one host has fewer, unless it is this one, and little time in
 * all: it counts from when they came, not from their last byte. Where all places are taken the
 * oldest goes: who is honest speaks at once. So strangers cost a bounded number of descriptors and
 * bytes, and cannot keep others out by staying. See listener.h for the descriptors.
 */
#ifndef SL_PLACES_H
#define SL_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { SL_PLACES_MAX = 64 };

typedef struct sl_place {
    bool taken;
    struct sockaddr_storage other;
    double came_s;
    uint64_t order; /* in which they came */
} sl_place;

typedef struct sl_places {
    unsigned count;   /* of places, at most SL_PLACES_MAX */
    unsigned of_host; /* that one host may have which is not this one; 0: any number */
    double patience_s;
    uint64_t came;  /* so many in all */
    unsigned taken; /* of places */
    sl_place places[SL_PLACES_MAX];
} sl_places;

void sl_places_open(sl_places *p, unsigned count, unsigned of_host, double patience_s);
/* A place, below p->count, for who comes from this address. *evicted: it is that of somebody else,
 * who has to go. now_s: of a clock that does not jump. is_short: somebody has to go, if anybody is
 * there, though places are free (sl_listener_is_short). */
unsigned sl_places_take(sl_places *p, const struct sockaddr_storage *other, double now_s,
                        bool is_short, bool *evicted);
/* Who had the place has gone, or is no stranger any more. */
void sl_places_leave(sl_places *p, unsigned place);
/* The oldest of those who are there, or -1. */
int sl_places_oldest(const sl_places *p);
/* The oldest, if its time is over; or -1. */
int sl_places_expired(const sl_places *p, double now_s);
/* Seconds until somebody's time is over, at least 0; INFINITY: nobody is there. */
double sl_places_left_s(const sl_places *p, double now_s);

#endif

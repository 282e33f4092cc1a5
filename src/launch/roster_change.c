/* roster_change.c - whose certificates a roster names, and what changes when it is read anew; see
 * roster.h. */
#include <stdio.h>
#include <string.h>

#include "launch/roster.h"

enum { RANKS_NAMED = 8 };

static uint32_t min_count(const sl_roster *a, const sl_roster *b) {
    return sl_roster_count(a) < sl_roster_count(b) ? sl_roster_count(a) : sl_roster_count(b);
}

static bool has_another_pin(const sl_roster *now, const sl_roster *before, uint32_t rank) {
    return strcmp(sl_roster_fingerprint(now, rank), sl_roster_fingerprint(before, rank)) != 0;
}

/* Whose it was; `rank` itself: nobody's. */
static uint32_t owner_before(const sl_roster *before, const char *pin, uint32_t rank) {
    for (uint32_t i = 0; i < sl_roster_count(before); i++)
        if (i != rank && strcmp(sl_roster_fingerprint(before, i), pin) == 0)
            return i;
    return rank;
}

/* Lines without a rank move up where one is struck out. The first that has moved tells. */
int sl_roster_check_change(const sl_roster *now, const sl_roster *before, sl_error *error) {
    uint32_t rank = 0;
    while (rank < sl_roster_count(now) &&
           (!has_another_pin(now, before, rank) || sl_roster_revokes(now, rank) ||
            sl_roster_fingerprint(now, rank)[0] == '\0'))
        rank++;
    if (rank == sl_roster_count(now))
        return 0;
    const uint32_t owner = owner_before(before, sl_roster_fingerprint(now, rank), rank);
    return owner == rank
               ? 0
               : sl_fail(error, SL_EFILE,
                         "%s:%d: rank %u has the certificate that was rank %u's: was a line struck "
                         "out? Keep the line, and write `revoked` in place of its fingerprint",
                         sl_roster_name(now), sl_roster_line(now, rank), rank, owner);
}

int sl_roster_check_fingerprints(const sl_roster *r, sl_error *error) {
    for (uint32_t i = 0; i < sl_roster_count(r); i++)
        if (sl_roster_fingerprint(r, i)[0] == '\0')
            return sl_fail(error, SL_EFILE,
                           "%s:%d: rank %u at %s:%u has no certificate's fingerprint, which "
                           "security.mode \"certificates\" needs: HOST:PORT sha256:..., as "
                           "`starling keys roster` prints it; HOST:PORT revoked, if nobody may be "
                           "that rank; or security.ca, which vouches for it",
                           sl_roster_name(r), sl_roster_line(r, i), i, sl_roster_host(r, i),
                           sl_roster_port(r, i));
    return 0;
}

int sl_roster_check_unrevoked(const sl_roster *r, sl_error *error) {
    for (uint32_t i = 0; i < sl_roster_count(r); i++)
        if (sl_roster_revokes(r, i))
            return sl_fail(error, SL_EFILE,
                           "%s:%d: rank %u is revoked, which has an effect with security.mode "
                           "\"certificates\" only: who has a run's key can be any rank until all "
                           "have another key",
                           sl_roster_name(r), sl_roster_line(r, i), i);
    return 0;
}

/* ---- in words ---- */

typedef struct kind_of_change {
    bool (*is)(const sl_roster *now, const sl_roster *before, uint32_t rank);
    const char *one, *several; /* with %s for the ranks */
} kind_of_change;

static bool is_new(const sl_roster *now, const sl_roster *before, uint32_t rank) {
    return rank >= sl_roster_count(before) && !sl_roster_revokes(now, rank);
}

static bool is_gone(const sl_roster *now, const sl_roster *before, uint32_t rank) {
    return rank >= sl_roster_count(now) ||
           (sl_roster_revokes(now, rank) && !sl_roster_revokes(before, rank));
}

static bool has_another(const sl_roster *now, const sl_roster *before, uint32_t rank) {
    return rank < min_count(now, before) && has_another_pin(now, before, rank) &&
           !sl_roster_revokes(now, rank);
}

static bool is_elsewhere(const sl_roster *now, const sl_roster *before, uint32_t rank) {
    return rank < min_count(now, before) &&
           (sl_roster_port(now, rank) != sl_roster_port(before, rank) ||
            strcmp(sl_roster_host(now, rank), sl_roster_host(before, rank)) != 0);
}

static const kind_of_change kinds[] = {{is_new, "rank %s is new", "ranks %s are new"},
                                       {is_gone, "rank %s is revoked", "ranks %s are revoked"},
                                       {has_another, "the certificate of rank %s is another one",
                                        "the certificates of ranks %s are others"},
                                       {is_elsewhere, "the address of rank %s is another one",
                                        "the addresses of ranks %s are others"}};

static uint32_t name_ranks(const kind_of_change *kind, const sl_roster *now,
                           const sl_roster *before, char *out, size_t bytes) {
    const uint32_t ranks = sl_roster_count(now) > sl_roster_count(before) ? sl_roster_count(now)
                                                                          : sl_roster_count(before);
    uint32_t count = 0;
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (!kind->is(now, before, rank))
            continue;
        if (count < RANKS_NAMED && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%u", count > 0 ? ", " : "", rank);
        count++;
    }
    if (count > RANKS_NAMED && used < bytes)
        snprintf(out + used, bytes - used, " and %u more", count - RANKS_NAMED);
    return count;
}

void sl_roster_tell_change(const sl_roster *now, const sl_roster *before, char *out, size_t bytes) {
    char ranks[RANKS_NAMED * 12 + 32];
    size_t used = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && used < bytes; i++) {
        const uint32_t count = name_ranks(&kinds[i], now, before, ranks, sizeof ranks);
        if (count == 0)
            continue;
        used += (size_t)snprintf(out + used, bytes - used, "%s", used > 0 ? "; " : "");
        if (used < bytes)
            used += (size_t)snprintf(out + used, bytes - used,
                                     count == 1 ? kinds[i].one : kinds[i].several, ranks);
    }
    if (used == 0)
        snprintf(out, bytes, "the roster is as before");
}

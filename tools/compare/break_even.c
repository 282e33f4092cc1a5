/* break_even.c - from which bandwidth on one run takes less time than another; see break_even.h. */
#include "compare/break_even.h"

#include <math.h>

/* Where a break-even is looked for, in Mbit/s, and how exactly. */
#define LOWEST 1e-3
#define HIGHEST 1e7
#define PRECISION 1e-4
/* Copies of parts that a look at one bandwidth goes through: rounds beyond are like those before.
 */
#define COPIES_MAX 1e6

static uint64_t enough_rounds(const sl_timeline *t) {
    double rounds = (double)sl_timeline_rounds(t), copies = (double)sl_timeline_copies(t);
    return copies > COPIES_MAX ? (uint64_t)fmax(1, rounds * COPIES_MAX / copies) : (uint64_t)rounds;
}

typedef struct rivals {
    const sl_timeline *timeline[2];
    sl_platform platform[2];
    uint64_t rounds;
} rivals;

/* 1: the first takes less time at this bandwidth; 0: it does not; negative: an error. */
static int first_wins(rivals *r, double bandwidth_mbit, sl_error *error) {
    double seconds[2] = {0};
    int result = 0;
    for (int i = 0; i < 2 && result == 0; i++) {
        r->platform[i].bandwidth_mbit = bandwidth_mbit;
        result =
            sl_timeline_seconds(&seconds[i], r->timeline[i], &r->platform[i], r->rounds, error);
    }
    return result != 0 ? result : seconds[0] < seconds[1] * (1 - 1e-12);
}

int break_even_find(break_even *out, const sl_timeline *a, const sl_platform *at_a,
                    const sl_timeline *b, const sl_platform *at_b, sl_error *error) {
    rivals r = {.timeline = {a, b}, .platform = {*at_a, *at_b}};
    uint64_t rounds_a = enough_rounds(a), rounds_b = enough_rounds(b);
    r.rounds = rounds_a < rounds_b ? rounds_a : rounds_b;
    double low = LOWEST, high = HIGHEST;
    int at_low = first_wins(&r, low, error),
        at_high = at_low < 0 ? at_low : first_wins(&r, high, error);
    if (at_high < 0)
        return at_high;
    if (at_low == at_high) {
        *out = (break_even){.kind = at_low ? PAYS_ALWAYS : PAYS_NEVER};
        return 0;
    }
    while (high > low * (1 + PRECISION)) {
        double middle = sqrt(low * high);
        int wins = first_wins(&r, middle, error);
        if (wins < 0)
            return wins;
        if (wins == at_low)
            low = middle;
        else
            high = middle;
    }
    *out =
        (break_even){.kind = at_low ? PAYS_BELOW : PAYS_ABOVE, .bandwidth_mbit = sqrt(low * high)};
    return 0;
}

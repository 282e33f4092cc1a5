/* forecast.c - what a node's computing takes in a prediction; see forecast.h. */
#include "compare/forecast.h"

#include <math.h>

/* Where a break-even is looked for, in Mbit/s, and how exactly. */
#define LOWEST 1e-3
#define HIGHEST 1e7
#define PRECISION 1e-4
/* Copies of parts that a look at one bandwidth goes through: rounds beyond are like those before.
 */
#define COPIES_MAX 1e6

node_cost forecast_measured(const sl_record *records, size_t count) {
    node_cost cost = {0};
    for (size_t i = 0; i < count; i++) {
        const sl_times *t = &records[i].times;
        double shares = (double)records[i].round.round * (double)count;
        cost.gradient_ms += 1e3 * t->gradient / shares;
        cost.coding_ms += 1e3 * (t->encode + t->combine) / shares;
    }
    return cost;
}

bool forecast_is_wanted(const sl_network_config *n) {
    return n->bandwidth_mbit > 0 || n->latency_ms > 0 || n->gradient_ms > 0 || n->speed_count > 0;
}

sl_platform forecast_platform(const sl_network_config *n, const node_cost *measured) {
    bool gradient_given = n->gradient_ms > 0;
    bool coding = n->coding == SL_SWITCH_AUTO ? !gradient_given : n->coding == SL_SWITCH_ON;
    return (sl_platform){
        .bandwidth_mbit = n->bandwidth_mbit,
        .latency_ms = n->latency_ms,
        .compute_ms = (gradient_given ? n->gradient_ms : measured->gradient_ms) +
                      (coding ? measured->coding_ms : 0),
        .speeds = n->speed_count > 0 ? n->speeds : NULL,
    };
}

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

int forecast_pays(pay *out, const sl_timeline *a, const sl_platform *at_a, const sl_timeline *b,
                  const sl_platform *at_b, sl_error *error) {
    rivals r = {.timeline = {a, b}, .platform = {*at_a, *at_b}};
    uint64_t rounds_a = enough_rounds(a), rounds_b = enough_rounds(b);
    r.rounds = rounds_a < rounds_b ? rounds_a : rounds_b;
    double low = LOWEST, high = HIGHEST;
    int at_low = first_wins(&r, low, error),
        at_high = at_low < 0 ? at_low : first_wins(&r, high, error);
    if (at_high < 0)
        return at_high;
    if (at_low == at_high) {
        *out = (pay){.kind = at_low ? PAYS_ALWAYS : PAYS_NEVER};
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
    *out = (pay){.kind = at_low ? PAYS_BELOW : PAYS_ABOVE, .bandwidth_mbit = sqrt(low * high)};
    return 0;
}

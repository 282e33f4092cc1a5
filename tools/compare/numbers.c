/* numbers.c - the numbers of a run that tables and files show, and what seeds say of them; see
 * comparison.h. */
#include "compare/comparison.h"

#include <math.h>
#include <string.h>

/* ---- of one run ---- */

static double accuracy(const comparison *c, const contender *r, const attempt *a) {
    (void)c, (void)r;
    return attempt_end(a)->accuracy;
}
static double loss(const comparison *c, const contender *r, const attempt *a) {
    (void)c, (void)r;
    return attempt_end(a)->loss;
}
static double rounds_to_target(const comparison *c, const contender *r, const attempt *a) {
    const milestone *m = attempt_reached(c, r, a);
    return m != NULL ? (double)m->round : NAN;
}
static double mb_to_target(const comparison *c, const contender *r, const attempt *a) {
    const milestone *m = attempt_reached(c, r, a);
    return m != NULL ? 1e-6 * m->bytes_sent : NAN;
}
static double mb_total(const comparison *c, const contender *r, const attempt *a) {
    (void)c, (void)r;
    return 1e-6 * attempt_end(a)->bytes_sent;
}
static double distance(const comparison *c, const contender *r, const attempt *a) {
    (void)c, (void)r;
    return attempt_end(a)->distance;
}
static double gradient_s(const comparison *c, const contender *r, const attempt *a) {
    (void)c, (void)r;
    return a->times.gradient;
}
static double encode_s(const comparison *c, const contender *r, const attempt *a) {
    (void)c, (void)r;
    return a->times.encode;
}
static double wait_s(const comparison *c, const contender *r, const attempt *a) {
    (void)r;
    return c->study->agents ? a->times.wait : NAN;
}
static double combine_s(const comparison *c, const contender *r, const attempt *a) {
    (void)c, (void)r;
    return a->times.combine;
}

/* Numbers of 32 bits that a node sends for each operation of its gradients: D f(N) / (M C), where
 * D f(N) numbers leave a node in a round, and M samples of C operations are in a batch. */
static double c2c(const comparison *c, const contender *r, const attempt *a) {
    (void)c;
    const double operations = r->facts->operations * (double)attempt_end(a)->round;
    return operations > 0 ? attempt_end(a)->bytes_sent / 4 / operations : NAN;
}

const metric metrics[] = {
    {"accuracy", "%", "accuracy", 0, {100, 2, ""}, accuracy},
    {"", "loss", "loss", 1, {1, -5, ""}, loss},
    {"rounds to", "target", "rounds_to_target", 2, {1, 0, ""}, rounds_to_target},
    {"MB to", "target", "mb_to_target", 3, {1, 3, ""}, mb_to_target},
    {"MB", "total", "mb_total", 6, {1, 3, ""}, mb_total},
    {"consensus", "distance", "consensus_distance", 7, {1, -3, ""}, distance},
    {"gradient", "s", "gradient_s", 9, {1, 3, ""}, gradient_s},
    {"encode", "s", "encode_s", 9, {1, 3, ""}, encode_s},
    {"wait", "s", "wait_s", 9, {1, 3, ""}, wait_s},
    {"combine", "s", "combine_s", 9, {1, 3, ""}, combine_s},
    {"C2C", "ratio", "c2c", 10, {1, -3, ""}, c2c},
};
const size_t metric_count = sizeof metrics / sizeof *metrics;

const metric *metric_find(const char *key) {
    for (size_t i = 0; i < metric_count; i++)
        if (strcmp(metrics[i].key, key) == 0)
            return &metrics[i];
    return NULL;
}

bool metric_rises(const metric *m) {
    return m->of == accuracy;
}

double predicted_s(const comparison *c, const contender *r, const attempt *a, size_t link) {
    (void)c, (void)r;
    return a->predicted_s[link];
}

double target_s(const comparison *c, const contender *r, const attempt *a, size_t link) {
    (void)c, (void)r;
    return a->target_s[link];
}

/* ---- over seeds ---- */

statistic metric_over(const comparison *c, const contender *r, const metric *m) {
    double values[SEEDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < c->seeds; i++) {
        const double value = r->attempts[i].ended == RUN_DONE ? m->of(c, r, &r->attempts[i]) : NAN;
        if (isfinite(value))
            values[count++] = value;
    }
    return statistic_of(values, count);
}

statistic links_over(const comparison *c, const contender *r, attempt_number of, size_t link) {
    double values[SEEDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < c->seeds; i++) {
        const double value =
            r->attempts[i].ended == RUN_DONE ? of(c, r, &r->attempts[i], link) : NAN;
        if (isfinite(value))
            values[count++] = value;
    }
    return statistic_of(values, count);
}

statistic metric_apart(const comparison *c, const contender *r, const contender *other,
                       const metric *m) {
    double values[SEEDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < c->seeds; i++) {
        const attempt *a = &r->attempts[i], *b = &other->attempts[i];
        const double value = a->ended == RUN_DONE && b->ended == RUN_DONE && a->seed == b->seed
                                 ? m->of(c, r, a) - m->of(c, other, b)
                                 : NAN;
        if (isfinite(value))
            values[count++] = value;
    }
    return statistic_of(values, count);
}

statistic pays_over(const comparison *c, const contender *r, size_t link, pay_kind *kind) {
    double values[SEEDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < c->seeds; i++) {
        const attempt *a = &r->attempts[i];
        if (!a->has_pay[link])
            continue;
        const bool same = count == 0 || *kind == a->pays[link].kind;
        *kind = same ? a->pays[link].kind : PAYS_MIXED;
        values[count++] = a->pays[link].bandwidth_mbit;
    }
    return statistic_of(values, count);
}

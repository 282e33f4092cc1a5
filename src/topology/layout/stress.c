/* stress.c - stress majorization; see stress.h. */
#include "topology/layout/stress.h"

#include <math.h>
#include <stdlib.h>

enum { POWER_STEPS = 60, SWEEPS_MAX = 300 };
#define SETTLED 1e-4 /* of a step in the graph, per sweep and node */
#define NUDGE 1e-3   /* tells apart nodes that scaling puts on the same spot */

/* target = -1/2 C (hops squared) C times v, C = I - J: the matrix of classical scaling, never
 * stored. */
static void multiply_scaling(double *target, const double *v, const uint16_t *hops,
                             const double *row_means, uint32_t n) {
    double sum = 0, weighted = 0, mean = 0;
    for (uint32_t j = 0; j < n; j++) {
        sum += v[j];
        weighted += row_means[j] * v[j];
        mean += row_means[j] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        double product = 0;
        for (uint32_t j = 0; j < n; j++)
            product += (double)hops[(size_t)i * n + j] * hops[(size_t)i * n + j] * v[j];
        target[i] = -0.5 * (product - row_means[i] * sum - weighted + mean * sum);
    }
}

static void remove_part(double *v, const double *along, uint32_t n) {
    double dot = 0;
    for (uint32_t i = 0; i < n; i++)
        dot += v[i] * along[i];
    for (uint32_t i = 0; i < n; i++)
        v[i] -= dot * along[i];
}

static double normalize(double *v, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += v[i] * v[i];
    for (uint32_t i = 0; sum > 0 && i < n; i++)
        v[i] /= sqrt(sum);
    return sqrt(sum);
}

/* The axis (n) of largest spread that is orthogonal to `first` (or NULL), in its true length. */
static void scaling_axis(double *axis, double *spare, const double *first, const uint16_t *hops,
                         const double *row_means, uint32_t n) {
    double length = 0;
    for (uint32_t i = 0; i < n; i++)
        axis[i] = (i * 0.6180339887498949) - floor(i * 0.6180339887498949) - 0.5;
    for (int step = 0; step < POWER_STEPS; step++) {
        if (first != NULL)
            remove_part(axis, first, n);
        normalize(axis, n);
        multiply_scaling(spare, axis, hops, row_means, n);
        for (uint32_t i = 0; i < n; i++)
            axis[i] = spare[i];
        length = normalize(axis, n);
    }
    if (first != NULL)
        remove_part(axis, first, n);
    normalize(axis, n);
    for (uint32_t i = 0; i < n; i++)
        spare[i] = axis[i] * sqrt(length);
}

static void scale(sl_point *points, double *work, const uint16_t *hops, uint32_t n) {
    double *means = work, *first = work + n, *second = work + 2 * (size_t)n,
           *spare = work + 3 * (size_t)n;
    for (uint32_t i = 0; i < n; i++) {
        means[i] = 0;
        for (uint32_t j = 0; j < n; j++)
            means[i] += (double)hops[(size_t)i * n + j] * hops[(size_t)i * n + j] / n;
    }
    scaling_axis(first, spare, NULL, hops, means, n);
    for (uint32_t i = 0; i < n; i++)
        points[i].x = spare[i];
    scaling_axis(second, spare, first, hops, means, n);
    for (uint32_t i = 0; i < n; i++) {
        points[i].y = spare[i] + NUDGE * sin(2.4 * i);
        points[i].x += NUDGE * cos(2.4 * i);
    }
}

/* Moves node i to where its stress is least while the others stay; returns how far. */
static double settle(sl_point *points, const uint16_t *hops, uint32_t n, uint32_t i) {
    double x = 0, y = 0, total = 0;
    for (uint32_t j = 0; j < n; j++) {
        if (j == i)
            continue;
        double d = hops[(size_t)i * n + j], dx = points[i].x - points[j].x,
               dy = points[i].y - points[j].y;
        double apart = sqrt(dx * dx + dy * dy), pull = apart > 0 ? d / apart : 0,
               weight = 1 / (d * d);
        x += weight * (points[j].x + pull * dx);
        y += weight * (points[j].y + pull * dy);
        total += weight;
    }
    double dx = x / total - points[i].x, dy = y / total - points[i].y;
    points[i] = (sl_point){x / total, y / total};
    return sqrt(dx * dx + dy * dy);
}

/* Turned so that the spread along x is the largest. */
static void lay_flat(sl_point *points, uint32_t n) {
    double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
    for (uint32_t i = 0; i < n; i++) {
        mx += points[i].x / n;
        my += points[i].y / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        double x = points[i].x - mx, y = points[i].y - my;
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    double angle = 0.5 * atan2(2 * xy, xx - yy), c = cos(angle), s = sin(angle);
    for (uint32_t i = 0; i < n; i++)
        points[i] =
            (sl_point){c * points[i].x + s * points[i].y, c * points[i].y - s * points[i].x};
}

int sl_stress_place(sl_point *points, const uint16_t *hops, uint32_t nodes, sl_error *error) {
    double *work = calloc(4 * (size_t)nodes, sizeof *work);
    if (work == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the picture of %u nodes", nodes);
    scale(points, work, hops, nodes);
    free(work);
    double moved = INFINITY;
    for (int sweep = 0; sweep < SWEEPS_MAX && moved > SETTLED * nodes; sweep++) {
        moved = 0;
        for (uint32_t i = 0; i < nodes; i++)
            moved += settle(points, hops, nodes, i);
    }
    lay_flat(points, nodes);
    return 0;
}

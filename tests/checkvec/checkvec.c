/* checkvec.c - every vector operation and every compressor, on every device found, against plain C
 * or the CPU, to the bit; every layer, within a tolerance (layers.c); and how fast they are.
 *
 *   checkvec                  sizes 0, 1, odd, 2^20 + 3 (with STARLING_QUICK in the environment up
 *                             to 4099); random, extreme, equal and zero elements; a line a check:
 *                             "ok", "not ok" with what differs
 *   checkvec --size D         the same with D elements only, where buckets of the whole vector and
 *                             indices are as large as a model's: 9000001 is beyond 8.4 million,
 *                             where a fold of a sum has several tiles. The reference takes some ten
 *                             vectors of the host
 *   checkvec --bench [D]      GB/s of each operation on vectors of D elements (default 25 500 000)
 *                             beside those of a copy; milliseconds of each model's gradient. Bytes
 *                             are those that must move: vectors and payload, and the vector twice
 *                             where a scale of all of it goes before the codes. Where there is a
 *                             device, it is measured alone, and payloads stay on it; "add" is one
 *                             launch or more for each part, with agents' parts and larger ones.
 *                             What fails is "not ok", and the exit code 1
 *
 * Devices are the CPU and those of the plug-in (starling/device.h). No vector operation is allowed
 * a tolerance: all backends must agree in every bit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkvec.h"
#include "starling/device.h"

enum { INPUTS = 11, DEVICES_MAX = 16 };

/* ---- vector operations ---- */

static float times(float a, float b) {
    volatile float product = a * b; /* never fused with what follows */
    return product;
}

static bool check_combine_of(const target *t, input_kind kind, size_t n, size_t k, bool in_place) {
    static const float w[INPUTS] = {0.3f,  0.1f,   0.2f,   -0.05f, 0.15f, 0.07f,
                                    0.11f, 0.013f, 0.107f, -1.0f,  0.5f};
    float *in[INPUTS], *host[INPUTS], *expected = host_vector(n);
    for (uint32_t j = 0; j < k; j++) {
        host[j] = make_input(kind, j, n);
        in[j] = upload(t, host[j], n);
    }
    for (size_t i = 0; i < n; i++) {
        expected[i] = times(w[0], host[0][i]);
        for (size_t j = 1; j < k; j++)
            expected[i] += times(w[j], host[j][i]);
    }
    float *out = in_place ? in[0] : need(t->vec->allocate(n));
    t->vec->combine(out, (const float *const *)in, w, k, n);
    char what[96];
    snprintf(what, sizeof what, "combine of %zu%s, %s", k, in_place ? " in place" : "",
             input_names[kind]);
    bool good = agrees(t, out, expected, n, what);
    if (!in_place)
        t->vec->release(out);
    for (size_t j = 0; j < k; j++) {
        t->vec->release(in[j]);
        free(host[j]);
    }
    free(expected);
    return good;
}

static bool check_combine(const target *t, input_kind kind, size_t n) {
    bool good = true;
    for (size_t k = 1; k <= INPUTS; k += n > 100000 ? 5 : 1)
        good =
            check_combine_of(t, kind, n, k, false) && check_combine_of(t, kind, n, k, true) && good;
    return good;
}

/* Ranges need not begin on a boundary. */
static bool check_shifted(const target *t, input_kind kind, size_t n) {
    if (n < 8)
        return true;
    float *a = make_input(kind, 1, n), *x = upload(t, a, n);
    for (size_t i = 3; i < n; i++)
        a[i] = times(0.5f, a[i]);
    t->vec->combine(x + 3, (const float *const[]){x + 3}, (const float[]){0.5f}, 1, n - 3);
    bool good = agrees(t, x, a, n, "combine from element 3 on");
    t->vec->release(x);
    free(a);
    return good;
}

/* From element `from` on. */
static bool check_step_of(const target *t, input_kind kind, size_t n, size_t from, sl_sgd s) {
    float *x = make_input(kind, 1, n), *decay = make_input(kind, 2, n), *g = make_input(kind, 3, n),
          *m = make_input(kind, 4, n);
    float *dx = upload(t, x, n), *dd = upload(t, decay, n), *dg = upload(t, g, n),
          *dm = upload(t, m, n);
    t->vec->sgd_step(dx + from, dd + from, dg + from, s.momentum > 0 ? dm + from : NULL, &s,
                     n - from);
    for (size_t i = from; i < n; i++) {
        float d = g[i] + times(s.weight_decay, decay[i]);
        if (s.momentum > 0) {
            m[i] = times(s.momentum, m[i]) + d;
            d = s.nesterov ? d + times(s.momentum, m[i]) : m[i];
        }
        x[i] -= times(s.learning_rate, d);
    }
    bool good = agrees(t, dx, x, n, "sgd_step") && agrees(t, dm, m, n, "sgd_step's momentum");
    float *all[] = {dx, dd, dg, dm}, *host[] = {x, decay, g, m};
    for (int i = 0; i < 4; i++) {
        t->vec->release(all[i]);
        free(host[i]);
    }
    return good;
}

static bool check_step(const target *t, input_kind kind, size_t n) {
    static const sl_sgd settings[] = {
        {.learning_rate = 0.1f},
        {.learning_rate = 0.1f, .weight_decay = 1e-2f},
        {.learning_rate = 0.1f, .weight_decay = 1e-2f, .momentum = 0.9f},
        {.learning_rate = 0.1f, .weight_decay = 1e-2f, .momentum = 0.9f, .nesterov = true}};
    bool good = true;
    for (int i = 0; i < 4; i++)
        for (size_t from = 0; from < 2 && from <= n; from++)
            good = check_step_of(t, kind, n, from, settings[i]) && good;
    return good;
}

static bool check_adam(const target *t, input_kind kind, size_t n) {
    const sl_adam s = {.beta1 = 0.9f,
                       .beta2 = 0.999f,
                       .m_new = 0.1f,
                       .v_new = 0.001f,
                       .m_scale = 5.3f,
                       .v_scale = 501.0f,
                       .epsilon = 1e-8f,
                       .weight_decay = 1e-2f};
    float *x = make_input(kind, 1, n), *g = make_input(kind, 2, n), *m = make_input(kind, 3, n),
          *v = make_input(kind, 4, n);
    for (size_t i = 0; i < n; i++)
        v[i] = fabsf(v[i]);
    float *all[] = {upload(t, g, n), upload(t, m, n), upload(t, v, n), upload(t, x, n)},
          *host[] = {g, m, v, x};
    t->vec->adam_direction(all[0], all[3], all[1], all[2], &s, n);
    for (size_t i = 0; i < n; i++) {
        v[i] = times(s.beta2, v[i]) + times(s.v_new, times(g[i], g[i]));
        m[i] = v[i] == 0 ? 0 : times(s.beta1, m[i]) + times(s.m_new, g[i]);
        g[i] = times(m[i], s.m_scale) / (sqrtf(times(v[i], s.v_scale)) + s.epsilon) +
               times(s.weight_decay, x[i]);
    }
    bool good = agrees(t, all[0], g, n, "adam_direction") &&
                agrees(t, all[1], m, n, "adam_direction's first moment") &&
                agrees(t, all[2], v, n, "adam_direction's second moment");
    for (int i = 0; i < 4; i++) {
        t->vec->release(all[i]);
        free(host[i]);
    }
    return good;
}

static bool check_fill(const target *t, input_kind kind, size_t n) {
    float *v = make_input(kind, 1, n), *x = upload(t, v, n);
    for (size_t i = n / 3; i < n; i++)
        v[i] = -0.1f;
    t->vec->fill(x + n / 3, -0.1f, n - n / 3);
    bool good = agrees(t, x, v, n, "fill");
    t->vec->release(x);
    free(v);
    return good;
}

static bool check_keep(const target *t, input_kind kind, size_t n) {
    float *v = make_input(kind, 1, n), *kept = make_input(kind, 2, n);
    for (size_t i = 0; i < n; i += 3)
        kept[i] = i % 2 ? 0.0f : -0.0f;
    float *x = upload(t, v, n), *where = upload(t, kept, n);
    t->vec->keep_where(x, where, n);
    for (size_t i = 0; i < n; i++)
        if (kept[i] == 0)
            v[i] = 0;
    bool good = agrees(t, x, v, n, "keep_where");
    t->vec->release(x);
    t->vec->release(where);
    free(v);
    free(kept);
    return good;
}

/* In double, 16 lanes a tile of 4096, added by halves, the tiles in 256 folds: the order is part of
 * what is promised. */
static double tile_sum(const float *x, const float *y, size_t from, size_t to) {
    volatile double lanes[16] = {0};
    for (size_t i = from; i < to; i++) {
        volatile double difference = y != NULL ? (double)x[i] - y[i] : x[i],
                        square = difference * difference;
        lanes[i % 16] += square;
    }
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

static double sum_of_squares(const float *x, const float *y, size_t n) {
    volatile double folds[256] = {0}, sum = 0;
    for (size_t from = 0; from < n; from += 4096)
        folds[from / 4096 % 256] += tile_sum(x, y, from, from + 4096 < n ? from + 4096 : n);
    for (int f = 0; f < 256; f++)
        sum += folds[f];
    return sum;
}

static bool check_sums(const target *t, input_kind kind, size_t n) {
    float *x = make_input(kind, 1, n), *y = make_input(kind, 2, n), *dx = upload(t, x, n),
          *dy = upload(t, y, n);
    double norm = t->vec->norm2_squared(dx, n), distance = t->vec->distance_squared(dx, dy, n);
    double norm_expected = sum_of_squares(x, NULL, n), distance_expected = sum_of_squares(x, y, n);
    bool good = norm == norm_expected && distance == distance_expected;
    if (!good)
        printf("# %s: %zu %s elements: norm %a, not %a; distance %a, not %a\n", t->label, n,
               input_names[kind], norm, norm_expected, distance, distance_expected);
    t->vec->release(dx);
    t->vec->release(dy);
    free(x);
    free(y);
    return good;
}

static bool check_copy(const target *t, input_kind kind, size_t n) {
    float *a = make_input(kind, 1, n), *from = upload(t, a, n), *to = need(t->vec->allocate(n));
    t->vec->copy(to, from, n * sizeof *a);
    bool good = agrees(t, to, a, n, "copy");
    t->vec->release(from);
    t->vec->release(to);
    free(a);
    return good;
}

static bool check_allocation(const target *t, input_kind kind, size_t n) {
    (void)kind;
    float *v = need(t->vec->allocate(n)), *zeros = host_vector(n);
    bool good = (uintptr_t)v % SL_VEC_ALIGNMENT == 0 && agrees(t, v, zeros, n, "allocate");
    t->vec->release(v);
    free(zeros);
    return good;
}

static void check_operations(const target *t) {
    static const struct {
        const char *name;
        bool (*check)(const target *t, input_kind kind, size_t n);
    } operations[] = {{"allocate", check_allocation},
                      {"copy", check_copy},
                      {"fill", check_fill},
                      {"keep_where", check_keep},
                      {"combine", check_combine},
                      {"combine shifted", check_shifted},
                      {"sgd_step", check_step},
                      {"adam_direction", check_adam},
                      {"norm2_squared, distance_squared", check_sums}};
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
        bool good = true;
        if (!is_wanted(operations[o].name))
            continue;
        for (int s = 0; s < sizes_checked; s++)
            for (input_kind kind = 0; kind < (sizes[s] > 100000 ? EQUAL : INPUT_KINDS); kind++)
                good = operations[o].check(t, kind, sizes[s]) && good;
        tell(t, operations[o].name, good);
    }
}

static void check_target(const target *t) {
    check_operations(t);
    if (!t->vec->on_host) {
        check_compressors(t);
        if (is_wanted("layers"))
            check_layers(t);
        if (is_wanted("graphs"))
            check_graphs(t);
    }
    sl_error error = {0};
    int result = t->vec->fence(&error);
    if (result != 0)
        printf("# %s\n", error.text);
    tell(t, "no operation failed", result == 0);
}

/* ---- devices ---- */

/* with_cpu: on the CPU also where there is another. */
static void each_device(void (*act)(const target *t, size_t n), size_t n, bool with_cpu) {
    static sl_device_info devices[DEVICES_MAX];
    char reason[SL_DEVICE_TEXT_MAX], name[32];
    size_t count = sl_devices_list(devices, DEVICES_MAX, reason);
    if (count == 0 || with_cpu)
        act(&(target){sl_vec_cpu(), "cpu"}, n);
    if (count == 0)
        printf("# no GPU: %s\n", reason);
    for (size_t i = 0; i < count && i < 1; i++) { /* a process opens one */
        const sl_vec_ops *vec;
        sl_error error;
        snprintf(name, sizeof name, "cuda:%d", devices[i].index);
        if (!devices[i].usable) {
            printf("# %s: %s\n", name, devices[i].reason);
        } else if (sl_device_open(&vec, name, 0, &error) != 0) {
            printf("not ok %s: %s\n", name, error.text);
            failed++;
        } else {
            printf("# %s: %s\n", name, devices[i].name);
            act(&(target){vec, devices[i].emulated ? "emulated" : name}, n);
        }
    }
}

static void check_one(const target *t, size_t n) {
    (void)n;
    check_target(t);
}

int main(int argc, char **argv) {
    const bool times = argc > 1 && strcmp(argv[1], "--bench") == 0,
               sized = argc > 1 && strcmp(argv[1], "--size") == 0;
    char *end = NULL;
    if (argc == 5 && sized && strcmp(argv[3], "--only") == 0) {
        only = argv[4];
        argc = 3;
    }
    unsigned long long n = argc > 2 ? strtoull(argv[2], &end, 10) : 25500000;
    if (argc > 3 || n == 0 || n > UINT32_MAX || (end != NULL && *end != '\0') ||
        (argc > 1 && !times && !sized) || (sized && argc < 3)) {
        fputs("usage: checkvec [--bench [ELEMENTS] | --size ELEMENTS [--only TEXT]]\n", stderr);
        return 2;
    }
    name_the_rest();
    if (times) {
        each_device(bench_target, (size_t)n, false);
        return failed == 0 ? 0 : 1;
    }
    if (sized)
        choose_size((size_t)n);
    while (getenv("STARLING_QUICK") != NULL && !sized && sizes[sizes_checked - 1] > 4099)
        sizes_checked--;
    each_device(check_one, 0, !sized);
    printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}

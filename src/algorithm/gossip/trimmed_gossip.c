/* trimmed_gossip.c - two forms of clipped-gossip (clipped_gossip.c) that go by coordinate: Yin,
 * Chen, Ramchandran, Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal Statistical
 * Rates", ICML 2018.
 *
 *   u_i = x_i - gamma mom(g_i(x_i)), sent
 *   median:        x_i = the median of u_i and all u_j; of an even number the mean of the middle
 * two trimmed-mean:  x_i = their mean without the `trim` largest and least
 *
 * Neither looks at W's numbers, nor keeps the mean. Memory beside x, g, momentum: none. Wire: 32 d
 * bits to each out-neighbour.
 */
#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"
#include "vec/finite.h"

static void insert(double *sorted, size_t count, double value) {
    for (; count > 0 && sorted[count - 1] > value; count--)
        sorted[count] = sorted[count - 1];
    sorted[count] = value;
}

/* The mean of the parts' element `at` and x without the `trim` largest and least. */
static float trimmed(sl_state *s, const sl_mix *mix, size_t at, float x, size_t trim) {
    const size_t values = mix->k + 1;
    double sum = 0;
    insert(s->numbers, 0, x);
    for (size_t j = 0; j < mix->k; j++)
        insert(s->numbers, j + 1, ((const float *)mix->parts[j].payload.data)[at]);
    for (size_t i = trim; i < values - trim; i++)
        sum += s->numbers[i];
    return (float)(sum / (double)(values - 2 * trim));
}

static void take_trimmed_mean(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const size_t most = mix->k / 2, wanted = s->config->trim, trim = wanted < most ? wanted : most;
    for (size_t i = 0; i < count; i++)
        s->x[from + i] = trimmed(s, mix, i, s->x[from + i], trim);
    s->is_finite = s->is_finite && sl_vec_is_finite(s->x + from, count);
}

static void take_median(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    for (size_t i = 0; i < count; i++)
        s->x[from + i] = trimmed(s, mix, i, s->x[from + i], mix->k / 2);
    s->is_finite = s->is_finite && sl_vec_is_finite(s->x + from, count);
}

static const sl_key keys[] = {
    SL_ROWS_CLIPPED,
    SL_KEYS_END,
};

#define BOTH_FORMS                                                                                 \
    .name = "clipped-gossip", .stable_by = SL_STABLE_UNKNOWN, .matrix = SL_MATRIX_SYMMETRIC,       \
    .host_only = true, .keys = keys, .takes_momentum = true, .takes_local_steps = true,            \
    .stage_count = 1, .local = sl_local_step

static const sl_stage median[] = {{.in_place = true,
                                   .prepare = sl_local_step,
                                   .vector = sl_publish_model,
                                   .combine = take_median}};

const sl_algorithm sl_median_gossip = {
    BOTH_FORMS,
    .variant = SL_VARIANT_MEDIAN,
    .stages = median,
};

static const sl_stage trimmed_mean[] = {{.in_place = true,
                                         .prepare = sl_local_step,
                                         .vector = sl_publish_model,
                                         .combine = take_trimmed_mean}};

const sl_algorithm sl_trimmed_gossip = {
    BOTH_FORMS,
    .variant = SL_VARIANT_TRIMMED_MEAN,
    .trims = true,
    .stages = trimmed_mean,
};

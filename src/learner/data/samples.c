/* samples.c - a table of labelled samples; see samples.h. */
#include "learner/data/samples.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/kernels.h"

#define CACHE_LINE_BYTES 64
#define PREFETCH_BYTES_MAX 4096

int sl_samples_allocate(sl_samples *out, sl_samples_kind kind, uint64_t count, uint64_t features,
                        const char *where, sl_error *error) {
    if (count < 1 || count > SL_SAMPLES_MAX)
        return sl_fail(error, SL_EFILE, "%s: has %llu samples; allowed are 1 to %u", where,
                       (unsigned long long)count, SL_SAMPLES_MAX);
    if (features < 1 || features > SL_FEATURES_MAX)
        return sl_fail(error, SL_EFILE, "%s: has %llu numbers a sample; allowed are 1 to %u", where,
                       (unsigned long long)features, SL_FEATURES_MAX);
    bool bytes_each = kind != SL_SAMPLES_VALUES;
    size_t bytes = (size_t)(count * features) * (bytes_each ? 1 : sizeof(float)),
           positions = kind == SL_SAMPLES_CODES ? (size_t)features : 1;
    if (bytes > SL_SAMPLES_BYTES_MAX)
        return sl_fail(error, SL_EFILE,
                       "%s: %llu samples of %llu numbers need %zu bytes; at most %zu are allowed: "
                       "take fewer (data.train_samples)",
                       where, (unsigned long long)count, (unsigned long long)features, bytes,
                       SL_SAMPLES_BYTES_MAX);
    sl_samples s = {.count = (uint32_t)count,
                    .features = (uint32_t)features,
                    .positions = (uint32_t)positions,
                    .channels = 1};
    for (int c = 0; c < SL_CHANNELS_MAX; c++)
        s.scale[c] = s.deviation[c] = 1;
    void *table = calloc(bytes, 1);
    s.pixels = kind == SL_SAMPLES_PIXELS ? table : NULL;
    s.values = kind == SL_SAMPLES_VALUES ? table : NULL;
    s.codes = kind == SL_SAMPLES_CODES ? table : NULL;
    s.labels = calloc((size_t)count * positions, sizeof *s.labels);
    s.groups = kind == SL_SAMPLES_CODES ? calloc((size_t)count, sizeof *s.groups) : NULL;
    if (table == NULL || s.labels == NULL || (s.codes != NULL && s.groups == NULL)) {
        sl_samples_close(&s);
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu bytes of samples", where,
                       bytes);
    }
    *out = s;
    return 0;
}

size_t sl_samples_bytes(const sl_samples *samples) {
    const size_t number = samples->values != NULL ? sizeof(float) : 1,
                 target = samples->targets != NULL ? sizeof *samples->targets : 0,
                 sample =
                     samples->features * number + samples->positions * sizeof(uint16_t) + target;
    return samples->count * sample;
}

void sl_samples_close(sl_samples *samples) {
    free(samples->pixels);
    free(samples->values);
    free(samples->codes);
    free(samples->labels);
    free(samples->targets);
    free(samples->groups);
    free(samples->names);
    *samples = (sl_samples){0};
}

/* Each operation rounded on its own: every processor gives the same bits. */
FOR_EACH_CPU(void, convert,
             (float *x, const uint8_t *pixels, size_t count, float mean, float scale),
             (x, pixels, count, mean, scale)) {
    for (size_t i = 0; i < count; i++)
        x[i] = ((float)pixels[i] * (1.0f / 255.0f) - mean) * scale;
}

void sl_samples_prefetch(const sl_samples *samples, uint32_t index) {
    size_t width = samples->values != NULL ? sizeof(float) : 1, bytes = samples->features * width;
    const char *table = samples->values != NULL   ? (const char *)samples->values
                        : samples->pixels != NULL ? (const char *)samples->pixels
                                                  : (const char *)samples->codes;
    const char *row = table + index * bytes;
    for (size_t at = 0; at < bytes && at < PREFETCH_BYTES_MAX; at += CACHE_LINE_BYTES)
        __builtin_prefetch(row + at);
}

static void get_pixels(const sl_samples *samples, const uint8_t *pixels, float *x) {
    size_t plane = samples->features / samples->channels;
    for (uint32_t channel = 0; channel < samples->channels; channel++) {
        size_t start = channel * plane;
        convert(x + start, pixels + start, plane, samples->mean[channel], samples->scale[channel]);
    }
}

const uint16_t *sl_samples_get(const sl_samples *samples, uint32_t index, float *x) {
    assert(index < samples->count);
    size_t features = samples->features, first = index * features;
    if (samples->values != NULL)
        memcpy(x, samples->values + first, features * sizeof *x);
    else if (samples->pixels != NULL)
        get_pixels(samples, samples->pixels + first, x);
    else
        for (size_t i = 0; i < features; i++)
            x[i] = samples->codes[first + i];
    return samples->labels + (size_t)index * samples->positions;
}

uint32_t sl_samples_class(const sl_samples *samples, uint32_t index) {
    return samples->groups != NULL ? samples->groups[index] : samples->labels[index];
}

uint32_t sl_samples_class_count(const sl_samples *samples) {
    return samples->groups != NULL ? samples->group_count : samples->classes;
}

uint64_t sl_samples_hash(uint64_t hash, const sl_samples *samples) {
    uint32_t shape[] = {samples->count, samples->features, samples->classes};
    size_t numbers = (size_t)samples->count * samples->features;
    hash = sl_hash(hash, shape, sizeof shape);
    if (samples->pixels != NULL)
        hash = sl_hash(hash, samples->pixels, numbers);
    else if (samples->codes != NULL)
        hash = sl_hash(hash, samples->codes, numbers);
    else
        hash = sl_hash(hash, samples->values, numbers * sizeof(float));
    if (samples->targets != NULL)
        hash = sl_hash(hash, samples->targets, samples->count * sizeof *samples->targets);
    if (samples->groups != NULL)
        hash = sl_hash(hash, samples->groups, samples->count * sizeof *samples->groups);
    return sl_hash(hash, samples->labels,
                   (size_t)samples->count * samples->positions * sizeof *samples->labels);
}

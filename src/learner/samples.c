/* samples.c - a table of labelled samples; see samples.h. */
#include "samples.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* Sanitizers intercept before the loader chooses a function. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_EACH_CPU
#endif

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
    size_t bytes = (size_t)(count * features) * (kind == SL_SAMPLES_PIXELS ? 1 : sizeof(float));
    if (bytes > SL_SAMPLES_BYTES_MAX)
        return sl_fail(error, SL_EFILE,
                       "%s: %llu samples of %llu numbers need %zu bytes; at most %zu are allowed: "
                       "take fewer (data.train_samples)",
                       where, (unsigned long long)count, (unsigned long long)features, bytes,
                       SL_SAMPLES_BYTES_MAX);
    void *table = calloc(bytes, 1);
    uint16_t *labels = calloc((size_t)count, sizeof *labels);
    if (table == NULL || labels == NULL) {
        free(table);
        free(labels);
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu bytes of samples", where,
                       bytes);
    }
    *out = (sl_samples){
        .count = (uint32_t)count, .features = (uint32_t)features, .labels = labels, .channels = 1};
    for (int c = 0; c < SL_CHANNELS_MAX; c++)
        out->scale[c] = out->deviation[c] = 1;
    if (kind == SL_SAMPLES_PIXELS)
        out->pixels = table;
    else
        out->values = table;
    return 0;
}

void sl_samples_free(sl_samples *samples) {
    free(samples->pixels);
    free(samples->values);
    free(samples->labels);
    *samples = (sl_samples){0};
}

/* Each operation rounded on its own: every processor gives the same bits. */
FOR_EACH_CPU static void convert(float *x, const uint8_t *pixels, size_t count, float mean, float scale) {
    for (size_t i = 0; i < count; i++)
        x[i] = ((float)pixels[i] * (1.0f / 255.0f) - mean) * scale;
}

void sl_samples_prefetch(const sl_samples *samples, uint32_t index) {
    size_t width = samples->pixels != NULL ? 1 : sizeof(float), bytes = samples->features * width;
    const char *row = samples->pixels != NULL
                          ? (const char *)(samples->pixels + (size_t)index * samples->features)
                          : (const char *)(samples->values + (size_t)index * samples->features);
    for (size_t at = 0; at < bytes && at < PREFETCH_BYTES_MAX; at += CACHE_LINE_BYTES)
        __builtin_prefetch(row + at);
}

uint16_t sl_samples_get(const sl_samples *samples, uint32_t index, float *x) {
    assert(index < samples->count);
    size_t features = samples->features, first = index * features;
    if (samples->values != NULL) {
        memcpy(x, samples->values + first, features * sizeof *x);
        return samples->labels[index];
    }
    size_t plane = features / samples->channels;
    const uint8_t *pixels = samples->pixels + first;
    for (uint32_t channel = 0; channel < samples->channels; channel++) {
        size_t start = channel * plane;
        convert(x + start, pixels + start, plane, samples->mean[channel], samples->scale[channel]);
    }
    return samples->labels[index];
}

uint64_t sl_samples_hash(uint64_t hash, const sl_samples *samples) {
    uint32_t shape[] = {samples->count, samples->features, samples->classes};
    size_t numbers = (size_t)samples->count * samples->features;
    hash = sl_hash(hash, shape, sizeof shape);
    if (samples->pixels != NULL)
        hash = sl_hash(hash, samples->pixels, numbers);
    else
        hash = sl_hash(hash, samples->values, numbers * sizeof(float));
    return sl_hash(hash, samples->labels, samples->count * sizeof *samples->labels);
}

/* samples.h - a table of labelled samples in memory: bytes for images and characters, floats for
 * anything else.
 *
 * Images stay uint8, which takes a quarter of the memory. They become floats when a batch is
 * gathered: value = (pixel/255 - mean of the channel) * scale, with constants of the data set.
 * Centred inputs let plain SGD take larger steps.
 *
 * A sample of text has one label per character: the next character. Partitions by label use the
 * sample's group instead.
 */
#ifndef SL_LEARNER_SAMPLES_H
#define SL_LEARNER_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"

#define SL_SAMPLES_MAX 100000000u              /* samples of one table */
#define SL_FEATURES_MAX 16777216u              /* numbers of one sample */
#define SL_CLASSES_MAX 65535u                  /* labels are 16 bits */
#define SL_SAMPLES_BYTES_MAX ((size_t)1 << 30) /* of one table */
#define SL_CHANNELS_MAX 3

typedef struct sl_samples {
    uint32_t count, features, classes;
    uint8_t *pixels;    /* (count, features), or NULL */
    float *values;      /* (count, features), or NULL */
    uint8_t *codes;     /* (count, features) characters, or NULL */
    uint32_t positions; /* labels of a sample: features of a text, else 1 */
    uint16_t *labels;   /* (count, positions), each < classes */
    float *targets;     /* (count) labels that are numbers; then there is one class, or else NULL */
    uint32_t *groups;   /* text: (count) source of each sample, < group_count; else NULL */
    uint32_t group_count;
    int32_t *names;         /* (classes) the labels in the file; NULL: the classes' numbers */
    bool speakers;          /* groups are speakers */
    uint32_t channels;      /* pixels: features/channels consecutive pixels each */
    uint32_t height, width; /* of an image, rows of pixels in each channel; 0: no image */
    float mean[SL_CHANNELS_MAX], deviation[SL_CHANNELS_MAX]; /* of the whole data set, by channel */
    float scale[SL_CHANNELS_MAX];                            /* 1, or 1/deviation */
} sl_samples;

typedef enum sl_samples_kind {
    SL_SAMPLES_PIXELS,
    SL_SAMPLES_VALUES,
    SL_SAMPLES_CODES
} sl_samples_kind;

/* An empty table of `count` x `features`, values zeroed. `where` names the source in errors. */
int sl_samples_allocate(sl_samples *out, sl_samples_kind kind, uint64_t count, uint64_t features,
                        const char *where, sl_error *error);
/* Of the samples and their labels. */
size_t sl_samples_bytes(const sl_samples *samples);
void sl_samples_close(sl_samples *samples);
/* Prefetches sample `index` into the cache: a batch reads the table in random order. */
void sl_samples_prefetch(const sl_samples *samples, uint32_t index);
/* Writes sample `index` as floats into x (features). Returns its labels (positions), borrowed. */
const uint16_t *sl_samples_get(const sl_samples *samples, uint32_t index, float *x);
/* The label or group that partitions use, and the number of these. */
uint32_t sl_samples_class(const sl_samples *samples, uint32_t index);
uint32_t sl_samples_class_count(const sl_samples *samples);
/* Continues `hash` over shape, samples and labels. */
uint64_t sl_samples_hash(uint64_t hash, const sl_samples *samples);

#endif

/* coding.h - a codec as plain numbers, and the table through which a device that keeps the vectors
 * encodes and decodes them.
 *
 * The device writes the same bytes as the CPU: layout and parameters come from the codec,
 * arithmetic from src/element, random bits from base/philox.h. It is handed numbers only, so that a
 * plug-in needs nothing of this library.
 */
#ifndef SL_CODING_H
#define SL_CODING_H

#include "element/code.h"
#include "starling/compressor.h"
#include "starling/rng.h"

typedef enum coding_form {
    CODING_PLAIN, /* identity */
    CODING_DENSE, /* a code of `width` bits an element, and scales */
    CODING_TOP_K,
    CODING_RANDOM_K,
    CODING_DROPPING,
    CODING_SIGNED, /* top-k's entries, as signs of the mean of their magnitudes */
    CODING_MARKED, /* a part is elements; of those that reach tau, index and sign */
    CODING_DRAWN   /* the same; of those that are drawn by their magnitude, value and index */
} coding_form;

typedef enum coding_scale {
    SCALE_NONE,   /* the magnitudes are only compared with the limit */
    SCALE_MAX,    /* the largest magnitude */
    SCALE_L2,     /* the Euclidean norm */
    SCALE_MEAN,   /* the mean magnitude */
    SCALE_SIDES,  /* the means of the elements >= 0 and of those < 0 */
    SCALE_CLIPPED /* the largest magnitude, cut off at `clip` deviations */
} coding_scale;

typedef struct sl_coding {
    coding_form form;
    size_t dimension, part_elements, part_bytes_max;
    size_t stride; /* between parts, in memory */
    uint32_t parts;
    /* dense */
    coding_code code;
    coding_scale scale;
    uint32_t width, levels;
    uint32_t scale_floats; /* 0, 1 or 2 */
    size_t bucket;
    uint32_t magnitude_limit; /* a float's bits: elements from here on are refused */
    float tau;                /* threshold */
    double clip;
    /* sparse */
    bool by_entries;        /* a part is a range of entries, not of elements */
    size_t k;               /* top-k, random-k, drawn */
    uint32_t index_width;   /* top-k by entries: bits of an index; signed, marked: and its sign */
    uint32_t width_last;    /* marked, drawn: of the last part */
    uint32_t draws;         /* dropping: kept below so many of 65536 */
    size_t room, room_last; /* dropping, marked, drawn: elements that a part, and the last part, has
                               at most */
    float value_factor;     /* of what is added: d/k or 1/p where scaled */
} sl_coding;

/* Of a codec that is not split. */
void sl_codec_coding(const sl_codec *codec, sl_coding *out);

/* Parts that one decoder decodes together. Part i + 1 lies `stride` bytes behind part i. */
typedef struct coding_run {
    void *decoder;
    sl_rng_key key;
    uint32_t first, count;
    sl_payload payload;    /* the first part */
    const uint32_t *sizes; /* (count) of the parts; NULL: there is one */
    float weight;
} coding_run;

/* All take effect in order with the device's vector operations. */
typedef struct sl_coder {
    void *(*encoder_open)(const sl_coding *coding); /* NULL: no memory */
    void (*encoder_close)(void *encoder);
    /* Encodes the whole message and starts copying its parts to `host`, page-locked memory, part p
     * at p times its rounded size; NULL: they stay on the device. source->read is asked once, for
     * the whole vector, into the device's memory. */
    void (*begin)(void *encoder, const sl_rng_key *key, const sl_source *source, void *host);
    /* Is this part, the next one, encoded, and on the host if it goes there? If not, the notify_fd
     * is signalled when it is (sl_async_ops.event_passed). */
    bool (*ready)(void *encoder, uint32_t part, int notify_fd);
    /* Parts in order. Waits until this one is ready. local: the same bytes on the device. 0,
     * SL_EDIVERGED, SL_ENOMEM or SL_EDEVICE. */
    int (*part)(void *encoder, uint32_t part, sl_payload *out, sl_payload *local);
    /* The bytes of all parts, after the first one. */
    void (*sizes)(void *encoder, uint32_t *out);
    void *(*decoder_open)(const sl_coding *coding);
    void (*decoder_close)(void *decoder);
    /* acc += weight * decode(payload) of each run, in order; payloads and acc are on the device;
     * payloads were checked on the host. The runs are of one codec, and sl_codec_joins them if they
     * have several parts: these are added part after part, and of each the runs in turn. */
    void (*add)(const coding_run *runs, size_t count, float *acc);
    /* How often a message reads all of the vector, at least: scales, and a place among the largest,
     * come before the codes. 0: only what it sends. */
    unsigned (*reads)(const sl_coding *coding);
} sl_coder;

#endif

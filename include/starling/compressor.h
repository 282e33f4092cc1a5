/* compressor.h - compressors: from vectors to payloads and back, and what each promises.
 *
 * A codec is a compressor with its parameters for one vector length. A message is one encoded
 * vector. It is cut into parts, one frame each, which are decoded independently. A part of a
 * dense-coded compressor covers a range of elements, one of a sparse compressor a range of the
 * message's entries. A message of one part has exactly the length that docs/compressors.md says.
 * Decoding adds in one pass, acc += w * decode(payload), without a dense temporary. Encoding reads
 * its input through a source, block by block, so a difference of two vectors is never stored.
 * Random choices are functions of (seed, sender, exchange, stage, element): the receiver
 * recomputes them, and they are not sent. Of shared-mask they are those of all senders. */
#ifndef STARLING_COMPRESSOR_H
#define STARLING_COMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"
#include "starling/key.h"
#include "starling/types.h"
#include "starling/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The compressors: enum suffix, NAME of the descriptor sl_NAME_codec, name in an experiment. */
#define SL_COMPRESSORS(X)                                                                          \
    X(IDENTITY, identity, "identity")                                                              \
    X(FLOAT16, float16, "float16")                                                                 \
    X(BFLOAT16, bfloat16, "bfloat16")                                                              \
    X(FLOAT8, float8, "float8")                                                                    \
    X(TOP_K, top_k, "top-k")                                                                       \
    X(RANDOM_K, random_k, "random-k")                                                              \
    X(QSGD, qsgd, "qsgd")                                                                          \
    X(SCALED_SIGN, scaled_sign, "scaled-sign")                                                     \
    X(ONE_BIT, one_bit, "1-bit")                                                                   \
    X(TERNGRAD, terngrad, "terngrad")                                                              \
    X(NATURAL, natural, "natural")                                                                 \
    X(RANDOM_DROPPING, random_dropping, "random-dropping")                                         \
    X(THRESHOLD, threshold, "threshold")                                                           \
    X(STC, stc, "stc")                                                                             \
    X(SBC, sbc, "sbc")                                                                             \
    X(POS_NEG, pos_neg, "pos-neg")                                                                 \
    X(STROM, strom, "strom")                                                                       \
    X(DRIVE, drive, "drive")                                                                       \
    X(EDEN, eden, "eden")                                                                          \
    X(THREE_LC, three_lc, "3lc")                                                                   \
    X(MAGNITUDE_DROPPING, magnitude_dropping, "magnitude-dropping")                                \
    X(ROTATED_QSGD, rotated_qsgd, "rotated-qsgd")                                                  \
    X(ROTATED_TERNGRAD, rotated_terngrad, "rotated-terngrad")                                      \
    X(SHARED_MASK, shared_mask, "shared-mask")                                                     \
    X(ADACOMP, adacomp, "adacomp")

/* Those that an algorithm has of its own; no experiment names them. */
#define SL_OWN_COMPRESSORS(X)                                                                      \
    X(MODULAR, modular, "modular") X(GRID, grid, "grid") X(NONZEROS, nonzeros, "nonzeros")

typedef enum sl_compressor_kind {
#define SL_COMPRESSOR_ENUM(kind, codec, name) SL_COMPRESSOR_##kind,
    SL_COMPRESSORS(SL_COMPRESSOR_ENUM) /* SL_COMPRESSOR_COUNT of them */
    SL_COMPRESSOR_COUNT,
    SL_COMPRESSOR_LAST = SL_COMPRESSOR_COUNT - 1,
    SL_OWN_COMPRESSORS(SL_COMPRESSOR_ENUM) SL_COMPRESSOR_KINDS
#undef SL_COMPRESSOR_ENUM
} sl_compressor_kind;

SL_API const char *sl_compressor_name(sl_compressor_kind kind);
/* The keys that it reads; NULL: past the end. */
SL_API const sl_key *sl_compressor_key(sl_compressor_kind kind, size_t index);
/* Does it read algorithm.compressor.KEY, such as "levels"? */
SL_API bool sl_compressor_reads(sl_compressor_kind kind, const char *key);
/* Does it encode two vectors: what is to be sent, and what of it is new (sl_source.fresh)? */
SL_API bool sl_compressor_reads_fresh(sl_compressor_kind kind);
/* Does it look at no other elements than those it has drawn? Then it misses others that are not
 * finite. */
SL_API bool sl_compressor_reads_drawn(sl_compressor_kind kind);

typedef enum sl_norm { SL_NORM_L2, SL_NORM_MAX } sl_norm;

typedef enum sl_scope { SL_SCOPE_MODEL, SL_SCOPE_TENSOR } sl_scope;

/* Which coordinates shared-mask takes in an exchange: random ones, or block after block. */
typedef enum sl_order { SL_ORDER_RANDOM, SL_ORDER_CYCLIC } sl_order;

/* Lossless codes behind a compressor: of indices golomb and elias, of levels elias and huffman. */
typedef enum sl_entropy {
    SL_ENTROPY_NONE,
    SL_ENTROPY_GOLOMB,
    SL_ENTROPY_ELIAS,
    SL_ENTROPY_HUFFMAN
} sl_entropy;

/* Hashes take algorithm.compressor.* in the order of the fields; the key of a new field says
 * `is_later`. */
typedef struct sl_compressor_config {
    sl_compressor_kind kind;
    uint64_t k;      /* top-k, random-k, shared-mask, stc, sbc: entries kept, pos-neg: of each kind,
                        magnitude-dropping: on average; 0: from fraction */
    double fraction; /* k = max(1, round(fraction d)) */
    double fraction_min; /* above 0: of each tensor between this and fraction, by its layer's time
                            (layer_budget.h) */
    sl_order order;      /* shared-mask */
    uint32_t levels;     /* qsgd, rotated-qsgd: s >= 1 */
    uint32_t bits;       /* eden: of an element, 1 to 4; modular: 1 to 24; grid: 1 to 16 */
    uint32_t bucket; /* qsgd, scaled-sign, 1-bit, terngrad: elements per scale; 0: one scale for the
                        vector */
    sl_norm norm;    /* qsgd */
    double probability; /* random-dropping: of keeping an element, in (0, 1] */
    double threshold;   /* threshold (CD-SGD's T), strom: tau > 0 */
    double multiplier;  /* 3lc: s, at least 1 and below 2 */
    uint32_t bin;       /* adacomp: elements of which the largest decides, T >= 1 */
    double clip_sigma;  /* terngrad: c >= 1, what is beyond c sigma is cut off; 0: nothing is */
    bool share_scale;   /* terngrad: with the largest of all nodes' scales */
    sl_entropy coding;  /* top-k, stc, sbc, pos-neg, strom: how indices are sent; qsgd, terngrad,
                           natural: how levels are */
    sl_scope scope;
    sl_switch scaling, contracting; /* an experiment's wish, of which follow: */
    bool scaled;                    /* random-k by d/k, random-dropping by 1/p: unbiased */
    bool contractive;               /* the decoded vector is divided by 1 + omega */
    double theta;                   /* modular: how far apart the vectors of two nodes may be */
} sl_compressor_config;

/* Bounds that hold for every input of `dimension` elements. */
typedef struct sl_quality {
    bool unbiased;
    double omega; /* unbiased: E||C(v) - v||^2 <= omega ||v||^2; else infinity */
    bool is_contractive;
    double delta;       /* contractive: E||C(v) - v||^2 <= (1 - delta) ||v||^2, > 0; else 0 */
    double usual_delta; /* of typical vectors, if the bound is far below; 0: delta */
    bool takes_largest; /* sends the largest elements, not random ones */
} sl_quality;

SL_API sl_quality sl_compressor_quality(const sl_compressor_config *config, size_t dimension);
/* Bits of one message of `dimension` elements; random-dropping, magnitude-dropping: expected;
 * strom, 3lc, adacomp, cyclic shared-mask: at most; with a coding: expected of random indices, or
 * of a normal vector.
 */
SL_API double sl_compressor_bits(const sl_compressor_config *config, size_t dimension);
/* Do the parameters suit this length? The error names algorithm.compressor.KEY, the value and what
 * is allowed. */
SL_API int sl_compressor_check(const sl_compressor_config *config, size_t dimension,
                               sl_error *error);

/* Does a range of the vector become the same bytes whatever the rest is? Of parts of so many bytes;
 * where each tensor is compressed by itself, of whole tensors. */
SL_API bool sl_compressor_works_on_ranges(const sl_compressor_config *config, size_t part_bytes);

typedef struct sl_payload {
    const void *data; /* aligned to 8 bytes at least */
    size_t bytes;
} sl_payload;

/* The key of a message's random numbers: equal at the sender and its receivers. */
typedef struct sl_message {
    uint64_t seed;
    uint64_t exchange; /* counts exchanges from 1; < 2^40 */
    uint32_t sender;
    uint32_t stage; /* of several messages in one exchange, < 65536 */
} sl_message;

typedef struct sl_codec sl_codec;

enum { SL_PART_BYTES_MIN = 4096 };
/* Opens a codec; copies what it needs. Parts have at most part_bytes, which is at least
 * SL_PART_BYTES_MIN. SL_EINVAL as for sl_compressor_check. */
SL_API int sl_codec_open(sl_codec **out, const sl_compressor_config *config, size_t dimension,
                         size_t part_bytes, sl_error *error);
/* The same for a vector of `count` tensors, compressed one by one. Tensor i ends at ends[i],
 * ascending. fractions: (count) of each tensor's entries; NULL: the configuration's. */
SL_API int sl_codec_open_split(sl_codec **out, const sl_compressor_config *config,
                               const size_t *ends, const double *fractions, size_t count,
                               size_t part_bytes, sl_error *error);
SL_API void sl_codec_close(sl_codec **codec);
SL_API uint32_t sl_codec_parts(const sl_codec *codec); /* >= 1 */
SL_API size_t sl_codec_part_bytes_max(const sl_codec *codec);
/* Is the payload the vector's own memory (identity)? Then no buffer is needed. */
SL_API bool sl_codec_borrows(const sl_codec *codec);

/* The input: memory (`vector`), or if that is NULL, `read`, which writes elements [from, from +
 * count) to out. `from` is a multiple of SL_BLOCK, and count at most SL_BLOCK. `fresh` is a second
 * input of the compressors that read it, memory: what of the first is new, and no rest of what
 * earlier messages could not say; NULL: all of it. `scale`: where nodes share one (share_scale),
 * what they agreed on, of each tensor that is compressed by itself; NULL: the vector's own. */
enum { SL_BLOCK = 1024 };
typedef struct sl_source {
    const float *vector;
    void (*read)(void *context, size_t from, size_t count, float *out);
    void *context;
    const float *fresh;
    const float *scale;
} sl_source;

/* Encodes vectors of `vec`, one message at a time; has working memory. */
typedef struct sl_encoder sl_encoder;
SL_API int sl_encoder_open(sl_encoder **out, const sl_codec *codec, const sl_vec_ops *vec,
                           sl_error *error);
SL_API void sl_encoder_close(sl_encoder **encoder);
/* Begins a message. Reads the vector if the compressor needs all of it before its first part.
 * SL_EDIVERGED: it holds NaN or infinity. */
SL_API int sl_encoder_begin(sl_encoder *encoder, const sl_message *message,
                            const sl_source *source);
/* Encodes parts 0, 1, ... in order. buffer: sl_codec_part_bytes_max() bytes, aligned to 64; NULL
 * if the codec borrows the vector. The vector must not change after begin. SL_EDIVERGED as above;
 * SL_ENOMEM or SL_EDEVICE: the device is out of memory, or failed (vec->fence says how). */
SL_API int sl_encoder_part(sl_encoder *encoder, uint32_t part, const sl_source *source,
                           void *buffer, sl_payload *out);
/* Would encoding the next part return without waiting for a device? If not, notify_fd (an eventfd,
 * or 0) is signalled when it would (sl_async_ops.event_passed). */
SL_API bool sl_encoder_ready(sl_encoder *encoder, uint32_t part, int notify_fd);

/* Encode vectors of a device ahead, into memory of vec->allocate_host() or vec->share: parts *
 * part_bytes_max bytes, each rounded up to SL_VEC_ALIGNMENT. Call it before the first message, and
 * before any that is to be elsewhere; sl_encoder_part then ignores its buffer. Without it, payloads
 * stay on the device. */
SL_API void sl_encoder_stage(sl_encoder *encoder, void *memory);
/* The bytes of all parts of a message that a device encodes, after its first part. */
SL_API void sl_encoder_sizes(const sl_encoder *encoder, uint32_t *sizes);
/* The last part, where the vectors are, for a decoder on this host. Valid until the next part. */
SL_API sl_payload sl_encoder_local(const sl_encoder *encoder);

/* Decodes one sender's messages onto vectors of `vec`; has working memory. */
typedef struct sl_decoder sl_decoder;
SL_API int sl_decoder_open(sl_decoder **out, const sl_codec *codec, const sl_vec_ops *vec,
                           sl_error *error);
SL_API void sl_decoder_close(sl_decoder **decoder);
/* May these bytes from a peer, in host memory, be decoded as this part of this message? 0, or
 * SL_EPROTO. */
SL_API int sl_decoder_check(sl_decoder *decoder, const sl_message *message, uint32_t part,
                            sl_payload payload);
/* acc += weight * decode(payload), on the device of the vectors. acc is the whole vector. The
 * payload must be checked. Parts may come in any order. */
SL_API void sl_decoder_add(sl_decoder *decoder, const sl_message *message, uint32_t part,
                           sl_payload payload, float weight, float *acc);

/* Parts of one message, one after the other. Those behind the first lie sl_codec_stride() bytes
 * apart on the device. */
typedef struct sl_run {
    sl_decoder *decoder;
    sl_message message;
    uint32_t first, count; /* count: 1, unless sl_codec_joins */
    sl_payload payload;    /* the first part */
    const uint32_t *sizes; /* (count) bytes of each part; NULL: there is one */
    float weight;
} sl_run;
/* Can a device add several parts of each of so many messages at once, with the sums of one part
 * after the other? */
SL_API bool sl_codec_joins(const sl_codec *codec, uint32_t messages);
SL_API size_t sl_codec_stride(const sl_codec *codec);
/* acc += weight * decode(payload) of each run, part after part, and of each part in the runs'
 * order. All are of one codec. */
SL_API void sl_decoder_add_runs(const sl_run *runs, size_t count, float *acc);
/* The elements that `part` may touch: its range, or everything. */
SL_API void sl_codec_part_range(const sl_codec *codec, uint32_t part, size_t *from, size_t *count);
/* Which part is number `part` where the vector's end goes first: but for tensors, which are
 * compressed by themselves, each from its beginning, as parts of theirs may share elements. */
SL_API uint32_t sl_codec_last_first(const sl_codec *codec, uint32_t part);
/* Those that are looked at to encode it, if sl_compressor_works_on_ranges: its range, or its
 * tensor.
 */
SL_API void sl_codec_part_source(const sl_codec *codec, uint32_t part, size_t *from, size_t *count);

#ifdef __cplusplus
}
#endif
#endif

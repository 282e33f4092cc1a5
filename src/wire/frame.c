/* frame.c - see frame.h. */
#include "wire/frame.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "starling/version.h"
#include "wire/bytes.h"
#include "wire/checksum.h"

static const uint32_t magic = 0x474C5453; /* "STLG" */

enum { KIND_AT = 6, PAYLOAD_BYTES_AT = 32, SUM_AT = 40, RESERVED_AT = 56, HEADER_SUM_AT = 60 };
/* Flags, beside the type. */
enum {
    ASKS = 1 << 8,
    SEALED = 1 << 9,
    PHASE = 1 << 10,
    SILENT = 1 << 11,
    UNSUMMED = 1 << 12,
    VOID = 1 << 13,
    REFERS = 1 << 14
};

static uint32_t header_sum(const uint8_t *header) {
    return (uint32_t)sl_checksum(header, HEADER_SUM_AT);
}

static uint64_t bits_of(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The sender is known once its HELLO has come. */
static bool names_sender(uint16_t type) {
    return type == SL_FRAME_HELLO || type == SL_FRAME_ABORT;
}

void sl_frame_encode(const sl_frame *frame, uint8_t header[SL_FRAME_HEADER_BYTES]) {
    uint8_t *p = put32(header, magic);
    p = put16(p, SL_PROTOCOL_VERSION);
    p = put16(p, (uint16_t)(frame->type | (frame->asks ? ASKS : 0) | (frame->silent ? SILENT : 0) |
                            (frame->unsummed ? UNSUMMED : 0) | (frame->is_void ? VOID : 0) |
                            (frame->refers ? REFERS : 0)));
    p = put32(p, names_sender((uint16_t)frame->type) ? frame->sender : frame->view);
    p = put32(p, frame->part);
    p = put64(p, frame->exchange);
    p = put32(p, frame->credit);
    p = put32(p, frame->received);
    p = put32(p, frame->payload_bytes);
    p = put32(p, frame->step);
    p = put64(p, frame->payload_sum);
    p = put64(p, bits_of(frame->scalar));
    put32(p, 0);
    put32(header + HEADER_SUM_AT, header_sum(header));
}

size_t sl_frame_sum_bytes_max(size_t payload_max, bool direct) {
    return direct || payload_max < SL_FRAME_TEXT_MAX
               ? SL_FRAME_TEXT_MAX
               : payload_max / sizeof(double) * sizeof(double);
}

static size_t payload_limit(uint16_t type, size_t data_max, bool direct) {
    switch ((sl_frame_type)type) {
    case SL_FRAME_HELLO:
        return SL_HELLO_BYTES + SL_HELLO_TEXT_MAX;
    case SL_FRAME_DATA:
    case SL_FRAME_DIRECT:
        return data_max;
    case SL_FRAME_ABORT:
    case SL_FRAME_HANDSHAKE:
    case SL_FRAME_MEMBERSHIP:
        return SL_FRAME_TEXT_MAX;
    case SL_FRAME_HEARTBEAT:
        return SL_HEARTBEAT_BYTES;
    case SL_FRAME_OFFER:
        return SL_OFFER_BYTES;
    case SL_FRAME_SUM:
    case SL_FRAME_MODEL:
        return sl_frame_sum_bytes_max(data_max, direct);
    case SL_FRAME_BARRIER:
    case SL_FRAME_SUM_CREDIT:
    case SL_FRAME_CREDIT:
    case SL_FRAME_BYE:
    case SL_FRAME_CHECKPOINT:
    case SL_FRAME_READY:
    case SL_FRAME_FETCH:
    case SL_FRAME_ACCOUNT:
    case SL_FRAME_MEMORY:
    case SL_FRAME_TYPE_END:
        return 0;
    }
    return 0;
}

static const char *find_wrong_header(const uint8_t *data, size_t bytes) {
    if (bytes < SL_FRAME_HEADER_BYTES)
        return "frame shorter than its header";
    if (get32(data) != magic)
        return "wrong magic";
    return get16(data + 4) != SL_PROTOCOL_VERSION ? "another protocol version" : NULL;
}

static const char *find_wrong_header_sum(const uint8_t *data) {
    if (get32(data + HEADER_SUM_AT) != header_sum(data))
        return "header checksum differs";
    return get32(data + RESERVED_AT) != 0 ? "reserved bytes are not zero" : NULL;
}

static size_t payload_at(uint16_t type) {
    return type == SL_FRAME_DIRECT ? SL_FRAME_DIRECT_AT : SL_FRAME_HEADER_BYTES;
}

size_t sl_frame_bytes(const uint8_t header[SL_FRAME_HEADER_BYTES]) {
    const uint16_t type = get16(header + KIND_AT) & 0xff;
    if (find_wrong_header(header, SL_FRAME_HEADER_BYTES) != NULL || type < SL_FRAME_HELLO ||
        type >= SL_FRAME_TYPE_END)
        return 0;
    return payload_at(type) + (size_t)get32(header + PAYLOAD_BYTES_AT);
}

static int flags_of(uint16_t type) {
    return type == SL_FRAME_DATA     ? ASKS | SILENT | UNSUMMED | VOID | REFERS
           : type == SL_FRAME_DIRECT ? ASKS | SILENT | VOID
           : type == SL_FRAME_SUM || type == SL_FRAME_MODEL ? VOID | REFERS
                                                            : 0;
}

static const char *find_wrong_kind(uint16_t kind, bool direct) {
    const uint16_t type = kind & 0xff;
    if (type < SL_FRAME_HELLO || type >= SL_FRAME_TYPE_END)
        return "unknown frame type";
    if (((kind ^ type) & ~flags_of(type)) != 0)
        return "flags that its type does not have";
    if (type == (direct ? SL_FRAME_DATA : SL_FRAME_DIRECT))
        return direct ? "data through the host's memory, where GPUs exchange theirs"
                      : "data between GPUs, where it goes through the host's memory";
    return NULL;
}

static const char *find_wrong_length(uint16_t kind, uint32_t payload_bytes, size_t bytes,
                                     size_t payload_max, bool direct) {
    const uint16_t type = kind & 0xff;
    const bool refers = (kind & REFERS) != 0;
    if (payload_bytes > (refers ? SL_REFERENCE_BYTES : payload_limit(type, payload_max, direct)))
        return "payload longer than its type allows";
    if ((refers && payload_bytes != SL_REFERENCE_BYTES) ||
        (type == SL_FRAME_OFFER && payload_bytes != SL_OFFER_BYTES))
        return "payload shorter than its type";
    return payload_at(type) + payload_bytes != bytes ? "payload length is not what came" : NULL;
}

/* kind: without the flags of seals. */
static const char *decode(sl_frame *out, uint16_t kind, const uint8_t *data, size_t bytes,
                          size_t payload_max, bool direct) {
    const uint16_t type = kind & 0xff;
    const uint32_t payload_bytes = get32(data + PAYLOAD_BYTES_AT);
    const double scalar = double_of(get64(data + 48));
    const char *wrong = find_wrong_kind(kind, direct);
    if (wrong == NULL)
        wrong = find_wrong_length(kind, payload_bytes, bytes, payload_max, direct);
    if (wrong != NULL)
        return wrong;
    if ((kind & SILENT) != 0 && payload_bytes > 0)
        return "a silent message with a payload";
    if ((kind & VOID) != 0 && payload_bytes > 0)
        return "a void frame with a payload";
    if (!isfinite(scalar))
        return "scalar is not finite";
    *out = (sl_frame){
        .type = (sl_frame_type)type,
        .asks = (kind & ASKS) != 0,
        .silent = (kind & SILENT) != 0,
        .unsummed = (kind & UNSUMMED) != 0,
        .is_void = (kind & VOID) != 0,
        .refers = (kind & REFERS) != 0,
        .sender = names_sender(type) ? get32(data + 8) : 0,
        .view = names_sender(type) ? 0 : get32(data + 8),
        .part = get32(data + 12),
        .exchange = get64(data + 16),
        .step = get32(data + 36),
        .scalar = scalar,
        .credit = get32(data + 24),
        .received = get32(data + 28),
        .payload_bytes = payload_bytes,
        .payload_sum = get64(data + SUM_AT),
    };
    return NULL;
}

const char *sl_frame_decode(sl_frame *out, const uint8_t *data, size_t bytes, size_t payload_max,
                            bool direct) {
    sl_frame frame;
    const char *wrong = find_wrong_header(data, bytes);
    if (wrong == NULL)
        wrong = find_wrong_header_sum(data);
    if (wrong == NULL)
        wrong = decode(&frame, get16(data + KIND_AT), data, bytes, payload_max, direct);
    if (wrong != NULL)
        return wrong;
    if (frame.payload_bytes > 0 && frame.type != SL_FRAME_DIRECT && !frame.unsummed &&
        frame.payload_sum != sl_checksum(data + SL_FRAME_HEADER_BYTES, frame.payload_bytes))
        return SL_FRAME_ALTERED;
    *out = frame;
    return NULL;
}

/* ---- sealed frames ---- */

void sl_frame_seal(uint8_t header[SL_FRAME_HEADER_BYTES], bool phase) {
    static const uint8_t none[SL_FRAME_TAG_BYTES];
    put16(header + KIND_AT, (uint16_t)(get16(header + KIND_AT) | SEALED | (phase ? PHASE : 0)));
    sl_frame_put_tag(header, none);
}

void sl_frame_put_tag(uint8_t header[SL_FRAME_HEADER_BYTES],
                      const uint8_t tag[SL_FRAME_TAG_BYTES]) {
    memcpy(header + SUM_AT, tag, SL_FRAME_TAG_BYTES / 2);
    memcpy(header + RESERVED_AT, tag + SL_FRAME_TAG_BYTES / 2, SL_FRAME_TAG_BYTES / 2);
}

bool sl_frame_take_tag(uint8_t *data, size_t bytes, bool *phase, uint8_t tag[SL_FRAME_TAG_BYTES]) {
    static const uint8_t none[SL_FRAME_TAG_BYTES];
    if (find_wrong_header(data, bytes) != NULL || (get16(data + KIND_AT) & SEALED) == 0)
        return false;
    *phase = (get16(data + KIND_AT) & PHASE) != 0;
    memcpy(tag, data + SUM_AT, SL_FRAME_TAG_BYTES / 2);
    memcpy(tag + SL_FRAME_TAG_BYTES / 2, data + RESERVED_AT, SL_FRAME_TAG_BYTES / 2);
    sl_frame_put_tag(data, none);
    return true;
}

const char *sl_frame_decode_sealed(sl_frame *out, const uint8_t *data, size_t bytes,
                                   size_t payload_max, bool direct) {
    const uint16_t kind = get16(data + KIND_AT) & (uint16_t) ~(SEALED | PHASE);
    return decode(out, kind, data, bytes, payload_max, direct);
}

void sl_reference_encode(const sl_reference *reference, uint8_t out[SL_REFERENCE_BYTES]) {
    put64(put64(put64(out, reference->offset), reference->bytes), reference->sum);
}

sl_reference sl_reference_decode(const uint8_t data[SL_REFERENCE_BYTES]) {
    return (sl_reference){get64(data), get64(data + 8), get64(data + 16)};
}

void sl_offer_encode(const sl_memory_offer *offer, uint8_t out[SL_OFFER_BYTES]) {
    put64(put64(put64(out, offer->bytes), offer->key[0]), offer->key[1]);
}

sl_memory_offer sl_offer_decode(const uint8_t data[SL_OFFER_BYTES]) {
    return (sl_memory_offer){.bytes = get64(data), .key = {get64(data + 8), get64(data + 16)}};
}

enum { DIRECT = 1, GOES_ON = 2 }; /* flags of HELLO */

void sl_hello_encode(const sl_hello *hello, uint8_t out[SL_HELLO_BYTES]) {
    uint8_t *p = put64(out, hello->run_id);
    p = put64(p, hello->topology_hash);
    p = put64(p, hello->layout_hash);
    p = put64(p, hello->data_hash);
    p = put64(p, hello->dimension);
    p = put64(p, hello->rounds);
    p = put64(p, hello->seed);
    p = put64(p, hello->resumed);
    p = put32(p, hello->chunk_bytes);
    p = put32(p, hello->nodes);
    p = put32(p, hello->section_count);
    p = put32(p, (hello->direct ? DIRECT : 0) | (hello->goes_on ? GOES_ON : 0));
    for (int i = 0; i < SL_HELLO_SECTIONS_MAX; i++)
        p = put64(p, hello->sections[i]);
    p = put64(p, hello->standing.incarnation);
    p = put64(p, hello->standing.knows);
    p = put64(p, hello->standing.trains);
    p = put64(p, hello->standing.attempt);
    p = put64(p, hello->standing.credit);
    p = put64(p, hello->standing.received);
    p = put64(p, hello->standing.received_data);
    p = put64(p, hello->standing.mailbox.key[0]);
    p = put64(p, hello->standing.mailbox.key[1]);
    p = put64(p, hello->settings_bytes);
    assert(p == out + SL_HELLO_BYTES);
}

const char *sl_hello_decode(sl_hello *out, const uint8_t *data, size_t bytes) {
    if (bytes < SL_HELLO_BYTES || bytes > SL_HELLO_BYTES + SL_HELLO_TEXT_MAX)
        return "HELLO of the wrong length";
    sl_hello h = {
        .run_id = get64(data),
        .topology_hash = get64(data + 8),
        .layout_hash = get64(data + 16),
        .data_hash = get64(data + 24),
        .dimension = get64(data + 32),
        .rounds = get64(data + 40),
        .seed = get64(data + 48),
        .resumed = get64(data + 56),
        .chunk_bytes = get32(data + 64),
        .nodes = get32(data + 68),
        .section_count = get32(data + 72),
        .direct = (get32(data + 76) & DIRECT) != 0,
        .goes_on = (get32(data + 76) & GOES_ON) != 0,
        .settings = (const char *)data + SL_HELLO_BYTES,
        .settings_bytes = get64(data + SL_HELLO_BYTES - 8),
    };
    if (h.settings_bytes > bytes - SL_HELLO_BYTES)
        return "HELLO with settings beyond its end";
    h.layout = h.settings + h.settings_bytes;
    h.layout_bytes = bytes - SL_HELLO_BYTES - h.settings_bytes;
    if (h.section_count > SL_HELLO_SECTIONS_MAX)
        return "HELLO with too many sections";
    for (int i = 0; i < SL_HELLO_SECTIONS_MAX; i++)
        h.sections[i] = get64(data + 80 + 8 * i);
    const uint8_t *standing = data + 80 + 8 * SL_HELLO_SECTIONS_MAX;
    h.standing = (sl_standing){
        .incarnation = get64(standing),
        .knows = get64(standing + 8),
        .trains = get64(standing + 16),
        .attempt = get64(standing + 24),
        .credit = get64(standing + 32),
        .received = get64(standing + 40),
        .received_data = get64(standing + 48),
        .mailbox = {{get64(standing + 56), get64(standing + 64)}},
        .joins = h.resumed == SL_HELLO_JOINS,
    };
    if (h.standing.incarnation == 0)
        return "HELLO without an incarnation";
    *out = h;
    return NULL;
}

/* frame.c - see frame.h. */
#include "wire/frame.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "starling/version.h"
#include "wire/bytes.h"
#include "wire/checksum.h"

static const uint32_t magic = 0x474C5453; /* "STLG" */

enum { HEADER_SUM_AT = 60, ASKS = 1 << 8 };

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

void sl_frame_encode(const sl_frame *frame, uint8_t header[SL_FRAME_HEADER_BYTES]) {
    uint8_t *p = put32(header, magic);
    p = put16(p, SL_PROTOCOL_VERSION);
    p = put16(p, (uint16_t)(frame->type | (frame->asks ? ASKS : 0)));
    p = put32(p, frame->sender);
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
        return SL_FRAME_TEXT_MAX;
    case SL_FRAME_HEARTBEAT:
        return SL_HEARTBEAT_BYTES;
    case SL_FRAME_SUM:
        return sl_frame_sum_bytes_max(data_max, direct);
    case SL_FRAME_MEET:
    case SL_FRAME_WANT:
    case SL_FRAME_CREDIT:
    case SL_FRAME_BYE:
    case SL_FRAME_CUT:
    case SL_FRAME_OPEN:
    case SL_FRAME_TYPE_END:
        return 0;
    }
    return 0;
}

const char *sl_frame_decode(sl_frame *out, const uint8_t *data, size_t bytes, size_t payload_max,
                            bool direct) {
    if (bytes < SL_FRAME_HEADER_BYTES)
        return "frame shorter than its header";
    if (get32(data) != magic)
        return "wrong magic";
    if (get16(data + 4) != SL_PROTOCOL_VERSION)
        return "another protocol version";
    if (get32(data + HEADER_SUM_AT) != header_sum(data))
        return "header checksum differs";
    if (get32(data + 56) != 0)
        return "reserved bytes are not zero";
    const uint16_t kind = get16(data + 6), type = kind & 0xff;
    if (type < SL_FRAME_HELLO || type >= SL_FRAME_TYPE_END)
        return "unknown frame type";
    const bool is_data = type == SL_FRAME_DATA || type == SL_FRAME_DIRECT;
    if (kind != type && (kind != (type | ASKS) || !is_data))
        return "flags that its type does not have";
    if (type == (direct ? SL_FRAME_DATA : SL_FRAME_DIRECT))
        return direct ? "data through the host's memory, where GPUs exchange theirs"
                      : "data between GPUs, where it goes through the host's memory";
    uint32_t payload_bytes = get32(data + 32);
    const size_t payload_at = type == SL_FRAME_DIRECT ? SL_FRAME_DIRECT_AT : SL_FRAME_HEADER_BYTES;
    if (payload_bytes > payload_limit(type, payload_max, direct))
        return "payload longer than its type allows";
    if (payload_at + payload_bytes != bytes)
        return "payload length is not what came";
    uint64_t payload_sum = get64(data + 40);
    if (payload_bytes > 0 && type != SL_FRAME_DIRECT &&
        payload_sum != sl_checksum(data + SL_FRAME_HEADER_BYTES, payload_bytes))
        return "payload checksum differs";
    double scalar = double_of(get64(data + 48));
    if (!isfinite(scalar))
        return "scalar is not finite";
    *out = (sl_frame){
        .type = (sl_frame_type)type,
        .asks = kind != type,
        .sender = get32(data + 8),
        .part = get32(data + 12),
        .exchange = get64(data + 16),
        .step = get32(data + 36),
        .scalar = scalar,
        .credit = get32(data + 24),
        .received = get32(data + 28),
        .payload_bytes = payload_bytes,
        .payload_sum = payload_sum,
    };
    return NULL;
}

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
    p = put32(p, hello->direct);
    for (int i = 0; i < SL_HELLO_SECTIONS_MAX; i++)
        p = put64(p, hello->sections[i]);
    p = put64(p, hello->standing.incarnation);
    p = put64(p, hello->standing.knows);
    p = put64(p, hello->standing.trains);
    p = put64(p, hello->standing.attempt);
    p = put64(p, hello->standing.credit);
    p = put64(p, hello->standing.received);
    p = put64(p, hello->standing.meets);
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
        .direct = get32(data + 76),
        .layout = (const char *)data + SL_HELLO_BYTES,
        .layout_bytes = bytes - SL_HELLO_BYTES,
    };
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
        .meets = get64(standing + 48),
    };
    if (h.standing.incarnation == 0)
        return "HELLO without an incarnation";
    *out = h;
    return NULL;
}

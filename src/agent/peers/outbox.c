/* outbox.c - see outbox.h. */
#include "agent/peers/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "starling/vec.h"
#include "wire/checksum.h"

static const size_t reference_bytes_max = 1 << 30; /* a frame says less than 4 GiB */

int sl_outbox_open(sl_outbox *out, sl_node *node, bool direct, bool sums, sl_error *error) {
    uint32_t parts = node != NULL ? sl_node_parts_max(node) : 1;
    sl_outbox box = {.node = node, .direct = direct, .sums = sums};
    box.payloads = calloc(parts, sizeof *box.payloads);
    box.checksums = calloc(parts, sizeof *box.checksums);
    box.copies = calloc(parts, sizeof *box.copies);
    if (box.payloads == NULL || box.checksums == NULL || box.copies == NULL) {
        sl_outbox_close(&box);
        return sl_fail(error, SL_ENOMEM, "out of memory for a message of %u parts", parts);
    }
    *out = box;
    return 0;
}

void sl_outbox_close(sl_outbox *box) {
    free(box->payloads);
    free(box->checksums);
    free(box->copies);
    memset(box, 0, sizeof *box);
}

void sl_outbox_begin(sl_outbox *box, const sl_outbound *message, const sl_copies *copies,
                     uint32_t view) {
    box->message = *message;
    box->view = view;
    box->room =
        message->stays == SL_STAY_ROOM ? sl_copies_room(copies, message->room) : SL_COPY_NONE;
    box->encoded = box->gone = 0;
    box->open = true;
    box->recalled = false;
}

int sl_outbox_encode(sl_outbox *box, uint32_t part, sl_error *error) {
    if (part < box->encoded)
        return 1;
    if (!sl_node_ready(box->node))
        return 0;
    double before = sl_clock_seconds();
    box->encoded++;
    sl_payload *payload = &box->payloads[part];
    int result = sl_node_payload(box->node, part, payload, error);
    if (result != 0)
        return result;
    box->checksums[part] = 0;
    box->copies[part] = SL_COPY_NONE;
    box->encode_seconds += sl_clock_seconds() - before;
    return 1;
}

void sl_outbox_sum(sl_outbox *box, uint32_t part) {
    const sl_payload *payload = &box->payloads[part];
    if (!box->sums || box->checksums[part] != 0)
        return;
    const double before_s = sl_clock_seconds();
    box->checksums[part] = sl_checksum(payload->data, payload->bytes);
    box->encode_seconds += sl_clock_seconds() - before_s;
}

static uint32_t copy(sl_outbox *box, sl_copies *copies, uint32_t part, uint32_t behind,
                     bool stays) {
    const uint32_t before = box->copies[part];
    const sl_frame frame = sl_outbox_frame(box, part, behind);
    if (before != SL_COPY_NONE && sl_copies_is(copies, before, &frame))
        return before;
    const double before_s = sl_clock_seconds();
    const uint32_t copy = sl_copies_add(copies, &frame, box->payloads[part].data, false);
    if (stays)
        sl_copies_keep(copies, copy);
    else
        sl_copies_make(copies, copy);
    box->encode_seconds += sl_clock_seconds() - before_s;
    return box->copies[part] = copy;
}

/* What is read where it is begins as a receive buffer does. */
uint32_t sl_outbox_keep(sl_outbox *box, sl_copies *copies, uint32_t part, bool reads) {
    const sl_payload *payload = &box->payloads[part];
    if (box->room != SL_COPY_NONE && (!reads || (uintptr_t)payload->data % SL_VEC_ALIGNMENT == 0))
        return box->room;
    return reads && payload->bytes > 0 ? copy(box, copies, part, part + 1, false) : SL_COPY_NONE;
}

uint32_t sl_outbox_publish(sl_outbox *box, sl_copies *copies, uint32_t part, uint32_t behind) {
    return copy(box, copies, part, behind, true);
}

/* Each of the parts must be where a copy of it would be. */
uint32_t sl_outbox_row(const sl_outbox *box, uint32_t most) {
    const sl_payload *first = &box->payloads[0];
    if (!box->message.in_row || first->bytes == 0 ||
        ((uintptr_t)first->data | first->bytes) % SL_VEC_ALIGNMENT != 0)
        return 1;
    const size_t fit = reference_bytes_max / first->bytes;
    return fit < most ? (uint32_t)fit : most;
}

sl_frame sl_outbox_frame(const sl_outbox *box, uint32_t part, uint32_t behind) {
    const sl_payload *first = &box->payloads[part], *last = &box->payloads[behind - 1];
    const size_t before = (size_t)((const char *)last->data - (const char *)first->data);
    return (sl_frame){.type = box->direct ? SL_FRAME_DIRECT : SL_FRAME_DATA,
                      .view = box->view,
                      .exchange = box->message.exchange,
                      .step = box->message.step,
                      .silent = box->message.silent,
                      .unsummed = !box->sums && !box->direct,
                      .part = part,
                      .scalar = sl_node_scalar(box->node, part),
                      .payload_bytes = (uint32_t)(before + last->bytes),
                      .payload_sum = box->checksums[part]};
}

int sl_outbox_vouch(const sl_outbox *box, uint32_t part, uint32_t behind, sl_error *error) {
    const size_t bytes = sl_outbox_frame(box, part, behind).payload_bytes;
    return box->lender == NULL ? 0
                               : box->lender->vouch(box->lender->context, box->payloads[part].data,
                                                    bytes / sizeof(float), error);
}

/* letters.c - messages of members, which are longer than a frame: cut into frames, and put
 * together; see state.h. */
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

/* None has to arrive: what is not sent now is said again, or is old. */
void sl_letters_post(sl_agent *a, uint32_t to, const sl_membership_message *message) {
    sl_neighbour *n = sl_agent_neighbour(a, to);
    const size_t bytes = sl_letter_bytes(message);
    sl_letter_encode(message, a->cohort.bytes);
    bool sent = true;
    for (size_t at = 0; at < bytes && sent; at += SL_FRAME_TEXT_MAX) {
        const size_t left = bytes - at;
        const sl_frame frame = {
            .type = SL_FRAME_LETTER,
            .part = (uint32_t)at,
            .step = (uint32_t)bytes,
            .payload_bytes = (uint32_t)(left < SL_FRAME_TEXT_MAX ? left : SL_FRAME_TEXT_MAX)};
        sent = sl_neighbour_send_copy(n, &frame, a->cohort.bytes + at);
    }
}

/* Is the letter whole now? */
bool sl_letters_collect(const sl_agent *a, sl_neighbour *n, const sl_frame *frame,
                        const uint8_t *payload) {
    if (frame->part == 0) {
        n->letter_come = n->letter_bytes = 0;
        uint8_t *room =
            frame->step > 0 &&
                    frame->step <= sl_letter_bytes_max(sl_experiment_ranks(a->settings.experiment))
                ? realloc(n->letter, frame->step)
                : NULL;
        if (room == NULL)
            return false;
        n->letter = room;
        n->letter_bytes = frame->step;
    }
    if (frame->part != n->letter_come || frame->payload_bytes > n->letter_bytes - n->letter_come)
        return false;
    memcpy(n->letter + n->letter_come, payload, frame->payload_bytes);
    n->letter_come += frame->payload_bytes;
    return frame->payload_bytes > 0 && n->letter_come == n->letter_bytes;
}

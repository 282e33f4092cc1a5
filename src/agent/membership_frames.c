/* membership_frames.c - messages of members, which are longer than a frame: cut into frames, and
 * put together; see state.h. */
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

/* It is not said to an agent that is away: what it says is said again, or is old. */
void sl_letters_post(sl_agent *a, uint32_t to, const sl_membership_message *message) {
    sl_neighbour *n = sl_agent_neighbour(a, to);
    const size_t bytes = sl_letter_bytes(message);
    sl_letter_encode(message, a->cohort.bytes);
    for (size_t at = 0; n->link.agreed && at < bytes; at += SL_FRAME_TEXT_MAX) {
        const size_t left = bytes - at;
        const sl_frame frame = {
            .type = SL_FRAME_MEMBERSHIP,
            .part = (uint32_t)at,
            .step = (uint32_t)bytes,
            .payload_bytes = (uint32_t)(left < SL_FRAME_TEXT_MAX ? left : SL_FRAME_TEXT_MAX)};
        sl_neighbour_send(n, frame, a->cohort.bytes + at, true);
    }
}

/* Is the letter whole now? */
bool sl_letters_collect(const sl_agent *a, sl_neighbour *n, const sl_frame *frame,
                        const uint8_t *payload) {
    if (frame->part == 0) {
        n->letter.come = n->letter.size = 0;
        uint8_t *room =
            frame->step > 0 &&
                    frame->step <= sl_letter_bytes_max(sl_experiment_ranks(a->settings.experiment))
                ? realloc(n->letter.bytes, frame->step)
                : NULL;
        if (room == NULL)
            return false;
        n->letter.bytes = room;
        n->letter.size = frame->step;
    }
    if (frame->part != n->letter.come || frame->payload_bytes > n->letter.size - n->letter.come)
        return false;
    memcpy(n->letter.bytes + n->letter.come, payload, frame->payload_bytes);
    n->letter.come += frame->payload_bytes;
    return frame->payload_bytes > 0 && n->letter.come == n->letter.size;
}

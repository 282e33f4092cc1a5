/* memory.c - data that stays in its sender's memory, of neighbours on one host; see neighbour.h.
 *
 * HELLO names a mailbox. Each side puts its arena (arena/arena.h) into the other one's, says so
 * (OFFER), and hears whether it is read (MEMORY). Then frames of what is there say where: of data,
 * that is copied there or has a room, of sums and of models for others. All else is as it is
 * without: the frame has its number, its buffer and its credit.
 *
 * Parts of a vector that stays there need one frame for many: on the host for a few, which are in
 * cache, on a device for all, which it then adds in one launch. Such a frame has no other way: what
 * a process reads it reads over each connection.
 *
 * Where both keep their vectors on GPUs, the arena is one's memory, and the other one's kernels
 * read it; if its GPU cannot, that of the host is offered next.
 *
 * Plain vectors are combined where they are. What a decoder has to check first is copied into the
 * frame's buffer: its sender could change it between check and use.
 */
#include <stdio.h>
#include <string.h>

#include "agent/peers/neighbour.h"
#include "base/round_up.h"
#include "starling/vec.h"
#include "wire/checksum.h"

/* Parts in one reference to memory of the host: some 1.7 MB, which their sender has in cache. */
enum { ROW_ON_HOST = 15 };

static void offer(sl_neighbour *n, const sl_arena *arena) {
    n->process.lent = arena;
    n->link.offers = (n->link.to.key[0] | n->link.to.key[1]) != 0;
    n->link.awaits = n->link.offers && arena != NULL &&
                     sl_arena_post(arena, &n->link.to, &n->link.offer, n->process.why_apart);
    if (!n->link.awaits)
        n->link.offer = (sl_memory_offer){0};
}

void sl_neighbour_hand_over(sl_neighbour *n, const sl_mailbox_name *to) {
    if (n->process.lends)
        return;
    n->process.why_apart[0] = '\0';
    n->link.to = *to;
    offer(n, n->side->published != NULL ? n->side->published : n->side->arena);
}

/* Where the memory of another process may be read still, which had the rank, it stays mapped. */
static bool find(sl_neighbour *n, const sl_memory_offer *offer, char why[SL_ARENA_WHY_MAX]) {
    if (sl_arena_map_is_of(n->map, offer))
        return true;
    if (sl_stream_holds_nothing(&n->stream)) {
        sl_arena_map_close(&n->former);
        sl_arena_map_close(&n->map);
    } else if (n->former == NULL) {
        n->former = n->map;
        n->map = NULL;
    }
    snprintf(why, SL_ARENA_WHY_MAX, "what came of a process before is not combined yet");
    return n->map == NULL && sl_arena_map_open(&n->map, n->link.mailbox, offer, why);
}

void sl_neighbour_hear_offer(sl_neighbour *n, const uint8_t payload[SL_OFFER_BYTES]) {
    const sl_memory_offer offer = sl_offer_decode(payload);
    n->link.answers = offer.bytes > 0;
    n->process.borrows = n->link.answers && n->side->reads && find(n, &offer, n->process.why_apart);
    if (n->process.borrows)
        n->process.why_apart[0] = '\0';
    if (n->process.borrows || !n->link.answers)
        sl_mailbox_close(&n->link.mailbox); /* else there may be a second offer */
}

void sl_neighbour_hear_answer(sl_neighbour *n, uint32_t read_at_once, uint32_t row) {
    const bool awaits = n->link.awaits;
    n->link.awaits = false;
    if (!awaits)
        return;
    n->process.lends = read_at_once > 0;
    n->process.row = row > 0 ? row : 1;
    if (n->process.lends)
        sl_stream_lend(&n->stream, read_at_once);
    else if (n->process.lent == n->side->published)
        offer(n, n->side->arena);
}

uint32_t sl_neighbour_row(const sl_neighbour *n) {
    return !n->process.borrows                 ? 0
           : sl_arena_map_is_on_device(n->map) ? UINT32_MAX
           : n->side->reads_in_place           ? ROW_ON_HOST
                                               : 1;
}

bool sl_neighbour_reads(const sl_neighbour *n, const void *payload) {
    return n->process.lends && sl_arena_holds(n->process.lent, payload);
}

void *sl_side_publish(sl_side *side, const sl_neighbour *neighbours, uint32_t count, size_t bytes,
                      bool *waits) {
    const size_t half = side->published_bytes / 2;
    const uint32_t next = !side->turn;
    uint8_t *memory = sl_arena_memory(side->published) + next * half;
    bool any = false, lost = false;
    for (const sl_neighbour *n = neighbours; n < neighbours + count; n++) {
        if (n->link.agreed && !(n->process.lends && n->process.lent == side->published))
            return NULL;
        any = any || n->link.agreed;
        lost = lost || (n->absence.gone && sl_stream_lends(&n->stream, memory, half));
    }
    if (!any || bytes > half)
        return NULL;
    if (sl_copies_keep_any(&side->copies, memory, half)) {
        *waits = !lost;
        return NULL;
    }
    side->turn = next;
    return memory;
}

const void *sl_neighbour_find_data(const sl_neighbour *n, const sl_frame *frame, sl_buffer *buffer,
                                   size_t *bytes, bool *on_device) {
    uint8_t *here = buffer->data + SL_FRAME_HEADER_BYTES;
    *bytes = frame->payload_bytes;
    *on_device = false;
    if (!frame->refers)
        return n->side->direct ? buffer->rest : here;
    const sl_reference r = sl_reference_decode(here);
    const uint64_t most = sl_neighbour_row(n) * (uint64_t)n->side->limits.part_bytes_max;
    if (!n->process.borrows || r.bytes > most || r.offset % SL_VEC_ALIGNMENT != 0)
        return NULL;
    const uint8_t *there = sl_arena_map_at(n->map, r.offset, r.bytes);
    *bytes = r.bytes;
    *on_device = sl_arena_map_is_on_device(n->map);
    return there == NULL || *on_device || n->side->reads_in_place ? there
                                                                  : memcpy(here, there, r.bytes);
}

/* Unlike data's, its memory is not kept for one that is lost, and may come to read it late. */
bool sl_neighbour_fetch(const sl_neighbour *n, sl_frame *frame, uint8_t *payload) {
    const sl_reference r = sl_reference_decode(payload);
    const size_t most = sl_frame_sum_bytes_max(n->side->limits.part_bytes_max, false);
    const uint8_t *there =
        n->process.borrows && !sl_arena_map_is_on_device(n->map) && r.bytes <= most
            ? sl_arena_map_at(n->map, r.offset, r.bytes)
            : NULL;
    if (there == NULL)
        return false;
    memcpy(payload, there, r.bytes);
    frame->payload_bytes = (uint32_t)r.bytes;
    return sl_checksum(payload, r.bytes) == r.sum;
}

void *sl_side_share(sl_side *side, size_t bytes) {
    const size_t taken = sl_round_up(bytes, SL_VEC_ALIGNMENT);
    if (side->arena == NULL || taken > sl_arena_bytes(side->arena) - side->shared)
        return NULL;
    uint8_t *memory = sl_arena_memory(side->arena) + side->shared;
    side->shared += taken;
    return memory;
}

bool sl_side_shares(const sl_side *side, const void *memory) {
    const uint8_t *from = side->arena != NULL ? sl_arena_memory(side->arena) : NULL;
    return from != NULL && (uintptr_t)memory - (uintptr_t)from < side->shared;
}

unsigned sl_side_free_rooms(const sl_neighbour *neighbours, uint32_t count) {
    unsigned rooms = 0;
    for (const sl_neighbour *n = neighbours; n < neighbours + count && rooms == 0; n++)
        for (uint32_t i = 0; n->process.lends && i < SL_COPIES_ROOMS; i++)
            rooms |= (unsigned)(n->side->copies.rooms[i] == 0) << i;
    return rooms;
}

void sl_neighbour_refer(const sl_neighbour *n, sl_frame *frame, const void *payload,
                        uint8_t out[SL_REFERENCE_BYTES]) {
    const uint8_t *from = sl_arena_memory(n->process.lent);
    const sl_reference r = {(uint64_t)((const uint8_t *)payload - from), frame->payload_bytes,
                            frame->payload_sum};
    sl_reference_encode(&r, out);
    frame->refers = true;
    frame->unsummed = false;
    frame->payload_bytes = SL_REFERENCE_BYTES;
    frame->payload_sum = sl_checksum(out, SL_REFERENCE_BYTES);
}

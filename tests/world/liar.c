/* liar.c - see liar.h. A lie keeps the frame's length, and a letter's its sender: so it is read. */
#include "liar.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "joining.h"
#include "seeds.h"
#include "virtual.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/frame.h"

static uint32_t liar = UINT32_MAX;
static double rate; /* of any frames */

/* Of a letter's head (membership/letter.c), but for sender, incarnation and the lengths of lists.
 */
static const struct field {
    size_t at, bytes;
    uint64_t below; /* of what it may be; 0: anything */
} fields[] = {
    {0, 4, 10},             /* type */
    {12, 4, 9},             /* sponsor */
    {24, 8, 0},             /* number */
    {32, 8, 0},             /* round */
    {40, 8, 0},             /* ballot: counter, rank */
    {48, 4, 9}, {52, 4, 6}, /* standing */
    {64, 8, 0},             /* cut */
};
enum { FIELDS = sizeof fields / sizeof *fields, HEAD_BYTES = 80 };

void liar_is(uint32_t rank, double of_any) {
    liar = rank;
    rate = of_any;
}

static uint64_t lie(uint64_t truth, uint64_t below) {
    if (below > 0)
        return world_draw() % below;
    switch (world_draw() % 4) {
    case 0:
        return truth + world_draw() % 5 - 2;
    case 1:
        return world_draw() % 20;
    case 2:
        return truth + 1;
    default:
        return world_draw() >> world_draw() % 64;
    }
}

static void change(uint8_t *at, size_t bytes, uint64_t below) {
    if (bytes == 4)
        put32(at, (uint32_t)lie(get32(at), below));
    else
        put64(at, lie(get64(at), below));
}

/* Lists of ranks, and the decisions behind them: words of 32 bits. */
static void change_lists(uint8_t *letter, size_t bytes) {
    for (size_t at = HEAD_BYTES; at + 4 <= bytes; at += 4)
        if (world_chance(0.2))
            change(letter + at, 4, world_chance(0.7) ? 9 : 0);
}

void liar_forge(uint32_t from, uint8_t *frame, size_t bytes) {
    sl_frame head;
    uint8_t *letter = frame + SL_FRAME_HEADER_BYTES;
    if (from != liar || bytes < SL_FRAME_HEADER_BYTES + HEAD_BYTES ||
        sl_frame_decode(&head, frame, bytes, bytes, false) != NULL ||
        head.type != SL_FRAME_MEMBERSHIP || head.part != 0)
        return;
    for (int i = 0; i < FIELDS; i++)
        if (world_chance(0.3))
            change(letter + fields[i].at, fields[i].bytes, fields[i].below);
    put64(letter + 72, get64(letter + 64)); /* the view that it wants another one after: its cut */
    letter[4] ^= (uint8_t)(get64(letter + 32) % 2 << 2); /* that is to be the last, by its round */
    if (world_chance(0.5))
        change_lists(letter, head.payload_bytes);
    joining_trouble(); /* some of those that it speaks of may be left out for a while */
    head.payload_sum = sl_checksum(letter, head.payload_bytes);
    sl_frame_encode(&head, frame);
}

/* ---- any frame ---- */

static float some_number(void) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, FLT_MAX, 0, -0.0f};
    return world_chance(0.5) ? odd[world_below(sizeof odd / sizeof *odd)]
                             : (float)world_uniform() - 0.5f;
}

static void change_head(sl_frame *head) {
    switch (world_below(10)) {
    case 0:
        head->type = (sl_frame_type)(1 + world_below(SL_FRAME_TYPE_END - 1));
        head->part = (uint32_t)lie(head->part, 9); /* as of what has no payload */
        head->step = (uint32_t)lie(head->step, 6);
        break;
    case 1:
        head->exchange = lie(head->exchange, 0);
        break;
    case 2:
        head->part = (uint32_t)lie(head->part, 0);
        break;
    case 3:
        head->step = (uint32_t)lie(head->step, 0);
        break;
    case 4:
        head->credit = (uint32_t)lie(head->credit, 0);
        break;
    case 5:
        head->received = (uint32_t)lie(head->received, 0);
        break;
    case 6:
        head->view = (uint32_t)lie(head->view, 4);
        break;
    case 7:
        head->scalar = (double)some_number();
        break;
    case 8:
        head->payload_bytes = (uint32_t)lie(head->payload_bytes, 0);
        break;
    case 9:
        head->asks = world_chance(0.5);
        head->silent = world_chance(0.5);
        head->is_void = world_chance(0.5);
        head->unsummed = world_chance(0.5);
        head->refers = world_chance(0.3);
        break;
    }
}

static void change_payload(uint8_t *payload, size_t bytes) {
    for (uint32_t i = 1 + world_below(4); i > 0; i--) {
        uint8_t *at = payload + world_draw() % bytes / 4 * 4;
        const float number = some_number();
        if (at + sizeof number > payload + bytes || world_chance(0.3))
            *at ^= (uint8_t)world_draw();
        else if (world_chance(0.5))
            memcpy(at, &number, sizeof number);
        else
            change(at, 4, 0);
    }
}

void liar_forge_any(uint32_t from, uint8_t *frame, size_t bytes) {
    sl_frame head;
    if (from != liar || !world_chance(rate) || bytes < SL_FRAME_HEADER_BYTES ||
        sl_frame_decode(&head, frame, bytes, bytes, false) != NULL)
        return;
    seeds_count("frames forged", 1);
    const size_t payload_bytes = head.payload_bytes;
    if (payload_bytes > 0 && world_chance(0.4))
        change_payload(frame + SL_FRAME_HEADER_BYTES, payload_bytes);
    else
        change_head(&head);
    head.payload_sum = sl_checksum(frame + SL_FRAME_HEADER_BYTES, payload_bytes);
    sl_frame_encode(&head, frame);
}

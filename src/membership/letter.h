/* letter.h - messages of members as bytes. Decoding checks bounds before it reads; what the bytes
 * say is checked by sl_membership_step.
 *
 *   offset  0  type u32          4  flags u32 (1 decision, 2 accepted)
 *           8  from u32         12  sponsor u32
 *          16  incarnation u64  24  number u64      32  round u64
 *          40  ballot: counter u64, rank u32        52  standing u32
 *          56  number of unreachable u32            60  number of reached u32
 *          64  cut u64
 *          72  unreachable and reached ranks, u32 each; then the decisions that there are:
 *   offset  0  ballot: counter u64, rank u32        12  number u64   20  round u64
 *          28  exchange u64     36  numbers of members and broken edges, u32 each
 *          44  cut u32
 *          48  members: rank u32, incarnation u64; broken: low u32, high u32
 */
#ifndef SL_LETTER_H
#define SL_LETTER_H

#include "membership/decision.h"

/* A message that came, and its memory. */
typedef struct sl_letter {
    uint32_t ranks_max;
    sl_membership_message message;
    uint32_t *unreachable, *reached; /* (ranks_max) */
    sl_kept_decision decision, accepted;
} sl_letter;

/* Of any message in a run of so many ranks. */
size_t sl_letter_bytes_max(uint32_t ranks_max);
/* Of this one, which holds no more than ranks_max allows. */
size_t sl_letter_bytes(const sl_membership_message *message);
void sl_letter_encode(const sl_membership_message *message, uint8_t *out);

int sl_letter_open(sl_letter *letter, uint32_t ranks_max, sl_error *error);
void sl_letter_close(sl_letter *letter);
/* Fills letter->message, which points into the letter. NULL, or what is wrong. */
const char *sl_letter_decode(sl_letter *letter, const uint8_t *data, size_t bytes);

#endif

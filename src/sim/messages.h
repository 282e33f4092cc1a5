/* messages.h - what a timeline knows of a run (starling/timeline.h): who sent how much to whom.
 *
 * A round is a list of words: messages, and nodes that are done. Rounds are mostly alike, so that
 * each distinct list is kept once and a run is a list of these. Exchanges are counted from the last
 * one of the round before, or no two rounds would be alike. The parts of a message are taken to be
 * equally long. */
#ifndef SL_SIM_MESSAGES_H
#define SL_SIM_MESSAGES_H

#include "starling/timeline.h"

/* send: SEND, rank, exchange, step, parts, bytes (2), ready, peers, then those; done: DONE, rank,
 * frames. ready: 0, with the round's gradient; 1, with the round; else the bits of a float, with
 * such a share of the gradient's time. */
enum { SEND, DONE };
enum {
    SEND_WORDS = 9,
    DONE_WORDS = 3,
    SEND_EXCHANGE = 2,
    SEND_PARTS = 4,
    SEND_BYTES = 5,
    SEND_READY = 7,
    SEND_PEERS = 8,
    READY_MAX = 0x3f800000 /* the bits of 1 */
};

/* A distinct round. */
typedef struct pattern {
    uint32_t *words; /* (count) */
    size_t count;
    uint64_t hash, exchanges;
} pattern;

struct sl_timeline {
    uint32_t nodes;
    bool out_of_memory;
    pattern *patterns;
    size_t pattern_count, pattern_room, words_kept;
    uint32_t *rounds; /* (round_count) pattern of each */
    size_t round_count, round_room;
    uint32_t *words; /* of the round under way */
    size_t word_count, word_room;
    size_t message;                       /* the send under way in it; SIZE_MAX: to nobody */
    uint64_t exchanges_before, exchanges; /* before the round under way, and up to now */
    uint64_t copies;
};

#endif

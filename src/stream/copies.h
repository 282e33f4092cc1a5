/* copies.h - parts that some neighbour may not have, of messages that are over.
 *
 * A part must be sent again if the connection breaks before it came. A node overwrites its parts in
 * every round. So whatever has left and is not known to have come is noted here before the node is
 * told that it has left: a copy, or, as long as the node leaves the part alone, where it stands. Of
 * a neighbour's frames at most a window is under way: with as many places for each neighbour, one
 * is always free.
 *
 * The sender looks for answers after every fourth part that it sends, and answers by a frame of its
 * own only where half a window is left to tell after it has sent what it can. In a step in which
 * both sides send, the last part of a message asks for an answer, and the loop yields the processor
 * and looks a few times before it copies; what the node stops for next is copied at once. Where
 * data goes one way, it is copied before that. What the next step of an all-reduce leaves alone
 * (sl_outbound.stays) stays where it is for that step. What only its receiver's message of a later
 * step overwrites, as in the first half of halving-doubling and up a tree, stays until then: that
 * message says what came, so that nobody asks. GPU-direct waits and asks for answers: its links
 * answer soon, and copies there need the device.
 */
#ifndef SL_COPIES_H
#define SL_COPIES_H

#include "starling/error.h"
#include "starling/vec.h"
#include "wire/frame.h"

#define SL_COPY_NONE UINT32_MAX

/* Vectors that stay as they are while somebody uses them: they are sent from where they stand. Each
 * is a place beyond those of copies. */
enum { SL_COPIES_ROOMS = 3 };

typedef struct sl_copy {
    sl_frame frame;
    uint8_t *copy;          /* (stride) */
    const uint8_t *payload; /* that, or the node's */
    const uint8_t *kept;    /* in memory that others read, where it stays; NULL: it is not there */
    uint32_t users;         /* neighbours that may not have it; 0: the place is free */
    bool answered;          /* before the node overwrites it, they say that it came */
} sl_copy;

typedef struct sl_copies {
    sl_copy *parts; /* (count) */
    uint32_t count, free_count;
    uint32_t stands; /* how many are where the node has them */
    uint32_t *free;  /* (free_count) the place freed last is taken first: it is in cache */
    uint8_t *memory; /* (memory_bytes) of all copies, SL_VEC_ALIGNMENT */
    size_t memory_bytes;
    bool is_given;                   /* the memory is the caller's */
    uint64_t copied;                 /* bytes, so far */
    uint32_t rooms[SL_COPIES_ROOMS]; /* how many use each */
} sl_copies;

/* Bytes of memory that so many copies need. */
size_t sl_copies_bytes(uint32_t count, size_t part_bytes);
/* count 0: nothing is copied, senders wait until their parts have come. memory: (sl_copies_bytes),
 * until the copies are closed; NULL: their own. What leaves from it may have to be registered, by
 * the caller. SL_ENOMEM. */
int sl_copies_open(sl_copies *out, uint32_t count, size_t part_bytes, uint8_t *memory,
                   sl_error *error);
void sl_copies_close(sl_copies *copies);
/* Notes a part, without users yet; returns its place. answered: it stands where the node has it
 * until its receivers' messages come. */
uint32_t sl_copies_add(sl_copies *copies, const sl_frame *frame, const void *payload,
                       bool answered);
/* The part is where others read it, on a device it may be, and stays until its place is free. */
void sl_copies_keep(sl_copies *copies, uint32_t place);
/* A copy of one that is kept on a device, for who does not read it there. */
void sl_copies_fetch(sl_copies *copies, uint32_t place, const sl_vec_ops *device);
/* Is what is kept there in this memory? */
static inline bool sl_copies_keeps(const sl_copies *copies, uint32_t place, const uint8_t *memory,
                                   size_t bytes) {
    return (uintptr_t)copies->parts[place].kept - (uintptr_t)memory < bytes;
}
/* Is some part of this memory kept? */
bool sl_copies_keep_any(const sl_copies *copies, const uint8_t *memory, size_t bytes);
/* Is this part there still? */
bool sl_copies_is(const sl_copies *copies, uint32_t place, const sl_frame *frame);
/* The node is about to overwrite it. */
void sl_copies_make(sl_copies *copies, uint32_t place);
/* Does a part of another exchange, or of another step and not to be answered, stand where the node
 * has it? */
bool sl_copies_lack_others(const sl_copies *copies, uint64_t exchange, uint32_t step);
/* Copies all of those. */
void sl_copies_make_others(sl_copies *copies, uint64_t exchange, uint32_t step);
/* One user more, or less. */
void sl_copies_use(sl_copies *copies, uint32_t place);
void sl_copies_drop(sl_copies *copies, uint32_t place);
/* The place of a vector. */
static inline uint32_t sl_copies_room(const sl_copies *copies, uint32_t room) {
    return copies->count + room;
}
/* Where the part of this place is now, which was at `payload` when it was sent. */
const void *sl_copies_payload(const sl_copies *copies, uint32_t place, const void *payload);

#endif

/* frame.h - frames between agents: a header of 64 bytes, then the payload. Decoding checks bounds
 * before it reads.
 *
 * Little-endian. The header carries its own checksum (the low half of XXH3) and the payload's
 * (XXH3, 64 bits), which is computed once for all peers. A payload that goes from GPU memory to GPU
 * memory has no checksum. It begins beyond the longest frame of any other type: a receive buffer
 * then is a piece of host memory and a piece of GPU memory, and either type fits.
 *
 *   offset  0  magic u32     4  version u16    6  type u8, flags u8             8  view u32, of
 *              HELLO and ABORT: sender u32
 *          12  part u32     16  exchange u64  24  credit u32   28  received u32
 *          32  payload bytes u32              36  step u32
 *          40  payload sum u64                48  scalar f64   56  reserved, zero (4)   60  header
 *              sum u32 over bytes 0..59
 *
 * A sealed frame has a tag of 16 bytes in place of both checksums and the reserved bytes, its first
 * half at 40, its second at 56. Its payload is encrypted; its header, with zeros there, is not.
 *
 * Flags: 1 the sender waits to hear that it came; 2 sealed, 4 with the second of two keys; 8
 * silent; 16 the payload has no checksum; 32 void; 64 the payload says where it is.
 */
#ifndef SL_FRAME_H
#define SL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SL_FRAME_HEADER_BYTES = 64,
    SL_FRAME_TEXT_MAX = 512,
    SL_HEARTBEAT_BYTES = 48,
    SL_FRAME_DIRECT_AT =
        SL_FRAME_HEADER_BYTES + SL_FRAME_TEXT_MAX /* where a DIRECT frame's payload begins */
};

typedef enum sl_frame_type {
    SL_FRAME_HELLO = 1, /* payload: sl_hello, then its settings and its layout */
    SL_FRAME_DATA,      /* payload: one part of a message */
    SL_FRAME_CREDIT,    /* none: `credit` is the message */
    SL_FRAME_HEARTBEAT, /* payload: what the sender does, and for whom it waits */
    SL_FRAME_ABORT,     /* payload: why, text; step, what: sl_frame_abort */
    SL_FRAME_BYE,       /* none: the sender sends no more data */
    SL_FRAME_DIRECT,    /* DATA from GPU memory: no checksum, at SL_FRAME_DIRECT_AT, zeros before */
    SL_FRAME_BARRIER,   /* none: agent `part` has come in round `exchange`, for purpose `step` */
    SL_FRAME_SUM_CREDIT, /* none: the first `part` parts of sum `exchange` may be sent, the first
                      `step` have come */
    SL_FRAME_SUM,        /* payload: part `part` of sum `exchange` */
    SL_FRAME_CHECKPOINT, /* none: all write a checkpoint after round `exchange`; step 1: and end */
    SL_FRAME_READY,      /* none: the exchange before `exchange` is over at the sender */
    SL_FRAME_HANDSHAKE,  /* payload: some bytes of the handshake that comes before HELLO */
    SL_FRAME_MEMBERSHIP, /* payload: bytes from `part` on of a message of a member that has `step`
                          */
    SL_FRAME_FETCH,   /* none: the receiver's model is wanted, by request `step`, of which the first
                         `part` elements have come */
    SL_FRAME_MODEL,   /* payload: elements from `part` on of the sender's model after round
                         `exchange`, for request `step` */
    SL_FRAME_ACCOUNT, /* none: of an average that was cut, the receiver's ask `exchange`; step says
                         whether that is asked or told: the first `part` parts hold */
    SL_FRAME_OFFER,   /* payload: what the sender has put into the receiver's mailbox, an
                         sl_memory_offer */
    SL_FRAME_MEMORY,  /* none: that is read from now on, of `step` data frames at once at most, each
                         of `part` parts at most; 0: it is not */
    SL_FRAME_TYPE_END
} sl_frame_type;

typedef enum sl_frame_abort {
    SL_ABORT_ENDS,     /* the sender ends */
    SL_ABORT_BEGINS,   /* it ends before any round, as somebody has not come: nobody is to begin */
    SL_ABORT_DROPS,    /* it goes on without the receiver, whose connection it ends */
    SL_ABORT_FOLLOWED, /* the sender is in a view, of number `exchange`, with another process of
                         the receiver's rank */
    SL_ABORT_TRAINS    /* the sender trains already, and the receiver may join it */
} sl_frame_abort;

typedef struct sl_frame {
    sl_frame_type type;
    bool asks;     /* DATA, DIRECT: tell at once that it came */
    bool silent;   /* DATA, DIRECT: the whole message, which says nothing and has no payload */
    bool unsummed; /* DATA: payload_sum says nothing */
    bool
        is_void; /* DATA, DIRECT, SUM, MODEL: its payload is of no use any more, and did not come */
    bool refers; /* DATA, SUM, MODEL: the payload is in the memory that its sender has offered;
                    what came is an sl_reference: of DATA, to this part and those that follow */
    uint32_t sender; /* HELLO, ABORT */
    uint32_t view;   /* others: number of the view that the sender is in, modulo 2^32; 0: in none */
    uint32_t part;
    uint64_t exchange; /* CREDIT, HEARTBEAT: the latest that the sender has begun */
    uint32_t step;
    double scalar;     /* push-sum: the sender's weight */
    uint32_t credit;   /* how many data frames the receiver may have sent, counted since the start,
                          modulo 2^32 */
    uint32_t received; /* how many of its numbered frames have come, likewise */
    uint32_t payload_bytes;
    uint64_t payload_sum;
} sl_frame;

/* The longest payload of a SUM or MODEL frame: whole doubles, and room for some where data is short
 * or elsewhere. */
size_t sl_frame_sum_bytes_max(size_t payload_max, bool direct);

void sl_frame_encode(const sl_frame *frame, uint8_t header[SL_FRAME_HEADER_BYTES]);

/* Bytes of the frame that begins with this header; 0: none begins so. */
size_t sl_frame_bytes(const uint8_t header[SL_FRAME_HEADER_BYTES]);

/* What sl_frame_decode says of a payload that is not as its sender meant it. */
#define SL_FRAME_ALTERED "payload checksum differs"

/* Decodes `bytes` that a peer sent. Data payloads have at most `payload_max` bytes, and come in
 * DIRECT frames if `direct`, else in DATA frames. Returns NULL, or what is wrong. Reads nothing
 * beyond `bytes`, and nothing of a DIRECT payload. Fills *out only if all is right, checksums
 * included. */
const char *sl_frame_decode(sl_frame *out, const uint8_t *data, size_t bytes, size_t payload_max,
                            bool direct);

enum { SL_FRAME_TAG_BYTES = 16 };
/* Makes an encoded header the one of a sealed frame, whose tag is zero still. phase: which key. */
void sl_frame_seal(uint8_t header[SL_FRAME_HEADER_BYTES], bool phase);
void sl_frame_put_tag(uint8_t header[SL_FRAME_HEADER_BYTES], const uint8_t tag[SL_FRAME_TAG_BYTES]);
/* Of what came: is it sealed, and with which key? Takes its tag out. */
bool sl_frame_take_tag(uint8_t *data, size_t bytes, bool *phase, uint8_t tag[SL_FRAME_TAG_BYTES]);
/* sl_frame_decode, of a sealed frame whose tag was right, without its tag. */
const char *sl_frame_decode_sealed(sl_frame *out, const uint8_t *data, size_t bytes,
                                   size_t payload_max, bool direct);

/* Where a payload is in its sender's memory. */
typedef struct sl_reference {
    uint64_t offset; /* from the beginning of the memory that was offered */
    uint64_t bytes;
    uint64_t sum; /* SUM, MODEL: the checksum of what is there */
} sl_reference;
enum { SL_REFERENCE_BYTES = 3 * 8 };
void sl_reference_encode(const sl_reference *reference, uint8_t out[SL_REFERENCE_BYTES]);
sl_reference sl_reference_decode(const uint8_t data[SL_REFERENCE_BYTES]);

/* Memory that its owner lets processes of its host and user read (arena/arena.h). */
typedef struct sl_memory_offer {
    uint64_t bytes; /* 0: none */
    uint64_t key[2];
} sl_memory_offer;
enum { SL_OFFER_BYTES = 3 * 8 };
void sl_offer_encode(const sl_memory_offer *offer, uint8_t out[SL_OFFER_BYTES]);
sl_memory_offer sl_offer_decode(const uint8_t data[SL_OFFER_BYTES]);

/* Where a process of this host is handed such memory. */
typedef struct sl_mailbox_name {
    uint64_t key[2]; /* 0: nowhere */
} sl_mailbox_name;

/* Where the sender of a HELLO stands with its receiver. Counts are since the start. */
typedef struct sl_standing {
    uint64_t incarnation; /* of the sender: each process has another one, at random */
    uint64_t knows;       /* incarnation of the receiver that the counts are of; 0: none yet */
    uint64_t trains;  /* 1: and that the sender trains with, so that no other may take its place */
    uint64_t attempt; /* the sender's count of connections to the receiver */
    uint64_t credit;  /* data frames that the receiver may have sent */
    uint64_t received, received_data; /* its numbered frames that came; of these, data frames */
    sl_mailbox_name mailbox;          /* of the sender, for the receiver's memory */
    bool joins;                       /* no field of its own: `resumed` says SL_HELLO_JOINS */
} sl_standing;

/* It goes on from a round that the agents are still to agree on. */
#define SL_HELLO_AGREES UINT64_MAX
/* It joined, or will, those who train, in place of a process that is lost. */
#define SL_HELLO_JOINS (UINT64_MAX - 1)

/* What two agents compare before anything else. */
enum { SL_HELLO_SECTIONS_MAX = 8 };
typedef struct sl_hello {
    uint64_t run_id;
    uint64_t topology_hash;
    uint64_t layout_hash;
    uint64_t data_hash;
    uint64_t dimension;
    uint64_t rounds;
    uint64_t seed;
    uint64_t resumed; /* the round that it goes on from; 0: it begins; SL_HELLO_AGREES, _JOINS */
    uint32_t chunk_bytes;
    uint32_t nodes;
    uint32_t section_count;
    bool direct;                              /* payloads come and go in DIRECT frames */
    bool goes_on;                             /* when a peer is lost (membership.on_loss) */
    uint64_t sections[SL_HELLO_SECTIONS_MAX]; /* configuration, by section */
    sl_standing standing;                     /* not compared */
    const char *settings;  /* (settings_bytes) what the sections are hashes of, in words; no end
                              mark.  Borrowed, like the layout, which follows it */
    size_t settings_bytes; /* with the layout's at most SL_HELLO_TEXT_MAX */
    const char *layout; /* (layout_bytes) what layout_hash is of, in words, or its beginning; no end
                           mark. Borrowed */
    size_t layout_bytes;
} sl_hello;

enum {
    SL_HELLO_BYTES = 8 * 8 + 4 * 4 + SL_HELLO_SECTIONS_MAX * 8 + 9 * 8 + 8, /* without texts */
    SL_HELLO_TEXT_MAX = 16384
};
/* All but the texts, which follow. */
void sl_hello_encode(const sl_hello *hello, uint8_t out[SL_HELLO_BYTES]);
/* NULL or what is wrong. The texts stay in data. */
const char *sl_hello_decode(sl_hello *out, const uint8_t *data, size_t bytes);

#endif

/* reduce.h - a sum over all agents, up the tree and down again, part by part.
 *
 * A part goes up in double: each agent adds its children's to its own share, child after child. The
 * root divides, rounds once, and sends the result down. A receiver asks for parts first,
 * with SUM_CREDIT frames, and only for what it can take at once: a child's part only after the
 * child before it has sent that part. So a sum needs no receive buffers of its own, arrives in the
 * order in which it is added, and rounds that run beside it cannot block it. SUM_CREDIT says too
 * how many parts came: a part stays where it is until then.
 */
#ifndef SL_REDUCE_H
#define SL_REDUCE_H

#include "agent/collectives/tree_position.h"

/* What passed over one link in the sum under way; in parts. */
typedef struct sl_reduce_link {
    uint32_t received; /* of a child: added */
    uint32_t told;     /* of these, it was told of */
    uint32_t asked;    /* it may send this many */
    uint32_t wanted;   /* it asked for this many, in sum number wanted_in */
    uint64_t wanted_in;
    uint32_t sent, come; /* handed to the connection; it said that they came */
} sl_reduce_link;

typedef struct sl_reduce {
    sl_tree_position *place; /* borrowed */
    sl_reduce_link *links;   /* (link_count) */
    size_t part_numbers;     /* most numbers in a part */
    double *rising;  /* (SL_REDUCE_WINDOW, part_numbers) parts on their way up, used in turn */
    double *falling; /* the same on their way down; of a vector floats */
    double *own;     /* memory of both; NULL: they are in the side's arena */
    sl_share share;
    bool active;
    uint64_t number;       /* of sums begun */
    uint32_t vector_parts; /* of share.x */
    uint32_t parts;        /* and one more for share.numbers, if there are any */
    uint32_t begun;        /* parts whose own share is in `rising` */
    uint32_t settled;      /* parts whose result is known here */
} sl_reduce;

enum { SL_REDUCE_WINDOW = 4 };

/* Of the parts that are sent, for the side's arena. */
size_t sl_reduce_bytes(const sl_side *side);
int sl_reduce_open(sl_reduce *out, sl_tree_position *place, sl_side *side, sl_error *error);
void sl_reduce_close(sl_reduce *sum);
/* Its place is another one: what is under way is void, and sums count anew. */
int sl_reduce_turn(sl_reduce *sum, sl_error *error);
/* SL_EINVAL: too many numbers. */
int sl_reduce_begin(sl_reduce *sum, const sl_share *share, sl_error *error);
/* A SUM_CREDIT or SUM frame, with its payload. SL_EPROTO: it makes no sense, or the agents' shares
 * have different sizes. */
int sl_reduce_take(sl_reduce *sum, sl_neighbour *from, const sl_frame *frame,
                   const uint8_t *payload, sl_error *error);
/* Has the sum under way passed over this link, both ways? */
bool sl_reduce_has_passed(const sl_reduce *sum, uint32_t link);
/* Is the result here, whether or not all whom it goes through have it? */
bool sl_reduce_is_known(const sl_reduce *sum);
/* Adds, asks and sends what there is. holds: the root makes no result known. True: the sum is done
 * here. */
bool sl_reduce_advance(sl_reduce *sum, bool holds);
/* "agent 3's part 5 of 12": what the sum waits for, and of whom. */
void sl_reduce_name_wait(const sl_reduce *sum, char *out, size_t bytes, uint32_t *peer);

#endif

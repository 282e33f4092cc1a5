/* passage.h - between whom a connection is, of which run: what its greeting and its keys are bound
 * to. */
#ifndef SL_PASSAGE_H
#define SL_PASSAGE_H

#include <stdint.h>

#include "wire/bytes.h"

typedef struct sl_passage {
    uint64_t run_id;
    uint32_t from, to;    /* ranks: who connects, and whom it looks for */
    uint64_t incarnation; /* of who connects */
} sl_passage;

enum { SL_PASSAGE_BYTES = 24 };
static inline void sl_passage_encode(const sl_passage *p, uint8_t out[SL_PASSAGE_BYTES]) {
    put64(put32(put32(put64(out, p->run_id), p->from), p->to), p->incarnation);
}

#endif

/* liar.h - an agent that holds the run's key and lies: its members' messages (MEMBERSHIP frames),
 * or all its frames, say of each field what others said, something near, or anything. */
#ifndef LIAR_H
#define LIAR_H

#include <stddef.h>
#include <stdint.h>

/* For network.forge: changes a frame that rank `from` sends, if that is the liar. */
void liar_forge(uint32_t from, uint8_t *frame, size_t bytes);
/* Likewise, any frame: its header, or numbers of its payload, now and then. */
void liar_forge_any(uint32_t from, uint8_t *frame, size_t bytes);
/* Who lies; UINT32_MAX: nobody. rate: of its frames, by liar_forge_any. */
void liar_is(uint32_t rank, double rate);
/* A seed from here on is one in which somebody forges any frame. */
enum { LIAR_SEEDS = 100000 };

#endif

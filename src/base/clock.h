/* clock.h - seconds, for drivers. Rooms below them read no clock. */
#ifndef SL_CLOCK_H
#define SL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

double sl_clock_seconds(void); /* monotonic */
/* Microseconds since 1970. */
uint64_t sl_clock_epoch_us(void);
/* The calling thread sleeps. */
void sl_clock_sleep(double seconds);
/* Offers the processor to whoever has work for it. false: it came back late, from a thread that
 * computes. To sleep is better then: a thread that is woken goes first. */
bool sl_clock_yield(void);

#endif

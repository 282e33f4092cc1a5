/* restarts.h - when `starling run` starts an agent again that has ended (membership.restart): the
 * first time at once, then after 1, 2, 4 and 8 s. Who was started five times within a minute and
 * ends again is not. */
#ifndef RESTARTS_H
#define RESTARTS_H

#include <stdbool.h>
#include <stdint.h>

enum { RESTARTS_MAX = 5, RESTARTS_WITHIN_S = 60 };

typedef struct restarts {
    double at_s[RESTARTS_MAX]; /* the latest ones, in a ring; 0: none */
    uint32_t count;
    double due_s; /* of the one that is planned; 0: none is */
} restarts;

/* An agent has ended: plans to start it. False: that was too often. */
bool restarts_plan(restarts *r, double now_s);
/* Is it time? Then nothing is planned any more. */
bool restarts_take(restarts *r, double now_s);

#endif

/* loss_judge.h - what must hold of the agents of loss_world at a seed's end. */
#ifndef LOSS_JUDGE_H
#define LOSS_JUDGE_H

#include "loss_seed.h"
#include "peers.h"

static const double loss_heal_s = 8;

extern loss_seed drawn;
extern struct parting {
    double at_s; /* it began, or was healed */
    bool is_up, was;
} parting;
bool loss_strikes_are(strike_kind kind);
void loss_judge(const peer *p, bool verbose);
/* Where nothing else goes wrong, both sides are one again, if there is time. */
void loss_judge_healing(void);

#endif

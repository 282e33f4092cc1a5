/* scenario.h - what a list of faults leads to, view by view. */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "check/page.h"
#include "cli/tool.h"

/* Who is a member when, and the spectral gap of their topology. Nothing without faults. */
int scenario_say(page *p, const sl_experiment *e, sl_error *error);

#endif

/* scenario.h - what a list of faults leads to, view by view. */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "cli/tool.h"

/* Prints who is a member when, and the spectral gap of their topology. Nothing without faults. */
int scenario_print(const sl_experiment *e, sl_error *error);

#endif

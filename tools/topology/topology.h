/* topology.h - the subcommands of `starling topology`. */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "cli/tool.h"

extern const command topology_make_command, topology_analyse_command, topology_rank_command;

/* A double above 0 and below 1, at the row's offset. */
int take_fraction(void *request, const command_option *row, const char *text);

#endif

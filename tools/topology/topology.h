/* topology.h - the subcommands of `starling topology`. */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "cli/tool.h"

extern const command topology_make_command, topology_analyse_command, topology_rank_command;

#endif

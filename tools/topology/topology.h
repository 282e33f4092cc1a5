/* topology.h - the subcommands of `starling topology`: each takes its own arguments, argv[0] being
 * its name, and returns an exit code. */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "cli/tool.h"

int topology_make(int argc, char **argv);
int topology_analyse(int argc, char **argv);
int topology_rank(int argc, char **argv);

#endif

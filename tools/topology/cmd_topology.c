/* cmd_topology.c - `starling topology`: its subcommands. */
#include "draw/topology_draw.h"
#include "topology/topology.h"

static const command *const commands[] = {
    &topology_make_command,
    &topology_analyse_command,
    &topology_draw_command,
    &topology_rank_command,
    NULL,
};

const command topology_command = {
    .name = "topology",
    .summary = "make, analyse, draw and rank topologies",
    .text = "Says how fast a network agrees before anyone trains on it.",
    .commands = commands,
};

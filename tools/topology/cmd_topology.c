/* cmd_topology.c - `starling topology`: its subcommands. */
#include <stdlib.h>

#include "draw/topology_draw.h"
#include "topology/topology.h"

int take_fraction(void *request, const command_option *row, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0 && value < 1)) {
        complain("--%s %s: expected a number above 0 and below 1", row->name, text);
        return TOOL_USAGE;
    }
    *(double *)((char *)request + row->offset) = value;
    return TOOL_OK;
}

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

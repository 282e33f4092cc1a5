/* cmd_topology.c - `starling topology`: picks a subcommand. */
#include <stdio.h>
#include <string.h>

#include "draw/topology_draw.h"
#include "topology/topology.h"

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *help;
} subcommands[] = {
    {"make", topology_make, "write the topology file of a family"},
    {"analyse", topology_analyse, "say what it is, how fast it agrees and what a round costs"},
    {"draw", topology_draw, "draw the graph, its spectrum, and how fast it agrees"},
    {"rank", topology_rank, "which topology agrees soonest on a cluster"},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static void print_help(FILE *to) {
    fputs("usage: starling topology SUBCOMMAND ...\n"
          "\n"
          "Says how fast a network agrees before anyone trains on it.\n"
          "\n"
          "subcommands:\n",
          to);
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        fprintf(to, "  %-8s %s\n", subcommands[i].name, subcommands[i].help);
    fputs("\n  starling topology SUBCOMMAND --help   what a subcommand takes\n", to);
}

int cmd_topology(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return TOOL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return TOOL_OK;
    }
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].main(argc - 1, argv + 1);
    char all[128] = "";
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "",
                 subcommands[i].name);
    complain("topology: unknown subcommand '%s'; one of %s (starling topology --help)", argv[1],
             all);
    return TOOL_USAGE;
}

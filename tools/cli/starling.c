/* starling.c - the command: picks a subcommand. */
#include <stdio.h>
#include <string.h>

#include "cli/tool.h"
#include "starling/kernels.h"

typedef struct command {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *help;
} command;

static const command commands[] = {
    {"run", cmd_run, "train with one agent process per node on this machine"},
    {"agent", cmd_agent, "be one peer of a run that spans several shells or hosts"},
    {"sim", cmd_sim, "simulate the same run in one process, with the same numbers"},
    {"compare", cmd_compare, "run several algorithms on the same data and print one table"},
    {"devices", cmd_devices, "list the GPUs that vectors can be kept on, or say why there is none"},
    {"check", cmd_check, "validate an experiment or a topology and print what it means"},
    {"topology", cmd_topology, "make topology files"},
};

static const char usage[] =
    "usage: starling COMMAND ...\n"
    "\n"
    "Decentralized training: peers average their models with their neighbours only.\n"
    "\n"
    "commands:\n";

static const char tail[] = "\n"
                           "  starling COMMAND --help   what a command takes\n"
                           "  starling --version        the release and the protocol it speaks\n"
                           "\n"
                           "exit codes:\n"
                           "  0    it worked\n"
                           "  1    the run failed: a peer, the network, divergence, a disk\n"
                           "  2    bad usage or bad input; nothing was started\n"
                           "  130  interrupted (Ctrl-C); what was recorded so far is kept\n";

static void print_help(FILE *to) {
    fputs(usage, to);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
    fputs(tail, to);
}

/* A command that wrote its output nowhere has not worked. */
static int finish(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    complain("cannot write to standard output");
    return code == TOOL_OK ? TOOL_FAILED : code;
}

/* libfabric brings libraries along that catch these, so that a crash looks like an exit. */
static void restore_signals(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], SIG_DFL);
}

int main(int argc, char **argv) {
    restore_signals();
    if (argc < 2) {
        print_help(stderr);
        return TOOL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return finish(TOOL_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("starling %s (protocol %u)\n", sl_version(), SL_PROTOCOL_VERSION);
        return finish(TOOL_OK);
    }
    sl_error error;
    if (sl_kernels_check(&error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return finish(commands[i].main(argc - 1, argv + 1));
    complain("unknown command '%s'; one of run, agent, sim, compare, devices, check, topology "
             "(starling --help)",
             argv[1]);
    return TOOL_USAGE;
}

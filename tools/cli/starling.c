/* starling.c - the command's main. */
#include <stdio.h>
#include <string.h>

#include "cli/tool.h"
#include "starling/kernels.h"

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
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("starling %s (protocol %u)\n", sl_version(), SL_PROTOCOL_VERSION);
        return finish(TOOL_OK);
    }
    sl_error error;
    if (sl_kernels_check(&error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    return finish(command_main(&starling_command, argc, argv));
}

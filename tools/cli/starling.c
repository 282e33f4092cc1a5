/* starling.c - the command's main. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/tool.h"
#include "starling/kernels.h"

/* A command that wrote its output nowhere has not worked. */
static int finish(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    complain("cannot write to standard output");
    return code == TOOL_OK ? TOOL_FAILED : code;
}

/* ---- signals while libraries load ----
 *
 * libfabric loads libraries whose constructors catch signals. Then a crash looks like an exit, and
 * a request to end may hang: a handler calls exit() while OpenBLAS starts threads. So such requests
 * are blocked before any constructor runs, and main restores handlers and mask. */

static unsigned long inherited_mask; /* as the kernel has it */

/* Nothing is initialized yet: a plain system call, and no sanitizer. */
__attribute__((no_sanitize("address", "undefined", "thread"))) static void hold_signals(void) {
    const unsigned long stopping =
        1ul << (SIGINT - 1) | 1ul << (SIGTERM - 1) | 1ul << (SIGHUP - 1) | 1ul << (SIGNAL_END - 1);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &stopping, &inherited_mask, sizeof stopping);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const before_constructors)(void) = hold_signals;

/* What is ignored stays so. */
static void restore_signals(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS,  SIGILL, SIGABRT,
                                  SIGINT,  SIGTERM, SIGHUP, SIGNAL_END};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now;
        sigaction(numbers[i], NULL, &now);
        if (now.sa_handler != SIG_IGN)
            signal(numbers[i], SIG_DFL);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &inherited_mask, NULL, sizeof inherited_mask);
}

/* ---- limited address space (ulimit -v, ulimit -d) ----
 *
 * Each thread of OpenBLAS maps 128 MiB, which count as data, too. A thread that cannot have them
 * tries for ever, and the library's exit handler waits for it. */

/* Returns the lower of both limits, and the option of ulimit that sets it; 0: none. */
static size_t address_space_limit(const char **option) {
    static const struct {
        int resource;
        const char *option;
    } limits[] = {{RLIMIT_AS, "ulimit -v"}, {RLIMIT_DATA, "ulimit -d"}};
    rlim_t lowest = RLIM_INFINITY;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].resource, &limit) == 0 && limit.rlim_cur < lowest) {
            lowest = limit.rlim_cur;
            *option = limits[i].option;
        }
    }
    return lowest == RLIM_INFINITY ? 0 : (size_t)lowest;
}

/* For the program, and for each thread that OpenBLAS has started before main. */
static size_t address_space_needed(void) {
    const size_t program_bytes = 64u << 20, thread_bytes = 136u << 20;
    size_t threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return program_bytes + thread_bytes;
    for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks))
        threads += task->d_name[0] != '.';
    closedir(tasks);
    return program_bytes + threads * thread_bytes;
}

/* Ends without exit handlers where these may wait for ever. */
static int leave(int code) {
    code = finish(code);
    const char *option;
    if (address_space_limit(&option) > 0)
        _exit(code);
    return code;
}

int main(int argc, char **argv) {
    restore_signals();
    /* Of agents' streams, of which a GPU runs eight at a time by default: before CUDA is opened. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("starling %s (protocol %u)\n", sl_version(), SL_PROTOCOL_VERSION);
        return leave(TOOL_OK);
    }
    const char *option = "";
    size_t limit = address_space_limit(&option), needed = address_space_needed();
    if (argc > 2 && limit > 0 && limit < needed) {
        complain("the limit on address space (%s) is %zu MB; at least %zu MB are needed, of "
                 "which OpenBLAS takes 136 MB for each of its threads (OPENBLAS_NUM_THREADS)",
                 option, limit >> 20, needed >> 20);
        return leave(TOOL_USAGE);
    }
    sl_error error;
    if (sl_kernels_check(&error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    return leave(command_main(&starling_command, argc, argv));
}

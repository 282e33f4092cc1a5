/* browser.c - see browser.h. xdg-open is what desktops have; it returns at once, or stays as long
 * as the browser does, and is not waited for. */
#include "cli/browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include "cli/complain.h"

void browser_open(const char *address) {
    char *const words[] = {"xdg-open", (char *)address, NULL};
    posix_spawn_file_actions_t quiet;
    pid_t child;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed = posix_spawnp(&child, words[0], &quiet, NULL, words, environ);
    posix_spawn_file_actions_destroy(&quiet);
    if (failed != 0)
        complain("warning: --open: xdg-open cannot be started (%s); open %s yourself",
                 strerror(failed), address);
}

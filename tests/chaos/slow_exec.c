/* slow_exec.c - preloaded into `starling run`: new processes take their time to become agents, as
 * on a busy machine. */
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

int execv(const char *path, char *const arguments[]) {
    struct timespec left = {.tv_nsec = 300000000};
    while (nanosleep(&left, &left) != 0)
        ;
    int (*next)(const char *, char *const[]);
    *(void **)&next = dlsym(RTLD_NEXT, "execv");
    return next(path, arguments);
}

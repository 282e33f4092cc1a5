/* seeds.c - runs one seed after the other, and says how to repeat one that fails; see seeds.h. */
#include "seeds.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "virtual.h"

static uint64_t seed_now;
static const char *program; /* NULL: it runs no seeds */

/* ---- what is counted ---- */

enum { TALLIES_MAX = 16 };
static struct tally {
    const char *what; /* NULL: free */
    uint64_t count;
    double longest_s; /* 0: it is counted */
} tallies[TALLIES_MAX];

static struct tally *tally_of(const char *what) {
    struct tally *t = tallies;
    while (t->what != NULL && strcmp(t->what, what) != 0)
        if (++t == tallies + TALLIES_MAX)
            world_fail("more than %d things are counted", TALLIES_MAX);
    t->what = what;
    return t;
}

void seeds_count(const char *what, uint64_t more) {
    tally_of(what)->count += more;
}

void seeds_time(const char *what, double seconds) {
    struct tally *t = tally_of(what);
    if (seconds > t->longest_s)
        t->longest_s = seconds;
}

static void tell_tallies(uint64_t seeds) {
    printf("%llu seeds", (unsigned long long)seeds);
    for (const struct tally *t = tallies; t < tallies + TALLIES_MAX && t->what != NULL; t++)
        if (t->longest_s > 0)
            printf("; %s within %.2f s", t->what, t->longest_s);
        else
            printf("; %s: %llu", t->what, (unsigned long long)t->count);
    putchar('\n');
}

/* ---- a seed ---- */

static void tell_replay(void) {
    char text[256];
    if (program == NULL)
        return;
    const int bytes =
        snprintf(text, sizeof text, "replay: %s -v %llu\n", program, (unsigned long long)seed_now);
    (void)!write(STDERR_FILENO, text, (size_t)bytes);
}

void world_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (program != NULL)
        fprintf(stderr, "seed %llu: ", (unsigned long long)seed_now);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    tell_replay();
    fflush(stdout);
    _exit(1);
}

static void on_crash(int number) {
    tell_replay();
    signal(number, SIG_DFL);
    raise(number);
}

static void run_one(uint64_t seed, bool verbose, uint64_t (*run)(uint64_t seed, bool verbose)) {
    seed_now = seed;
    const uint64_t hash = run(seed, verbose);
    if (seed % 16 == 0 && run(seed, false) != hash)
        world_fail("the same seed is another run");
}

int seeds_main(int count, char **arguments, uint64_t quick,
               uint64_t (*run)(uint64_t seed, bool verbose)) {
    const bool verbose = count > 1 && strcmp(arguments[1], "-v") == 0;
    program = arguments[0];
    count -= verbose;
    arguments += verbose;
    if (count < 2 || count > 3) {
        fprintf(stderr, "usage: %s [-v] SEED [COUNT]\n", program);
        return 2;
    }
    const bool is_quick = getenv("STARLING_QUICK") != NULL;
    const uint64_t first = strtoull(arguments[1], NULL, 10),
                   asked = count > 2 ? strtoull(arguments[2], NULL, 10) : 1,
                   number = is_quick && asked > quick ? quick : asked;
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    for (uint64_t seed = first; seed < first + number; seed++)
        run_one(seed, verbose, run);
    tell_tallies(number);
    return 0;
}

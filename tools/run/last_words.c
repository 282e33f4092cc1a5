/* last_words.c - see last_words.h. */
#include "run/last_words.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char ended[] = "\"ended\": \"";

typedef struct last_word {
    int number;
    bool caught;
    struct sigaction before;
    char head[RUN_HEAD_BYTES];
    char *time; /* in head; NULL: it has none */
} last_word;

static last_word words[] = {
    {.number = SIGABRT}, {.number = SIGSEGV}, {.number = SIGBUS},
    {.number = SIGFPE},  {.number = SIGILL},
};
enum { WORDS = sizeof words / sizeof *words };
static volatile sig_atomic_t file = -1;

static void put_number(char *out, long value, size_t digits) {
    while (digits-- > 0) {
        out[digits] = (char)('0' + value % 10);
        value /= 10;
    }
}

/* gmtime_r is not for signal handlers. Days count from the first of March of the year 0, so that
 * a leap day is the last of its year; 400 years have 146097 days. */
static void put_time(char *out, long seconds) {
    const long days = seconds / 86400 + 719468, rest = seconds % 86400;
    const long of_era = days % 146097;
    const long year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const long of_year = of_era - (365 * year + year / 4 - year / 100);
    const long month = (5 * of_year + 2) / 153; /* 0: March */
    put_number(out, days / 146097 * 400 + year + (month >= 10), 4);
    put_number(out + 5, month < 10 ? month + 3 : month - 9, 2);
    put_number(out + 8, of_year - (153 * month + 2) / 5 + 1, 2);
    put_number(out + 11, rest / 3600, 2);
    put_number(out + 14, rest / 60 % 60, 2);
    put_number(out + 17, rest % 60, 2);
}

/* Its signal is blocked until it returns. */
static void on_crash(int number) {
    for (size_t i = 0; i < WORDS; i++) {
        last_word *w = &words[i];
        if (w->number != number)
            continue;
        if (w->time != NULL)
            put_time(w->time, (long)time(NULL));
        if (file >= 0 && pwrite((int)file, w->head, sizeof w->head, 0) == sizeof w->head)
            fsync((int)file);
        sigaction(number, &w->before, NULL);
    }
    raise(number);
}

void last_words_prepare(int fd, bool (*compose)(char head[RUN_HEAD_BYTES], const char *why)) {
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    char why[128];
    sigemptyset(&action.sa_mask);
    last_words_forget((int)file);
    for (size_t i = 0; i < WORDS; i++) {
        last_word *w = &words[i];
        snprintf(why, sizeof why, "killed by signal %d (%s)", w->number, strsignal(w->number));
        w->caught = compose(w->head, why);
        if (!w->caught)
            continue;
        char *at = memmem(w->head, sizeof w->head, ended, sizeof ended - 1);
        w->time = at != NULL ? at + sizeof ended - 1 : NULL;
        sigaction(w->number, &action, &w->before);
    }
    file = fd;
}

void last_words_forget(int fd) {
    if (fd < 0 || fd != (int)file)
        return;
    file = -1;
    for (size_t i = 0; i < WORDS; i++)
        if (words[i].caught)
            sigaction(words[i].number, &words[i].before, NULL);
}

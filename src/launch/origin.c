/* origin.c - see origin.h. */
#include "launch/origin.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

enum { FILE_MAX = 1 << 17, PATH_MAX_BYTES = 4096, NUMBER_MAX = 16, PARENTS_MAX = 4 };

/* A file of /proc, with an end mark; its length. */
static size_t read_proc(char *text, size_t room, const char *pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    FILE *file = fopen(path, "rbe");
    const size_t length = file != NULL ? fread(text, 1, room - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[length] = '\0';
    return length;
}

/* Of /proc/PID/stat the field with this number, from 1; behind the name, which may hold anything.
 */
static unsigned long long stat_field(const char *pid, int field) {
    char text[1024];
    read_proc(text, sizeof text, pid, "stat");
    char *save = NULL, *end = strrchr(text, ')');
    char *word = end != NULL ? strtok_r(end + 1, " ", &save) : NULL;
    for (int at = 3; word != NULL && at < field; at++)
        word = strtok_r(NULL, " ", &save);
    return word != NULL ? strtoull(word, NULL, 10) : 0;
}

static bool is_a_child_of_pythons(const char *command, size_t length) {
    return memmem(command, length, "multiprocessing.", strlen("multiprocessing.")) != NULL;
}

/* Children of Python's multiprocessing have command lines of its own, which differ. */
static size_t find_command(char *text, char pid[24]) {
    strcpy(pid, "self");
    size_t length = read_proc(text, FILE_MAX, pid, "cmdline");
    for (int i = 0; i < PARENTS_MAX && is_a_child_of_pythons(text, length); i++) {
        snprintf(pid, 24, "%llu", stat_field(pid, 4));
        length = read_proc(text, FILE_MAX, pid, "cmdline");
    }
    return length;
}

/* Is it the whole number `rank`, no part of another one? */
static bool is_rank(const char *digits, size_t length, uint32_t rank) {
    char number[NUMBER_MAX];
    return (size_t)snprintf(number, sizeof number, "%u", rank) == length &&
           memcmp(number, digits, length) == 0;
}

/* Of a text in which ranks are left out. */
static uint64_t hash_but_ranks(uint64_t hash, const char *text, size_t length, uint32_t rank,
                               uint32_t local_rank) {
    for (size_t i = 0; i < length;) {
        size_t digits = 0;
        while (i + digits < length && (isdigit((unsigned char)text[i + digits]) ||
                                       (digits > 0 && text[i + digits] == '.')))
            digits++;
        const size_t step = digits > 0 ? digits : 1;
        const bool is = is_rank(text + i, digits, rank) || is_rank(text + i, digits, local_rank);
        hash = is ? sl_hash(hash, "{rank}", strlen("{rank}")) : sl_hash(hash, text + i, step);
        i += step;
    }
    return hash;
}

/* Names that say which of its job's processes one is, or what it has on its host. */
static bool is_of_one_process(const char *variable) {
    static const char *const parts[] = {"RANK", "PROC",   "INDEX", "DEVICE", "GPU",    "LOCAL",
                                        "SLOT", "THREAD", "PWD",   "SHLVL",  "LISTEN", "PMI",
                                        "TMP",  "PID",    "CPU",   "SSH",    "XDG",    "TMUX",
                                        "TTY",  "WINDOW", "STY",   "SESSION"};
    const char *equals = strchr(variable, '=');
    const size_t length = equals != NULL ? (size_t)(equals - variable) : strlen(variable);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (memmem(variable, length, parts[i], strlen(parts[i])) != NULL)
            return true;
    return variable[0] == '_';
}

/* In any order. */
static uint64_t hash_variables(char *text, const char *pid) {
    const size_t length = read_proc(text, FILE_MAX, pid, "environ");
    uint64_t sum = 0;
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (!is_of_one_process(text + at))
            sum += sl_hash(SL_HASH_START, text + at, strlen(text + at));
    return sum;
}

bool sl_origin_find(sl_origin *out, uint32_t rank, uint32_t local_rank, uint64_t experiment) {
    char *text = malloc(FILE_MAX), folder[PATH_MAX_BYTES] = "", pid[24];
    *out = (sl_origin){0};
    if (text == NULL)
        return false;
    if (getcwd(folder, sizeof folder) == NULL)
        folder[0] = '\0';
    const size_t length = find_command(text, pid), folder_length = strlen(folder);
    const uint64_t start = sl_hash_word(sl_hash_word(SL_HASH_START, experiment), getuid());
    out->command = sl_hash(sl_hash(start, text, length), folder, folder_length);
    out->place = hash_but_ranks(hash_but_ranks(start, text, length, rank, local_rank), folder,
                                folder_length, rank, local_rank);
    out->variables = hash_variables(text, pid);
    const size_t id = read_proc(text, FILE_MAX, "sys", "kernel/random/boot_id");
    out->host = id > 0 ? sl_hash(SL_HASH_START, text, id) : 0;
    free(text);
    return true;
}

bool sl_origin_agrees(const sl_origin *a, const sl_origin *b) {
    const bool same_host = a->host != 0 && a->host == b->host;
    return (a->command == b->command || a->place == b->place) &&
           (!same_host || a->variables == b->variables);
}

double sl_origin_age_s(void) {
    struct timespec now;
    const double ticks = (double)sysconf(_SC_CLK_TCK);
    const double began = (double)stat_field("self", 22) / ticks;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - began;
}

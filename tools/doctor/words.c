/* words.c - see words.h. */
#include "doctor/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "starling/types.h"
#include "starling/version.h"

static const char form[] = "starling doctor 1 rank %s time %" PRIu64 " protocol %u version %s\n";

uint64_t words_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

size_t words_write(char out[WORDS_MAX], bool has_rank, uint32_t rank) {
    char name[16] = "-";
    if (has_rank)
        snprintf(name, sizeof name, "%u", rank);
    return (size_t)snprintf(out, WORDS_MAX, form, name, words_now_us(), SL_PROTOCOL_VERSION,
                            sl_version());
}

static bool read_rank(uint32_t *out, const char *name) {
    const unsigned long long rank = strtoull(name, NULL, 10);
    *out = (uint32_t)rank;
    return strchr(name, '-') == NULL && rank < SL_NODES_MAX;
}

bool words_read(words *out, const char *text) {
    char name[11];
    words w = {0};
    int end = 0;
    const int read = sscanf(text,
                            "starling doctor 1 rank %10[-0-9] time %17" SCNu64
                            " protocol %5u version %23[0-9a-z.~+-]%n",
                            name, &w.time_us, &w.protocol, w.release, &end);
    if (read != 4 || text[end] != '\0')
        return false;
    w.has_rank = strcmp(name, "-") != 0;
    if (w.has_rank && !read_rank(&w.rank, name))
        return false;
    *out = w;
    return true;
}

/* words.h - what two doctors say to each other: who they are, and what their clocks show. Nothing
 * is trusted, and nothing more is told:
 *
 *     starling doctor 1 rank 3 time 1790000000123456 protocol 14 version 0.2.0\n
 *
 * Who has called says it first. Then either sends LARGE_BYTES of zeros, the caller first, so that
 * packets of full length pass; or the caller sends one, and leaves. Ranks are numbers, or "-" of
 * who has none; the time is in microseconds since 1970. */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORDS_MAX = 128, RELEASE_MAX = 24, LARGE_BYTES = 1 << 16 };

typedef struct words {
    bool has_rank;
    uint32_t rank;
    uint64_t time_us;
    unsigned protocol;
    char release[RELEASE_MAX];
} words;

/* This process's, now: how many bytes. */
size_t words_write(char out[WORDS_MAX], bool has_rank, uint32_t rank);
/* False: it is no line of a doctor. text: ends with 0, without the line's end. */
bool words_read(words *out, const char *text);
uint64_t words_now_us(void);

#endif

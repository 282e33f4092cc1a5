/* suggest.c - see suggest.h. */
#include "starling/suggest.h"

#include <string.h>

enum { WORD_MAX = 64 };

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein distance, one row at a time. */
static size_t edit_distance(const char *a, const char *b) {
    size_t row[WORD_MAX + 1], length = strlen(b);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t above = row[j + 1];
            row[j + 1] = smallest(row[j] + 1, above + 1, diagonal + (a[i] != b[j]));
            diagonal = above;
        }
    }
    return row[length];
}

const char *sl_suggest(const char *word, const char *const *known, size_t count) {
    const char *nearest = NULL;
    size_t limit = strlen(word) / 2 + 1; /* more than half of it wrong is another word */
    for (size_t i = 0; i < count && strlen(word) <= WORD_MAX; i++) {
        if (strlen(known[i]) > WORD_MAX)
            continue;
        size_t distance = edit_distance(word, known[i]);
        if (distance < limit) {
            limit = distance;
            nearest = known[i];
        }
    }
    return nearest;
}

/* words.h - space-separated lists of words. */
#ifndef SL_WORDS_H
#define SL_WORDS_H

#include <stdbool.h>
#include <string.h>

/* Is `word` in `list`, whose words are separated by single spaces? NULL: an empty list. */
static inline bool sl_has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL && (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

#endif

/* suggest.h - the nearest known word, for error messages. */
#ifndef SL_SUGGEST_H
#define SL_SUGGEST_H

#include <stddef.h>

/* The word of `known` nearest to `word` by edit distance; NULL when none is near enough to be
 * meant. */
const char *sl_suggest(const char *word, const char *const *known, size_t count);

#endif

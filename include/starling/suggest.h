/* suggest.h - finds the known word that a user may have meant, for error messages. */
#ifndef STARLING_SUGGEST_H
#define STARLING_SUGGEST_H

#include <stddef.h>

#include "starling/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The word of `known` nearest to `word` by edit distance; NULL if none is near. */
SL_API const char *sl_suggest(const char *word, const char *const *known, size_t count);

#ifdef __cplusplus
}
#endif
#endif

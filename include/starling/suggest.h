/* suggest.h - finds the known words that a user may have meant, for error messages. */
#ifndef STARLING_SUGGEST_H
#define STARLING_SUGGEST_H

#include <stddef.h>

#include "starling/api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SL_SUGGESTIONS_MAX = 4 };

/* The words of `known` that `word` may have meant, the likeliest first; returns how many. Case and
 * hyphens count for nothing ("topk"). A word may be another name of it ("d2"), a part of it
 * ("choco"), the initials of its parts ("gt"), or be misspelled: the first of these that finds any
 * decides. */
SL_API size_t sl_suggestions(const char *near[SL_SUGGESTIONS_MAX], const char *word,
                             const char *const *known, size_t count);
/* The first of them; NULL: none is near. */
SL_API const char *sl_suggest(const char *word, const char *const *known, size_t count);
/* The end of a refusal: `; did you mean "a" or "b"?`. `otherwise`, which lists all that is allowed,
 * stands in its place where none is near, and before it where it is short. */
SL_API void sl_suggest_text(char *out, size_t room, const char *word, const char *const *known,
                            size_t count, const char *otherwise);

/* The name that Starling has for what is also called `word`, such as "learning_rate" for "lr";
 * else `word`. */
SL_API const char *sl_usual_name(const char *word);

#ifdef __cplusplus
}
#endif
#endif

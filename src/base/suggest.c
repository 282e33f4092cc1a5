/* suggest.c - see suggest.h. */
#include "starling/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 64, PART_LETTERS_MIN = 3, LIST_BYTES_SHORT = 100 };

/* Names that papers, other programs and people use. */
static const struct {
    const char *other, *usual;
} other_names[] = {
    {"d2", "exact-diffusion"},
    {"diging", "gradient-tracking"},
    {"dsgd", "d-psgd"},
    {"push-sum", "sgp"},
    {"sgd-push", "sgp"},
    {"chain", "path"},
    {"line", "path"},
    {"cycle", "ring"},
    {"clique", "complete"},
    {"full", "complete"},
    {"fully-connected", "complete"},
    {"small-world", "watts-strogatz"},
    {"metropolis-hastings", "metropolis"},
    {"mh", "metropolis"},
    {"fp16", "float16"},
    {"half", "float16"},
    {"bf16", "bfloat16"},
    {"fp8", "float8"},
    {"none", "identity"},
    {"logistic-regression", "softmax"},
    {"logreg", "softmax"},
    {"non-iid", "dirichlet"},
    {"lr", "learning_rate"},
    {"batch-size", "batch"},
    {"bs", "batch"},
    {"wd", "weight_decay"},
};

static bool separates(char c) {
    return c == '-' || c == '_' || c == '.' || c == ' ';
}

/* How many letters of `text` spell all of `word`, case and what separates parts aside; 0: they do
 * not. */
static size_t spells(const char *text, const char *word) {
    const char *from = text;
    for (;; text++, word++) {
        while (separates(*text))
            text++;
        while (separates(*word))
            word++;
        if (*word == '\0')
            return (size_t)(text - from);
        if (tolower((unsigned char)*text) != tolower((unsigned char)*word))
            return 0;
    }
}

static bool is_spelled(const char *known, const char *word) {
    const size_t length = spells(known, word);
    return length > 0 && known[length] == '\0';
}

const char *sl_usual_name(const char *word) {
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (is_spelled(other_names[i].other, word))
            return other_names[i].usual;
    return word;
}

static bool is_usual(const char *known, const char *word) {
    const char *usual = sl_usual_name(word);
    return usual != word && strcmp(known, usual) == 0;
}

/* Does a part of the name begin with it? */
static bool is_part(const char *known, const char *word) {
    bool begins = true;
    size_t letters = 0;
    for (const char *at = word; *at != '\0'; at++)
        letters += !separates(*at);
    for (const char *at = known; letters >= PART_LETTERS_MIN && *at != '\0'; at++) {
        if (begins && spells(at, word) > 0)
            return true;
        begins = separates(*at);
    }
    return false;
}

static bool are_initials(const char *known, const char *word) {
    bool begins = true;
    size_t parts = 0;
    for (; *known != '\0'; known++) {
        if (begins && tolower((unsigned char)*known) != tolower((unsigned char)word[parts++]))
            return false;
        begins = separates(*known);
    }
    return parts > 1 && word[parts] == '\0';
}

/* ---- misspelled ---- */

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

static const char *nearest(const char *word, const char *const *known, size_t count) {
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

/* ---- all together ---- */

size_t sl_suggestions(const char *near[SL_SUGGESTIONS_MAX], const char *word,
                      const char *const *known, size_t count) {
    static bool (*const rules[])(const char *known, const char *word) = {is_spelled, is_usual,
                                                                         is_part, are_initials};
    size_t found = 0;
    for (size_t r = 0; r < sizeof rules / sizeof *rules && found == 0; r++)
        for (size_t i = 0; i < count && found < SL_SUGGESTIONS_MAX; i++)
            if (rules[r](known[i], word))
                near[found++] = known[i];
    if (found == 0 && (near[0] = nearest(word, known, count)) != NULL)
        found = 1;
    return found;
}

const char *sl_suggest(const char *word, const char *const *known, size_t count) {
    const char *near[SL_SUGGESTIONS_MAX];
    return sl_suggestions(near, word, known, count) > 0 ? near[0] : NULL;
}

void sl_suggest_text(char *out, size_t room, const char *word, const char *const *known,
                     size_t count, const char *otherwise) {
    const char *near[SL_SUGGESTIONS_MAX];
    const size_t found = sl_suggestions(near, word, known, count);
    const bool lists = found == 0 || strlen(otherwise) < LIST_BYTES_SHORT;
    snprintf(out, room, "%s%s", lists ? otherwise : "", found > 0 ? "; did you mean " : "");
    for (size_t i = 0; i < found; i++) {
        const size_t at = strlen(out);
        snprintf(out + at, room - at, "%s\"%s\"%s",
                 i == 0          ? ""
                 : i + 1 < found ? ", "
                                 : " or ",
                 near[i], i + 1 == found ? "?" : "");
    }
}

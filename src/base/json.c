/* json.c - see json.h. */
#include "base/json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"

int sl_json_parse(json_t **out, const char *text, size_t bytes, size_t flags, const char *where,
                  int code, sl_error *error) {
    json_error_t problem;
    *out = json_loadb(text, bytes, flags | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (*out != NULL)
        return 0;
    if (problem.text[0] == '\0' || json_error_code(&problem) == json_error_out_of_memory)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    return sl_fail(error, code, "%s:%d:%d: %s", where, problem.line, problem.column, problem.text);
}

static void lose(json_t **tree) {
    json_decref(*tree);
    *tree = NULL;
}

void sl_json_set(json_t **object, const char *key, json_t *value) {
    if (json_object_set_new(*object, key, value) != 0)
        lose(object);
}

void sl_json_append(json_t **array, json_t *value) {
    if (json_array_append_new(*array, value) != 0)
        lose(array);
}

/* ---- text ---- */

char *sl_json_number(double number) {
    json_t *value = json_real(number);
    char *text = NULL;
    for (size_t digits = 15; digits <= 17; digits++) {
        free(text);
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        if (text == NULL || strtod(text, NULL) == number)
            break;
    }
    json_decref(value);
    return text;
}

/* A string of JSON, with its quotes. jansson escapes control characters of ASCII; terminals obey
 * others as well. */
static void put_string(FILE *out, const char *text, size_t length) {
    for (size_t at = 0, taken; at < length; at += taken) {
        uint32_t character;
        taken = sl_text_obeyed(&character, text + at, length - at);
        if (taken > 0)
            fprintf(out, "\\u%04x", character);
        else
            fputc(text[at], out);
        taken += taken == 0;
    }
}

/* Copies `text` and writes each of its 17-digit reals with as few digits as it needs; false when
 * memory ran out, also in whoever wrote the text. */
static bool shorten(FILE *out, const char *text) {
    while (*text != '\0') {
        size_t length = 1;
        char *number = NULL;
        if (*text == '"') {
            while (text[length] != '"' && text[length] != '\0')
                length += text[length] == '\\' && text[length + 1] != '\0' ? 2 : 1;
            if (text[length] == '\0')
                return false;
            length++;
        } else if (strchr("-0123456789", *text) != NULL) {
            length = strspn(text, "+-.0123456789eE");
            if (strcspn(text, ".eE") < length) {
                number = sl_json_number(strtod(text, NULL));
                if (number == NULL)
                    return false;
            }
        }
        if (*text == '"')
            put_string(out, text, length);
        else
            fwrite(number ? number : text, 1, number ? strlen(number) : length, out);
        free(number);
        text += length;
    }
    return true;
}

static char *shortened(const json_t *root, size_t flags) {
    char *text = json_dumps(root, flags | JSON_REAL_PRECISION(17)), *mixed = NULL;
    size_t bytes;
    FILE *out = text != NULL ? open_memstream(&mixed, &bytes) : NULL;
    if (out != NULL) {
        bool good = shorten(out, text);
        if (ferror(out) | fclose(out) | !good) {
            free(mixed);
            mixed = NULL;
        }
    }
    free(text);
    return mixed;
}

/* Where memory runs out, jansson may write other text, or read another value, and not say so. */
char *sl_json_text(const json_t *root, size_t flags) {
    char *text = shortened(root, flags);
    json_t *back = text != NULL ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    const bool equal = json_equal((json_t *)root, back);
    json_decref(back);
    if (equal)
        return text;
    free(text);
    return NULL;
}

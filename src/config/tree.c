/* tree.c - see tree.h. */
#include "config/tree.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_MAX = 64 };

/* The first part of a path into `part`; the rest, or NULL when it was the last. */
static const char *split(const char *path, char part[PART_MAX]) {
    size_t length = strcspn(path, ".");
    size_t kept = length < PART_MAX - 1 ? length : PART_MAX - 1;
    memcpy(part, path, kept);
    part[kept] = '\0';
    return path[length] == '.' ? path + length + 1 : NULL;
}

json_t *sl_tree_get(json_t *root, const char *path) {
    while (root != NULL && path != NULL) {
        char part[PART_MAX];
        path = split(path, part);
        root = json_object_get(root, part);
    }
    return root;
}

int sl_tree_set(json_t *root, const char *path, json_t *value) {
    for (;;) {
        char part[PART_MAX];
        path = split(path, part);
        if (path == NULL)
            return json_object_set_new(root, part, value);
        if (json_object_get(root, part) == NULL)
            json_object_set_new(root, part, json_object());
        root = json_object_get(root, part);
        if (!json_is_object(root)) {
            json_decref(value);
            return -1;
        }
    }
}

/* The shortest text that reads back as this number; malloc'ed. */
static char *number_text(double number) {
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

/* Writes `text`, whose reals have 17 digits, with each in as few digits as it needs. */
static void shorten(FILE *out, const char *text) {
    while (*text != '\0') {
        size_t length = 1;
        if (*text == '"') {
            while (text[length] != '"')
                length += text[length] == '\\' ? 2 : 1;
            length++;
        } else if (strchr("-0123456789", *text) != NULL) {
            length = strspn(text, "+-.0123456789eE");
            char *number = strcspn(text, ".eE") < length ? number_text(strtod(text, NULL)) : NULL;
            if (number != NULL) {
                fputs(number, out);
                text += length;
                length = 0;
            }
            free(number);
        }
        fwrite(text, 1, length, out);
        text += length;
    }
}

char *sl_tree_text(json_t *root, size_t flags) {
    char *text = json_dumps(root, flags | JSON_REAL_PRECISION(15)), *mixed = NULL;
    json_t *back = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    bool equal = back != NULL && json_equal(root, back);
    json_decref(back);
    if (equal)
        return text;
    free(text);
    text = json_dumps(root, flags | JSON_REAL_PRECISION(17));
    size_t bytes;
    FILE *out = text != NULL ? open_memstream(&mixed, &bytes) : NULL;
    if (out != NULL) {
        shorten(out, text);
        fclose(out);
    }
    free(text);
    return mixed;
}

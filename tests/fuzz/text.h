/* text.h - an input as text, for the parsers of text. */
#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The input with a zero behind it, to be freed; NULL when memory is short. */
static inline char *text_of(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (text != NULL) {
        memcpy(text, data, size);
        text[size] = '\0';
    }
    return text;
}

/* Graphs may have a million nodes. That is slow, not wrong: inputs with a whole number of more than
 * three digits are left out. */
static inline bool has_number_above(const char *text, size_t digits_max) {
    size_t digits = 0;
    bool fraction = false;
    for (; *text != '\0'; text++) {
        bool digit = *text >= '0' && *text <= '9';
        fraction = *text == '.' || (fraction && digit);
        digits = digit && !fraction ? digits + 1 : 0;
        if (digits > digits_max)
            return true;
    }
    return false;
}

static inline bool has_large_number(const char *text) {
    return has_number_above(text, 3);
}

#endif

/* show.c - text from outside, as a terminal or a log may have it; see starling/text.h. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "starling/text.h"

static const char left_out[] = "...";
enum { LEFT_OUT = sizeof left_out - 1, ESCAPE_BYTES = 4 }; /* "\x1b" */

/* What a terminal obeys and does not print, or what turns the order of others around. */
static bool is_obeyed(uint32_t character) {
    return character < 0x20 || (character >= 0x7F && character < 0xA0) ||
           (character >= 0x2028 && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069);
}

/* Bytes of the character that a text begins with; 0: it is not UTF-8. */
static size_t read_character(uint32_t *out, const uint8_t *text, size_t bytes) {
    static const struct {
        uint8_t mask, mark;
        uint32_t least; /* a smaller one has a shorter form */
    } forms[] = {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    size_t more = 0;
    while (more < 4 && (text[0] & forms[more].mask) != forms[more].mark)
        more++;
    if (more == 4 || more >= bytes)
        return 0;
    uint32_t character = text[0] & (uint8_t)~forms[more].mask;
    for (size_t i = 1; i <= more; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        character = character << 6 | (text[i] & 0x3F);
    }
    const bool is_one = character >= forms[more].least && character <= 0x10FFFF &&
                        (character < 0xD800 || character > 0xDFFF);
    *out = character;
    return is_one ? more + 1 : 0;
}

size_t sl_text_obeyed(uint32_t *out, const char *text, size_t bytes) {
    const size_t taken = read_character(out, (const uint8_t *)text, bytes);
    return taken > 0 && is_obeyed(*out) ? taken : 0;
}

/* One character, or one escaped byte. */
typedef struct piece {
    size_t taken, shown; /* bytes of the text, and of what is shown of them */
} piece;

static piece next_piece(const char *text, size_t bytes) {
    uint32_t character;
    const size_t taken = read_character(&character, (const uint8_t *)text, bytes);
    return taken > 0 && !is_obeyed(character) ? (piece){taken, taken} : (piece){1, ESCAPE_BYTES};
}

static size_t shown_bytes(const char *text, size_t bytes) {
    size_t sum = 0;
    for (piece p; bytes > 0; text += p.taken, bytes -= p.taken) {
        p = next_piece(text, bytes);
        sum += p.shown;
    }
    return sum;
}

static char *put(char *out, const char *text, piece p) {
    static const char digits[] = "0123456789abcdef";
    const uint8_t byte = (uint8_t)*text;
    if (p.shown == p.taken)
        return (char *)memcpy(out, text, p.taken) + p.taken;
    *out++ = '\\';
    *out++ = 'x';
    *out++ = digits[byte >> 4];
    *out++ = digits[byte & 15];
    return out;
}

char *sl_text_show(char *out, size_t room, const char *text, size_t bytes) {
    assert(room > LEFT_OUT);
    const size_t all = shown_bytes(text, bytes);
    const size_t head = all < room ? all : (room - LEFT_OUT) / 2;
    const size_t tail = all < room ? 0 : room - 1 - LEFT_OUT - head;
    char *end = out;
    bool is_cut = false;
    size_t seen = 0;
    for (piece p; bytes > 0; text += p.taken, bytes -= p.taken, seen += p.shown) {
        p = next_piece(text, bytes);
        const bool stays = seen + p.shown <= head || all - seen <= tail;
        if (stays)
            end = put(end, text, p);
        else if (!is_cut)
            end = mempcpy(end, left_out, LEFT_OUT);
        is_cut = is_cut || !stays;
    }
    *end = '\0';
    return out;
}

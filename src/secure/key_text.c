/* key_text.c - see key_text.h. */
#include "secure/key_text.h"

#include <string.h>

static const char begin[] = "starling run key 1 ";
enum { DIGITS_AT = sizeof begin - 1 };
_Static_assert(DIGITS_AT + 2 * SL_SECRET_BYTES + 1 == SL_RUN_KEY_FILE_BYTES, "a line");

static const char digits[] = "0123456789abcdef";

void sl_hex_print(const uint8_t *bytes, size_t count, char *out) {
    for (size_t i = 0; i < count; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15u];
    }
    *out = '\0';
}

/* 0 to 15; above: no digit. */
static unsigned value_of(char c) {
    const unsigned number = (unsigned)(uint8_t)c - '0', letter = (unsigned)(uint8_t)c - 'a';
    return number < 10 ? number : letter < 6 ? letter + 10 : 16;
}

bool sl_hex_parse(const char *text, size_t count, uint8_t *out) {
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const unsigned high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
        out[i] = (uint8_t)(high << 4 | (low & 15u));
        wrong |= high | low;
    }
    return wrong < 16;
}

void sl_run_key_print(const uint8_t secret[SL_SECRET_BYTES], char out[SL_RUN_KEY_FILE_BYTES + 1]) {
    memcpy(out, begin, DIGITS_AT);
    sl_hex_print(secret, SL_SECRET_BYTES, out + DIGITS_AT);
    out[SL_RUN_KEY_FILE_BYTES - 1] = '\n';
    out[SL_RUN_KEY_FILE_BYTES] = '\0';
}

bool sl_run_key_parse(const char *text, size_t bytes, uint8_t secret[SL_SECRET_BYTES]) {
    return bytes == SL_RUN_KEY_FILE_BYTES && memcmp(text, begin, DIGITS_AT) == 0 &&
           text[bytes - 1] == '\n' && sl_hex_parse(text + DIGITS_AT, SL_SECRET_BYTES, secret);
}

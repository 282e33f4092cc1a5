/* key_text.h - keys as text. */
#ifndef SL_KEY_TEXT_H
#define SL_KEY_TEXT_H

#include <stdbool.h>

#include "secure/secret.h"
#include "starling/keys.h"

/* Two lower-case digits a byte, and the end mark. */
void sl_hex_print(const uint8_t *bytes, size_t count, char *out);
/* Reads 2 * count digits; false: some are none. */
bool sl_hex_parse(const char *text, size_t count, uint8_t *out);

/* The text of a run key's file, and the end mark. */
void sl_run_key_print(const uint8_t secret[SL_SECRET_BYTES], char out[SL_RUN_KEY_FILE_BYTES + 1]);
/* False: it is none. */
bool sl_run_key_parse(const char *text, size_t bytes, uint8_t secret[SL_SECRET_BYTES]);

#endif

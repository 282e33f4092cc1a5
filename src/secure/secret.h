/* secret.h - 32 bytes that nobody else may see, in a page of their own. */
#ifndef SL_SECRET_H
#define SL_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SL_SECRET_BYTES = 32 };

/* NULL: out of memory. It is locked where that is allowed, and in no core dump. */
uint8_t *sl_secret_open(void);
/* Wipes it, and sets NULL. */
void sl_secret_close(uint8_t **secret);

/* HKDF-SHA256 with an empty salt: `count` bytes for this purpose, and for what `context` says.
 * False: OpenSSL refuses. */
bool sl_secret_derive(const uint8_t secret[SL_SECRET_BYTES], const char *purpose,
                      const void *context, size_t context_bytes, uint8_t *out, size_t count);

#endif

/* keys.h - files with which agents prove who they are.
 *
 * A run's key is one secret that all its agents share: a file of SL_RUN_KEY_FILE_BYTES. A node's
 * pair is an Ed25519 key, NAME.key, and a certificate that it signed itself, NAME.crt: the roster
 * holds the certificate's fingerprint, its SHA-256. Or a CA has signed it for that rank. Secret
 * files belong to who reads them, and nobody else may read them; else they are refused, as is a
 * symbolic link, and a file in a run folder. The cryptography is OpenSSL's.
 */
#ifndef STARLING_KEYS_H
#define STARLING_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SL_RUN_KEY_FILE_BYTES = 84,  /* "starling run key 1 ", 64 hexadecimal digits, a line's end */
    SL_FINGERPRINT_TEXT_MAX = 72 /* "sha256:", 64 hexadecimal digits, and the end mark */
};

/* Makes a run's key. SL_EFILE: the file is there already, or cannot be written. */
SL_API int sl_run_key_make(const char *path, sl_error *error);
/* The text of a new one, and the end mark: for a pipe. The caller wipes it. */
SL_API int sl_run_key_text(char out[SL_RUN_KEY_FILE_BYTES + 1], sl_error *error);
/* Makes NAME.key and NAME.crt, likewise. */
SL_API int sl_node_keys_make(const char *name, char fingerprint[SL_FINGERPRINT_TEXT_MAX],
                             sl_error *error);
/* Of a certificate's file, as rosters hold it. */
SL_API int sl_certificate_fingerprint(const char *path, char fingerprint[SL_FINGERPRINT_TEXT_MAX],
                                      sl_error *error);

/* What an agent proves itself with. Secrets are in memory that is not swapped where that is
 * allowed, is not in core dumps, and is wiped at the end. */
typedef struct sl_credentials sl_credentials;
/* A run's key from its file. SL_EFILE names the path and what is wrong with it. */
SL_API int sl_credentials_load_key(sl_credentials **out, const char *path, sl_error *error);
/* The same from the text of one, which the caller wipes. */
SL_API int sl_credentials_take_key(sl_credentials **out, const char *text, size_t bytes,
                                   sl_error *error);
/* A node's pair: NAME.key and NAME.crt, which must belong together. */
SL_API int sl_credentials_load_node(sl_credentials **out, const char *name, sl_error *error);
/* Of a node's pair: from now on a CA vouches for other nodes' certificates, beside what the roster
 * pins, and not for those on its lists. ca: a PEM file of one or more certificates of CAs; revoked:
 * one of one or more CRLs of theirs, or "". SL_EFILE names the key, the path and what is wrong; an
 * error, too, is a list that has ended. */
SL_API int sl_credentials_trust(sl_credentials *credentials, const char *ca, const char *revoked,
                                sl_error *error);
/* When the first of a CA's certificates ends, and the first of the lists, in seconds since 1970; 0:
 * there is none, or it does not end. */
typedef struct sl_authority_ends {
    int64_t ca_s, revoked_s;
} sl_authority_ends;
/* Reads both files as sl_credentials_trust does. */
SL_API int sl_authority_look(const char *ca, const char *revoked, sl_authority_ends *ends,
                             sl_error *error);
/* Would others take this pair's certificate for that rank's today, if they trust the same CA and
 * their roster pins what `pinned` says ("sha256:..."; "": nothing)? SL_EINVAL says why not. A run's
 * key has none, and is good. */
SL_API int sl_credentials_check(const sl_credentials *credentials, uint32_t rank,
                                const char *pinned, sl_error *error);
/* From when until when its certificate is valid, in seconds since 1970; zeros: it has none. */
SL_API void sl_credentials_dates(const sl_credentials *credentials, int64_t *from_s,
                                 int64_t *until_s);
SL_API void sl_credentials_close(sl_credentials **credentials);

#ifdef __cplusplus
}
#endif
#endif

/* secure_pairs.h - keys for tests; those of nodes are made in a folder that is gone afterwards. */
#ifndef STARLING_TEST_SECURE_PAIRS_H
#define STARLING_TEST_SECURE_PAIRS_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "starling/keys.h"

static inline void make_key_folder(char folder[32]) {
    snprintf(folder, 32, "/tmp/starling-keys-XXXXXX");
    assert(mkdtemp(folder) != NULL);
}

static inline sl_credentials *make_run_key(void) {
    char text[SL_RUN_KEY_FILE_BYTES + 1];
    sl_credentials *key = NULL;
    int result = sl_run_key_text(text, NULL);
    if (result == 0)
        result = sl_credentials_take_key(&key, text, SL_RUN_KEY_FILE_BYTES, NULL);
    assert(result == 0);
    return key;
}

static inline sl_credentials *make_node(void) {
    char folder[32], name[64], path[72], fingerprint[SL_FINGERPRINT_TEXT_MAX];
    sl_credentials *credentials = NULL;
    make_key_folder(folder);
    snprintf(name, sizeof name, "%s/node", folder);
    int result = sl_node_keys_make(name, fingerprint, NULL);
    if (result == 0)
        result = sl_credentials_load_node(&credentials, name, NULL);
    assert(result == 0);
    snprintf(path, sizeof path, "%s.key", name);
    unlink(path);
    snprintf(path, sizeof path, "%s.crt", name);
    unlink(path);
    rmdir(folder);
    return credentials;
}

#endif

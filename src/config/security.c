/* security.c - what an experiment says of who may connect; see starling/experiment.h. */
#include "config/security.h"

#include <string.h>

sl_security_mode sl_security_mode_of(const sl_security_config *c) {
    if (c->mode != SL_SECURITY_AUTO)
        return c->mode;
    return c->key[0] != '\0' ? SL_SECURITY_KEY : SL_SECURITY_NONE;
}

bool sl_security_is_unsaid(const sl_security_config *c) {
    return c->mode == SL_SECURITY_AUTO && c->key[0] == '\0';
}

bool sl_security_goes_out(const sl_security_config *c) {
    return c->trusted_network || sl_security_mode_of(c) != SL_SECURITY_NONE;
}

int sl_security_take_key(sl_security_config *c, const char *key, sl_error *error) {
    if (key[0] == '\0' || strlen(key) >= sizeof c->key)
        return sl_fail(error, SL_EINVAL, "options.key: has %zu bytes; allowed are 1 to %zu",
                       strlen(key), sizeof c->key - 1);
    strcpy(c->key, key);
    if (c->mode != SL_SECURITY_CERTIFICATES)
        c->mode = SL_SECURITY_KEY;
    return 0;
}

int sl_security_check(const sl_security_config *c, sl_error *error) {
    const bool named = c->key[0] != '\0';
    if (c->mode == SL_SECURITY_NONE && c->seal == SL_SEAL_ON)
        return sl_fail(error, SL_EINVAL,
                       "security.seal: \"on\" needs a key, and security.mode is \"none\"; leave "
                       "one of them out");
    if (named == (sl_security_mode_of(c) != SL_SECURITY_NONE))
        return 0;
    return named ? sl_fail(error, SL_EINVAL,
                           "security.key: %s is given, and security.mode is \"none\"; leave one of "
                           "them out",
                           c->key)
                 : sl_fail(error, SL_EINVAL,
                           "security.key: missing; mode \"key\" needs a run's key (`starling keys "
                           "make -o FILE`), \"certificates\" the NAME of a node's pair (`starling "
                           "keys make --node -o NAME`)");
}

int sl_security_load(sl_credentials **out, const sl_security_config *c, sl_error *error) {
    *out = NULL;
    switch (sl_security_mode_of(c)) {
    case SL_SECURITY_AUTO:
    case SL_SECURITY_NONE:
        return 0;
    case SL_SECURITY_KEY:
        return sl_credentials_load_key(out, c->key, error);
    case SL_SECURITY_CERTIFICATES:
        return sl_credentials_load_node(out, c->key, error);
    }
    return 0;
}

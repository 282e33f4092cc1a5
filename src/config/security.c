/* security.c - what an experiment says of who may connect; see starling/experiment.h. */
#include "config/security.h"

#include <inttypes.h>
#include <stdio.h>
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

int sl_security_check_provider(const sl_security_config *c, const char *provider, bool keyed,
                               sl_error *error) {
    const bool is_safe = strcmp(provider, "tcp") == 0 || strcmp(provider, "verbs") == 0;
    if (is_safe || c->trusted_network || !keyed)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "transport.provider: \"%s\" is for networks where everybody is trusted: who is "
                   "on the way can end agents whatever their keys; say \"tcp\", or "
                   "security.trusted_network true",
                   provider);
}

static int check_authority(const sl_security_config *c, sl_error *error) {
    static const char *const modes[] = {[SL_SECURITY_AUTO] = "auto",
                                        [SL_SECURITY_NONE] = "none",
                                        [SL_SECURITY_KEY] = "key",
                                        [SL_SECURITY_CERTIFICATES] = "certificates"};
    if (c->ca[0] != '\0' && c->mode != SL_SECURITY_CERTIFICATES)
        return sl_fail(
            error, SL_EINVAL,
            "security.ca: %s is given, and security.mode is \"%s\"; a CA is allowed with "
            "\"certificates\" only: say that, or leave security.ca out",
            c->ca, modes[c->mode]);
    if (c->revoked[0] != '\0' && c->ca[0] == '\0')
        return sl_fail(error, SL_EINVAL,
                       "security.revoked: %s is given, and security.ca is not; a list is allowed "
                       "beside the CA that made it only: name that, or leave security.revoked out",
                       c->revoked);
    return 0;
}

int sl_security_check(const sl_security_config *c, const char *provider, sl_error *error) {
    const bool named = c->key[0] != '\0';
    const int result = check_authority(c, error);
    if (result != 0)
        return result;
    if (c->mode == SL_SECURITY_NONE && c->seal == SL_SEAL_ON)
        return sl_fail(error, SL_EINVAL,
                       "security.seal: \"on\" needs a key, and security.mode is \"none\"; leave "
                       "one of them out");
    if (named == (sl_security_mode_of(c) != SL_SECURITY_NONE))
        return sl_security_check_provider(c, provider, named, error);
    return named ? sl_fail(error, SL_EINVAL,
                           "security.key: %s is given, and security.mode is \"none\"; leave one of "
                           "them out",
                           c->key)
                 : sl_fail(error, SL_EINVAL,
                           "security.key: missing; mode \"key\" needs a run's key (`starling keys "
                           "make -o FILE`), \"certificates\" the NAME of a node's pair (`starling "
                           "keys make --node -o NAME`)");
}

/* The path with this rank in place of each {rank}. */
static int name_key(char path[SL_PATH_MAX], const char *pattern, int64_t rank, sl_error *error) {
    static const char hole[] = "{rank}";
    size_t length = 0;
    for (const char *at = pattern; *at != '\0' && length < SL_PATH_MAX;) {
        const bool is_hole = rank >= 0 && strncmp(at, hole, sizeof hole - 1) == 0;
        if (is_hole)
            length += (size_t)snprintf(path + length, SL_PATH_MAX - length, "%" PRId64, rank);
        else
            path[length++] = *at;
        at += is_hole ? sizeof hole - 1 : 1;
    }
    path[length < SL_PATH_MAX ? length : SL_PATH_MAX - 1] = '\0';
    return length < SL_PATH_MAX
               ? 0
               : sl_fail(error, SL_EINVAL, "security.key: the path is longer than %d bytes",
                         SL_PATH_MAX - 1);
}

static int load_node(sl_credentials **out, const sl_security_config *c, const char *name,
                     sl_error *error) {
    int result = sl_credentials_load_node(out, name, error);
    if (result == 0 && c->ca[0] != '\0')
        result = sl_credentials_trust(*out, c->ca, c->revoked, error);
    if (result != 0)
        sl_credentials_close(out);
    return result;
}

int sl_security_look(const sl_security_config *c, sl_authority_ends *ends, sl_error *error) {
    *ends = (sl_authority_ends){0};
    return c->ca[0] != '\0' ? sl_authority_look(c->ca, c->revoked, ends, error) : 0;
}

int sl_security_load(sl_credentials **out, const sl_security_config *c, int64_t rank,
                     sl_error *error) {
    char path[SL_PATH_MAX] = "";
    *out = NULL;
    const int result = name_key(path, c->key, rank, error);
    if (result != 0)
        return result;
    switch (sl_security_mode_of(c)) {
    case SL_SECURITY_AUTO:
    case SL_SECURITY_NONE:
        return 0;
    case SL_SECURITY_KEY:
        return sl_credentials_load_key(out, path, error);
    case SL_SECURITY_CERTIFICATES:
        return load_node(out, c, path, error);
    }
    return 0;
}

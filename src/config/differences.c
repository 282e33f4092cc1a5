/* differences.c - what two agents' experiments differ in, by key: each tells the other what is not
 * the default, in lines; see starling/experiment.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "starling/text.h"

static const char topology_key[] = "topology";
enum { DIGITS = 9 };

static char *write_json(json_t *value) {
    return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
}

/* *text is taken, and the next one's *value. False: out of memory. */
static bool add_text(FILE *out, const char *key, char *text) {
    const bool written = text != NULL;
    if (written)
        fprintf(out, "%s %s\n", key, text);
    free(text);
    return written;
}

static bool add_line(FILE *out, const char *key, json_t *value) {
    char *text = value != NULL ? write_json(value) : NULL;
    json_decref(value);
    return add_text(out, key, text);
}

/* Of a family: how it is made. Of a list of edges its name: the list comes last. */
static char *describe_topology(const sl_experiment *e) {
    static const char *const lists[] = {",\"edges\":[", ",\"schedule\":["};
    char *text = sl_topology_json(e->topology);
    for (size_t i = 0; text != NULL && i < sizeof lists / sizeof *lists; i++) {
        char *list = strstr(text, lists[i]);
        if (list != NULL)
            memcpy(list, "}", sizeof "}");
    }
    return text;
}

char *sl_experiment_differences(const sl_experiment *e) {
    char *text = NULL;
    size_t bytes;
    sl_key_list keys;
    sl_experiment_keys(&keys);
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    bool good = add_text(out, topology_key, describe_topology(e));
    for (size_t i = 0; good && i < keys.count; i++) {
        const sl_key *k = keys.items[i];
        json_t *value = sl_key_write(k, e);
        const bool compared = sl_key_is_compared(k, e);
        const int is_usual = value != NULL && compared ? sl_key_is_default(k, value) : 1;
        good = value != NULL && is_usual >= 0;
        if (is_usual == 0)
            good = add_line(out, k->path, json_incref(value));
        json_decref(value);
    }
    good = ferror(out) == 0 && good;
    if (fclose(out) == 0 && good)
        return text;
    free(text);
    return NULL;
}

typedef struct lines {
    const char *text;
    size_t bytes;
} lines;

/* The value of that key, as it may be shown. False: it does not fit. `fallback` where it has none.
 */
static bool take_value(char out[SL_DIFFERENCE_MAX], lines l, const char *key,
                       const char *fallback) {
    const size_t key_bytes = strlen(key);
    const char *value = fallback;
    size_t bytes = strlen(fallback);
    for (size_t at = 0, length; at < l.bytes; at += length + 1) {
        const char *end = memchr(l.text + at, '\n', l.bytes - at);
        length = end != NULL ? (size_t)(end - l.text) - at : l.bytes - at;
        if (length > key_bytes && memcmp(l.text + at, key, key_bytes) == 0 &&
            l.text[at + key_bytes] == ' ') {
            value = l.text + at + key_bytes + 1;
            bytes = length - key_bytes - 1;
        }
    }
    if (bytes >= SL_DIFFERENCE_MAX)
        return false;
    sl_text_show(out, SL_DIFFERENCE_MAX, value, bytes);
    return true;
}

static bool differs(sl_difference *out, const char *key, const char *fallback, lines ours,
                    lines theirs) {
    snprintf(out->key, sizeof out->key, "%s", key);
    return take_value(out->ours, ours, key, fallback) &&
           take_value(out->theirs, theirs, key, fallback) && strcmp(out->ours, out->theirs) != 0;
}

bool sl_experiment_difference(sl_difference *out, const char *section, const char *ours,
                              size_t our_bytes, const char *theirs, size_t their_bytes) {
    const lines here = {ours, our_bytes}, there = {theirs, their_bytes};
    sl_key_list keys;
    if (strcmp(section, topology_key) == 0)
        return differs(out, topology_key, "", here, there);
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        const sl_key *k = keys.items[i];
        if (sl_key_may_be_of(k, section) && differs(out, k->path, k->fallback, here, there))
            return true;
    }
    return false;
}

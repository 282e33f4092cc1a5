/* keys.h - every key of the experiment file: one row each. */
#ifndef SL_KEYS_H
#define SL_KEYS_H

#include <jansson.h>

#include "starling/experiment.h"

typedef enum key_type {
    KEY_NAME,    /* char[SL_NAME_MAX] */
    KEY_PATH,    /* char[SL_PATH_MAX] */
    KEY_CHOICE,  /* an enum, one of `choices` */
    KEY_BOOL,    /* bool */
    KEY_SWITCH,  /* sl_switch: true, false or "auto" */
    KEY_SERVER,  /* int64_t: a rank, or SL_SERVER_SHARDED for "sharded" */
    KEY_U32,     /* uint32_t */
    KEY_U64,     /* uint64_t */
    KEY_REAL,    /* double */
    KEY_REALS,   /* double[], rising, with a size_t count */
    KEY_FACTORS, /* double[], in any order, with a size_t count */
    KEY_U32S,    /* uint32_t[] with a size_t count */
    KEY_U64S     /* uint64_t[], rising, with a size_t count */
} key_type;

typedef struct key {
    const char *path;
    key_type type;
    size_t offset, count_offset; /* into sl_experiment */
    double min, max;             /* of a number, or of each in a list */
    size_t length_max;           /* of a list */
    const char *const *choices;  /* KEY_CHOICE: NULL at the end, in the order of the enum */
    const char *fallback;        /* JSON text of the default */
    const char *help;
} key;

extern const key sl_keys[];
extern const size_t sl_key_count;

/* Reads `value` into the experiment; the error names the key, the value and what is allowed. */
int sl_key_read(const key *k, sl_experiment *experiment, json_t *value, sl_error *error);
/* What the experiment holds under this key. */
json_t *sl_key_write(const key *k, const sl_experiment *experiment);
/* "number in [0, 1]", "one of a, b". */
void sl_key_allowed(const key *k, char *out, size_t bytes);
/* The section that the key belongs to; SL_SECTION_COUNT for those that agents need not share. */
sl_section sl_key_section(const key *k);

#endif

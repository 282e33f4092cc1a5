/* event_text.c - see event_text.h.
 *
 * A table says which kinds of events have which fields. Writing and reading walk it, so that
 * neither knows a field that the other does not.
 */
#include "folder/event_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "folder/record_json.h"
#include "starling/text.h"

static const char *const kinds[] = {
#define KIND_TEXT(name, text, meaning) text,
    SL_LOG_KINDS(KIND_TEXT)
#undef KIND_TEXT
        NULL};
static const char *const thens[] = {"go on", "end", NULL};
static const char *const outcomes[] = {"done", "saved", "stopped", "failed", "left", NULL};

typedef enum field_type {
    FIELD_WHOLE,   /* uint64_t */
    FIELD_COUNT,   /* uint32_t */
    FIELD_RANK,    /* likewise */
    FIELD_ID,      /* uint64_t; as text, for readers whose numbers are doubles */
    FIELD_SECONDS, /* double */
    FIELD_TEXT,    /* char[SL_LOG_WORD_MAX] */
    FIELD_WHY,     /* char[SL_ERROR_TEXT_MAX]; null if empty */
    FIELD_WORD,    /* an enum; one of `words` */
    FIELD_ROUNDS,  /* passed_over */
    FIELD_OBJECT,  /* settings: keys and values as JSON; null if NULL */
    FIELD_MEMBERS, /* ranks, members */
    FIELD_EDGES    /* broken, broken_count */
} field_type;

typedef struct field {
    const char *name;
    unsigned kinds; /* a bit for each that has it */
    field_type type;
    size_t offset; /* in the entry */
    const char *const *words;
} field;

#define ONE(kind) (1u << (kind))
#define ALL_KINDS (~0u)
#define LINK (ONE(SL_LOG_DOWN) | ONE(SL_LOG_UP))
#define START ONE(SL_LOG_START)
#define AT(member) offsetof(sl_log_entry, member)

static const field fields[] = {
    {"round", ALL_KINDS, FIELD_WHOLE, AT(round), NULL},
    {"rounds", START, FIELD_WHOLE, AT(rounds), NULL},
    {"run_id", START, FIELD_ID, AT(run_id), NULL},
    {"incarnation", START, FIELD_WHOLE, AT(incarnation), NULL},
    {"simulations", START, FIELD_WHOLE, AT(simulations), NULL},
    {"version", START, FIELD_TEXT, AT(version), NULL},
    {"kernels", START, FIELD_TEXT, AT(kernels), NULL},
    {"blas", START, FIELD_TEXT, AT(blas), NULL},
    {"passed_over", ONE(SL_LOG_RESUME), FIELD_ROUNDS, AT(passed_over), NULL},
    {"settings", ONE(SL_LOG_SETTINGS), FIELD_OBJECT, AT(settings), NULL},
    {"peer", ONE(SL_LOG_EDGE) | LINK | ONE(SL_LOG_LOST), FIELD_RANK, AT(peer), NULL},
    {"sponsor", ONE(SL_LOG_JOIN), FIELD_RANK, AT(peer), NULL},
    {"after", ONE(SL_LOG_JOIN) | ONE(SL_LOG_COMMIT), FIELD_WHOLE, AT(after), NULL},
    {"protection", ONE(SL_LOG_EDGE), FIELD_WHY, AT(why), NULL},
    {"members", ONE(SL_LOG_VIEW), FIELD_MEMBERS, AT(ranks), NULL},
    {"gap", ONE(SL_LOG_VIEW), FIELD_SECONDS, AT(gap), NULL},
    {"broken", ONE(SL_LOG_VIEW), FIELD_EDGES, AT(broken), NULL},
    {"exchange", LINK | ONE(SL_LOG_CUT) | ONE(SL_LOG_VIEW), FIELD_WHOLE, AT(exchange), NULL},
    {"step", ONE(SL_LOG_CUT), FIELD_COUNT, AT(step), NULL},
    {"part", ONE(SL_LOG_CUT), FIELD_COUNT, AT(part), NULL},
    {"seconds", ONE(SL_LOG_UP), FIELD_SECONDS, AT(seconds), NULL},
    {"then", ONE(SL_LOG_REQUEST), FIELD_WORD, AT(then), thens},
    {"outcome", ONE(SL_LOG_END), FIELD_WORD, AT(outcome), outcomes},
    {"why",
     ONE(SL_LOG_DOWN) | ONE(SL_LOG_LOST) | ONE(SL_LOG_VIEW) | ONE(SL_LOG_CHECKPOINT) |
         ONE(SL_LOG_END),
     FIELD_WHY, AT(why), NULL},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static bool has(const field *f, sl_log_kind kind) {
    return (f->kinds & ONE(kind)) != 0;
}

/* ---- writing ---- */

static json_t *rounds_json(const sl_log_entry *entry) {
    json_t *list = json_array();
    for (size_t i = 0; i < entry->passed_over_count; i++)
        sl_json_append(&list, json_integer((json_int_t)entry->passed_over[i]));
    return list;
}

static json_t *members_json(const sl_log_entry *entry) {
    json_t *list = json_array();
    for (uint64_t i = 0; i < entry->members; i++)
        sl_json_append(&list, json_integer(entry->ranks[i]));
    return list;
}

static json_t *edges_json(const sl_log_entry *entry) {
    json_t *list = json_array();
    for (uint64_t i = 0; i < entry->broken_count; i++) {
        const sl_pair edge = entry->broken[i];
        sl_json_append(&list, json_pack("[II]", (json_int_t)edge.low, (json_int_t)edge.high));
    }
    return list;
}

static json_t *settings_json(const sl_log_entry *entry) {
    json_t *object = entry->settings != NULL ? json_loads(entry->settings, 0, NULL) : NULL;
    return object != NULL ? object : json_null();
}

/* A message may quote anybody. */
static json_t *text_json(const char *text, size_t room) {
    char shown[SL_ERROR_TEXT_MAX];
    return json_string(sl_text_show(shown, room, text, strlen(text)));
}

static json_t *field_json(const field *f, const sl_log_entry *entry) {
    const void *at = (const char *)entry + f->offset;
    char id[24];
    switch (f->type) {
    case FIELD_WHOLE:
        return json_integer((json_int_t)(*(const uint64_t *)at));
    case FIELD_COUNT:
    case FIELD_RANK:
        return json_integer(*(const uint32_t *)at);
    case FIELD_ID:
        snprintf(id, sizeof id, "%" PRIu64, *(const uint64_t *)at);
        return json_string(id);
    case FIELD_SECONDS:
        return sl_number_json(*(const double *)at);
    case FIELD_TEXT:
        return text_json(at, SL_LOG_WORD_MAX);
    case FIELD_WHY:
        return *(const char *)at != '\0' ? text_json(at, SL_ERROR_TEXT_MAX) : json_null();
    case FIELD_WORD:
        return json_string(f->words[*(const unsigned *)at]);
    case FIELD_MEMBERS:
        return members_json(entry);
    case FIELD_EDGES:
        return edges_json(entry);
    case FIELD_OBJECT:
        return settings_json(entry);
    case FIELD_ROUNDS:
        break;
    }
    return rounds_json(entry);
}

char *sl_event_text_write(const sl_log_entry *entry, double time_s) {
    json_t *root = json_pack("{ss so}", "event", kinds[entry->kind], "node",
                             entry->rank == SL_LOG_ALL ? json_null() : json_integer(entry->rank));
    for (int i = 0; i < FIELDS; i++)
        if (has(&fields[i], entry->kind))
            sl_json_set(&root, fields[i].name, field_json(&fields[i], entry));
    sl_json_set(&root, "time", sl_number_json(time_s));
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(root);
    return text;
}

/* ---- reading ---- */

enum { SHOWN_BYTES = 60 };

/* "round: -3 is not allowed; it must be a whole number from 0". */
static int refuse(const char *name, const json_t *value, const char *allowed, sl_error *error) {
    if (value == NULL)
        return sl_fail(error, SL_EFILE, "%s: is missing; it must be %s", name, allowed);
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    sl_fail(error, SL_EFILE, "%s: %.*s is not allowed; it must be %s", name, SHOWN_BYTES,
            text != NULL ? text : "?", allowed);
    free(text);
    return SL_EFILE;
}

static int read_whole(uint64_t *out, const char *name, const json_t *value, uint64_t max,
                      sl_error *error) {
    char allowed[64];
    snprintf(allowed, sizeof allowed, "a whole number from 0 to %" PRIu64, max);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max)
        return refuse(name, value, allowed, error);
    *out = (uint64_t)json_integer_value(value);
    return 0;
}

static int read_count(uint32_t *out, const char *name, const json_t *value, uint64_t max,
                      sl_error *error) {
    uint64_t count = 0;
    int result = read_whole(&count, name, value, max, error);
    if (result == 0)
        *out = (uint32_t)count;
    return result;
}

static int read_id(uint64_t *out, const char *name, const json_t *value, sl_error *error) {
    const char *text = json_string_value(value);
    char again[24] = "";
    if (text != NULL) {
        *out = strtoull(text, NULL, 10);
        snprintf(again, sizeof again, "%" PRIu64, *out);
    }
    return text != NULL && strcmp(text, again) == 0
               ? 0
               : refuse(name, value, "a whole number as text", error);
}

static int read_text(char *out, size_t room, const char *name, const json_t *value,
                     sl_error *error) {
    char allowed[64];
    snprintf(allowed, sizeof allowed, "text of up to %zu bytes", room - 1);
    if (!json_is_string(value) || json_string_length(value) >= room)
        return refuse(name, value, allowed, error);
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return 0;
}

static int read_word(unsigned *out, const char *name, const char *const *words, const json_t *value,
                     sl_error *error) {
    const char *text = json_string_value(value);
    char allowed[192] = "one of";
    for (unsigned i = 0; words[i] != NULL; i++) {
        const size_t used = strlen(allowed);
        if (text != NULL && strcmp(text, words[i]) == 0) {
            *out = i;
            return 0;
        }
        snprintf(allowed + used, sizeof allowed - used, "%s \"%s\"", i > 0 ? "," : "", words[i]);
    }
    return refuse(name, value, allowed, error);
}

static int read_rounds(sl_log_entry *out, const char *name, const json_t *value, sl_error *error) {
    const size_t count = json_array_size(value);
    if (!json_is_array(value) || count > SL_LOG_PASSED_MAX)
        return refuse(name, value, "a list of up to 16 rounds", error);
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = read_whole(&out->passed_over[i], name, json_array_get(value, i), INT64_MAX, error);
    out->passed_over_count = count;
    return result;
}

static int read_members(sl_log_entry *out, const char *name, const json_t *value, sl_error *error) {
    const size_t count = json_array_size(value);
    if (count == 0 || count > SL_NODES_MAX)
        return refuse(name, value, "a list of rising ranks", error);
    uint32_t *ranks = calloc(count, sizeof *ranks);
    int result = ranks != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for a list");
    for (size_t i = 0; i < count && result == 0; i++) {
        result = read_count(&ranks[i], name, json_array_get(value, i), SL_NODES_MAX - 1, error);
        if (result == 0 && i > 0 && ranks[i] <= ranks[i - 1])
            result = refuse(name, value, "a list of rising ranks", error);
    }
    out->ranks = ranks;
    out->members = count;
    return result;
}

static int read_edge(sl_pair *out, const char *name, const json_t *value, sl_error *error) {
    const json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    int result = read_count(&out->low, name, low, SL_NODES_MAX - 1, error);
    if (result == 0)
        result = read_count(&out->high, name, high, SL_NODES_MAX - 1, error);
    return result == 0 && (json_array_size(value) != 2 || out->low >= out->high)
               ? refuse(name, value, "two rising ranks", error)
               : result;
}

static int read_edges(sl_log_entry *out, const char *name, const json_t *value, sl_error *error) {
    const size_t count = json_array_size(value);
    if (!json_is_array(value) || count > SL_NODES_MAX)
        return refuse(name, value, "a list of edges", error);
    sl_pair *edges = calloc(count + 1, sizeof *edges);
    int result = edges != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for a list");
    for (size_t i = 0; i < count && result == 0; i++)
        result = read_edge(&edges[i], name, json_array_get(value, i), error);
    out->broken = edges;
    out->broken_count = count;
    return result;
}

static int read_settings(sl_log_entry *out, const char *name, json_t *value, sl_error *error) {
    const char *key;
    json_t *setting;
    if (json_is_null(value))
        return 0;
    if (!json_is_object(value))
        return refuse(name, value, "an object of keys and values", error);
    json_object_foreach(value, key, setting) {
        if (!sl_experiment_is_setting(key))
            return sl_fail(error, SL_EFILE, "%s: %.60s is no key that a run changes", name, key);
    }
    out->settings = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17));
    return out->settings != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for %s", name);
}

static int read_field(sl_log_entry *out, const field *f, json_t *value, sl_error *error) {
    void *at = (char *)out + f->offset;
    switch (f->type) {
    case FIELD_WHOLE:
        return read_whole(at, f->name, value, INT64_MAX, error);
    case FIELD_COUNT:
        return read_count(at, f->name, value, UINT32_MAX, error);
    case FIELD_RANK:
        return read_count(at, f->name, value, SL_NODES_MAX - 1, error);
    case FIELD_ID:
        return read_id(at, f->name, value, error);
    case FIELD_SECONDS:
        *(double *)at = json_number_value(value);
        return json_is_number(value) && *(double *)at >= 0
                   ? 0
                   : refuse(f->name, value, "a number of seconds", error);
    case FIELD_TEXT:
        return read_text(at, SL_LOG_WORD_MAX, f->name, value, error);
    case FIELD_WHY:
        return json_is_null(value) ? 0 : read_text(at, SL_ERROR_TEXT_MAX, f->name, value, error);
    case FIELD_WORD:
        return read_word(at, f->name, f->words, value, error);
    case FIELD_MEMBERS:
        return read_members(out, f->name, value, error);
    case FIELD_EDGES:
        return read_edges(out, f->name, value, error);
    case FIELD_OBJECT:
        return read_settings(out, f->name, value, error);
    case FIELD_ROUNDS:
        break;
    }
    return read_rounds(out, f->name, value, error);
}

static bool is_known(const char *name, sl_log_kind kind) {
    for (int i = 0; i < FIELDS; i++)
        if (has(&fields[i], kind) && strcmp(fields[i].name, name) == 0)
            return true;
    return strcmp(name, "event") == 0 || strcmp(name, "node") == 0 || strcmp(name, "time") == 0;
}

static int refuse_others(json_t *root, sl_log_kind kind, sl_error *error) {
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value) {
        if (!is_known(name, kind))
            return sl_fail(error, SL_EFILE, "%.60s: is no field of the event \"%s\"", name,
                           kinds[kind]);
    }
    return 0;
}

static int read_object(sl_log_entry *out, json_t *root, sl_error *error) {
    const json_t *node = json_object_get(root, "node"), *time = json_object_get(root, "time");
    unsigned kind = 0;
    int result = read_word(&kind, "event", kinds, json_object_get(root, "event"), error);
    out->kind = (sl_log_kind)kind;
    out->rank = SL_LOG_ALL;
    if (result == 0 && !json_is_null(node))
        result = read_count(&out->rank, "node", node, SL_NODES_MAX - 1, error);
    for (int i = 0; i < FIELDS && result == 0; i++)
        if (has(&fields[i], out->kind))
            result = read_field(out, &fields[i], json_object_get(root, fields[i].name), error);
    if (result == 0 && !json_is_number(time))
        result = refuse("time", time, "a number of seconds", error);
    return result != 0 ? result : refuse_others(root, out->kind, error);
}

void sl_event_text_free(const sl_log_entry *entry) {
    free((void *)entry->ranks);
    free((void *)entry->broken);
    free((void *)entry->settings);
}

int sl_event_text_read(sl_log_entry *out, const char *text, size_t bytes, sl_error *error) {
    sl_log_entry entry = {0};
    json_error_t problem;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL)
        return sl_fail(error, SL_EFILE, "column %d: %s", problem.column, problem.text);
    int result = json_is_object(root) ? read_object(&entry, root, error)
                                      : refuse("line", root, "an object", error);
    json_decref(root);
    if (result == 0)
        *out = entry;
    else
        sl_event_text_free(&entry);
    return result;
}

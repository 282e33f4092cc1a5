/* key_values.c - reads and writes the value of one key; see keys.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "config/keys.h"
#include "starling/suggest.h"

/* What stands for NaN in a PARAMETER. */
static const char *word_of(const sl_key *k) {
    return k->choices != NULL ? k->choices[0] : "auto";
}

void sl_key_allowed(const sl_key *k, char *out, size_t bytes) {
    static const char *const kinds[] = {
        [SL_KEY_TEXT] = "text",
        [SL_KEY_PATH] = "a path",
        [SL_KEY_BOOL] = "true or false",
        [SL_KEY_SWITCH] = "true, false or \"auto\"",
        [SL_KEY_SERVER] = "\"sharded\", or a rank",
        [SL_KEY_U32] = "an integer",
        [SL_KEY_U64] = "an integer",
        [SL_KEY_U64_BY_RANK] = "an integer, or a list of integers,",
        [SL_KEY_REAL] = "a number",
        [SL_KEY_REAL_OR_SETS] = "lists of ranks, or a number",
        [SL_KEY_PARAMETER] = "or a number",
        [SL_KEY_COUNT] = "or an integer",
        [SL_KEY_REALS] = "a rising list of numbers",
        [SL_KEY_FACTORS] = "a list of numbers",
        [SL_KEY_ROWS] = "a list of numbers, or of equally long lists of numbers,",
        [SL_KEY_U32S] = "a list of integers",
        [SL_KEY_U64S] = "a rising list of integers"};
    size_t at = 0;
    if (k->type == SL_KEY_CHOICE || k->type == SL_KEY_CHOICE_OR_REALS) {
        at = (size_t)snprintf(out, bytes, "one of");
        for (int i = 0; k->choices[i] != NULL && at < bytes; i++)
            at += (size_t)snprintf(out + at, bytes - at, "%s \"%s\"", i ? "," : "", k->choices[i]);
        if (k->type == SL_KEY_CHOICE_OR_REALS && at < bytes)
            snprintf(out + at, bytes - at, ", or a list of numbers from %.10g to %.10g", k->min,
                     k->max);
        return;
    }
    if (k->type == SL_KEY_PARAMETER || k->type == SL_KEY_COUNT)
        at = (size_t)snprintf(out, bytes, "\"%s\", ", word_of(k));
    at += (size_t)snprintf(out + at, bytes - at, "%s", kinds[k->type]);
    bool real = k->type == SL_KEY_REAL || k->type == SL_KEY_REAL_OR_SETS ||
                k->type == SL_KEY_PARAMETER || k->type == SL_KEY_REALS ||
                k->type == SL_KEY_FACTORS || k->type == SL_KEY_ROWS;
    if ((k->type >= SL_KEY_U32 || k->type == SL_KEY_SERVER) && at < bytes)
        snprintf(out + at, bytes - at, real ? " from %.10g to %.10g" : " from %.0f to %.0f", k->min,
                 k->max);
}

static int refuse(const sl_key *k, json_t *value, sl_error *error) {
    char allowed[SL_ALLOWED_MAX];
    sl_key_allowed(k, allowed, sizeof allowed);
    char *text = sl_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
    char otherwise[SL_ALLOWED_MAX + 32], way_out[sizeof otherwise];
    snprintf(otherwise, sizeof otherwise, "; it must be %s", allowed);
    size_t count = 0;
    while (k->type == SL_KEY_CHOICE && json_is_string(value) && k->choices[count] != NULL)
        count++;
    sl_suggest_text(way_out, sizeof way_out, count > 0 ? json_string_value(value) : "", k->choices,
                    count, otherwise);
    int result = sl_fail(error, SL_EINVAL, "%s: %.100s is not allowed%s", k->path,
                         text ? text : "?", way_out);
    free(text);
    return result;
}

static bool in_range(const sl_key *k, json_t *value, bool integer) {
    if (integer ? !json_is_integer(value) : !json_is_number(value))
        return false;
    double number = json_number_value(value);
    return number >= k->min && number <= k->max;
}

static bool is_text(json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool read_text(char *out, size_t room, json_t *value) {
    if (!json_is_string(value) || json_string_length(value) >= room)
        return false;
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return true;
}

static bool read_choice(const sl_key *k, int *out, json_t *value) {
    for (int i = 0; json_is_string(value) && k->choices[i] != NULL; i++)
        if (strcmp(k->choices[i], json_string_value(value)) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static bool read_switch(sl_switch *out, json_t *value) {
    *out = json_is_string(value) ? SL_SWITCH_AUTO
           : json_is_true(value) ? SL_SWITCH_ON
                                 : SL_SWITCH_OFF;
    return json_is_boolean(value) || is_text(value, "auto");
}

static bool read_server(const sl_key *k, int64_t *out, json_t *value) {
    const bool is_sharded = is_text(value, "sharded");
    if (!is_sharded && !in_range(k, value, true))
        return false;
    *out = is_sharded ? SL_SERVER_SHARDED : (int64_t)json_integer_value(value);
    return true;
}

static bool read_count(const sl_key *k, uint64_t *out, json_t *value) {
    const bool is_auto = is_text(value, word_of(k));
    if (!is_auto && !in_range(k, value, true))
        return false;
    *out = is_auto ? SL_COUNT_AUTO : (uint64_t)json_integer_value(value);
    return true;
}

static bool read_list(const sl_key *k, void *out, size_t *count, json_t *list) {
    size_t length = json_array_size(list), i;
    if (!json_is_array(list) || length > k->length_max)
        return false;
    json_t *item;
    double before = -1;
    bool real = k->type == SL_KEY_REALS || k->type == SL_KEY_FACTORS,
         rising = k->type == SL_KEY_REALS || k->type == SL_KEY_U64S;
    json_array_foreach(list, i, item) {
        if (!in_range(k, item, !real) || (rising && json_number_value(item) <= before))
            return false;
        before = json_number_value(item);
        if (real)
            ((double *)out)[i] = before;
        else if (k->type == SL_KEY_U32S)
            ((uint32_t *)out)[i] = (uint32_t)json_integer_value(item);
        else
            ((uint64_t *)out)[i] = (uint64_t)json_integer_value(item);
    }
    *count = length;
    return true;
}

static bool read_by_rank(const sl_key *k, uint64_t *most, sl_counts *by_rank, json_t *value) {
    by_rank->count = 0;
    if (in_range(k, value, true)) {
        *most = (uint64_t)json_integer_value(value);
        return true;
    }
    json_t *item;
    size_t i;
    if (json_array_size(value) == 0 || json_array_size(value) > k->length_max)
        return false;
    *most = 0;
    json_array_foreach(value, i, item) {
        if (!in_range(k, item, true))
            return false;
        by_rank->values[i] = (uint32_t)json_integer_value(item);
        *most = by_rank->values[i] > *most ? by_rank->values[i] : *most;
    }
    by_rank->count = json_array_size(value);
    return true;
}

static bool read_real(const sl_key *k, double *out, json_t *value) {
    const bool is_auto = k->type == SL_KEY_PARAMETER && is_text(value, word_of(k));
    if (!is_auto && !in_range(k, value, false))
        return false;
    *out = is_auto ? NAN : json_number_value(value);
    return true;
}

static bool read_ranks(const sl_key *k, sl_rank_sets *out, json_t *set) {
    json_t *rank;
    size_t i, at = out->count > 0 ? out->ends[out->count - 1] : 0;
    if (json_array_size(set) == 0 || json_array_size(set) > k->length_max - at)
        return false;
    json_array_foreach(set, i, rank) {
        if (!json_is_integer(rank) || json_integer_value(rank) < 0 ||
            json_integer_value(rank) >= SL_NODES_MAX)
            return false;
        out->ranks[at++] = (uint32_t)json_integer_value(rank);
    }
    out->ends[out->count++] = at;
    return true;
}

/* Of a number sets->count is 0. */
static bool read_real_or_sets(const sl_key *k, double *real, sl_rank_sets *sets, json_t *value) {
    json_t *set;
    size_t i;
    sets->count = 0;
    if (in_range(k, value, false)) {
        *real = json_number_value(value);
        return true;
    }
    if (json_array_size(value) == 0 || json_array_size(value) > SL_SETS_MAX)
        return false;
    json_array_foreach(value, i, set) {
        if (!read_ranks(k, sets, set))
            return false;
    }
    return true;
}

static bool read_choice_or_reals(const sl_key *k, int *choice, sl_reals *reals, json_t *value) {
    json_t *item;
    size_t i;
    reals->count = 0;
    if (read_choice(k, choice, value))
        return true;
    if (json_array_size(value) == 0 || json_array_size(value) > k->length_max)
        return false;
    json_array_foreach(value, i, item) {
        if (!in_range(k, item, false))
            return false;
        reals->values[i] = json_number_value(item);
    }
    reals->count = json_array_size(value);
    return true;
}

/* A list of numbers is one row. */
static bool read_rows(const sl_key *k, sl_number_rows *out, json_t *list) {
    const bool is_row = json_is_number(json_array_get(list, 0));
    json_t *item;
    size_t j;
    out->rows = is_row ? 1 : json_array_size(list);
    out->columns = json_array_size(is_row ? list : json_array_get(list, 0));
    if (!json_is_array(list) || (out->rows > 0 && out->columns == 0) ||
        out->rows * out->columns > k->length_max)
        return false;
    for (size_t i = 0; i < out->rows; i++) {
        json_t *row = is_row ? list : json_array_get(list, i);
        if (json_array_size(row) != out->columns)
            return false;
        json_array_foreach(row, j, item) {
            if (!in_range(k, item, false))
                return false;
            out->values[i * out->columns + j] = json_number_value(item);
        }
    }
    return true;
}

int sl_key_read(const sl_key *k, sl_experiment *experiment, json_t *value, sl_error *error) {
    char *field = (char *)experiment + sl_key_offset(k);
    void *list = field + ((ptrdiff_t)k->count_offset - (ptrdiff_t)k->offset);
    bool good = false;
    switch (k->type) {
    case SL_KEY_TEXT:
        good = read_text(field, SL_NAME_MAX, value);
        break;
    case SL_KEY_PATH:
        good = read_text(field, SL_PATH_MAX, value);
        break;
    case SL_KEY_CHOICE:
        good = read_choice(k, (int *)field, value);
        break;
    case SL_KEY_BOOL:
        good = json_is_boolean(value);
        *(bool *)field = json_is_true(value);
        break;
    case SL_KEY_SWITCH:
        good = read_switch((sl_switch *)field, value);
        break;
    case SL_KEY_SERVER:
        good = read_server(k, (int64_t *)field, value);
        break;
    case SL_KEY_U32:
        if ((good = in_range(k, value, true)))
            *(uint32_t *)field = (uint32_t)json_integer_value(value);
        break;
    case SL_KEY_U64:
        if ((good = in_range(k, value, true)))
            *(uint64_t *)field = (uint64_t)json_integer_value(value);
        break;
    case SL_KEY_U64_BY_RANK:
        good = read_by_rank(k, (uint64_t *)field, list, value);
        break;
    case SL_KEY_REAL_OR_SETS:
        good = read_real_or_sets(k, (double *)field, list, value);
        break;
    case SL_KEY_CHOICE_OR_REALS:
        good = read_choice_or_reals(k, (int *)field, list, value);
        break;
    case SL_KEY_REAL:
    case SL_KEY_PARAMETER:
        good = read_real(k, (double *)field, value);
        break;
    case SL_KEY_COUNT:
        good = read_count(k, (uint64_t *)field, value);
        break;
    case SL_KEY_ROWS:
        good = read_rows(k, (sl_number_rows *)field, value);
        break;
    case SL_KEY_REALS:
    case SL_KEY_FACTORS:
    case SL_KEY_U32S:
    case SL_KEY_U64S:
        good = read_list(k, field, list, value);
        break;
    }
    return good ? 0 : refuse(k, value, error);
}

static json_t *write_list(const sl_key *k, const void *field, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        bool real = k->type == SL_KEY_REALS || k->type == SL_KEY_FACTORS;
        json_t *item = real ? json_real(((const double *)field)[i])
                       : k->type == SL_KEY_U32S
                           ? json_integer(((const uint32_t *)field)[i])
                           : json_integer((json_int_t)((const uint64_t *)field)[i]);
        sl_json_append(&list, item);
    }
    return list;
}

static json_t *write_rows(const sl_number_rows *v) {
    json_t *list = json_array();
    for (size_t i = 0; i < v->rows; i++) {
        json_t *row = json_array();
        for (size_t j = 0; j < v->columns; j++)
            sl_json_append(&row, json_real(v->values[i * v->columns + j]));
        sl_json_append(&list, row);
    }
    return list;
}

static json_t *write_by_rank(uint64_t most, const sl_counts *by_rank) {
    json_t *list = by_rank->count > 0 ? json_array() : json_integer((json_int_t)most);
    for (size_t i = 0; i < by_rank->count; i++)
        sl_json_append(&list, json_integer(by_rank->values[i]));
    return list;
}

static json_t *write_real_or_sets(double real, const sl_rank_sets *sets) {
    json_t *list = sets->count > 0 ? json_array() : json_real(real);
    for (size_t s = 0, at = 0; s < sets->count; s++) {
        json_t *set = json_array();
        for (; at < sets->ends[s]; at++)
            sl_json_append(&set, json_integer(sets->ranks[at]));
        sl_json_append(&list, set);
    }
    return list;
}

static json_t *write_choice_or_reals(const char *choice, const sl_reals *reals) {
    json_t *list = reals->count > 0 ? json_array() : json_string(choice);
    for (size_t i = 0; i < reals->count; i++)
        sl_json_append(&list, json_real(reals->values[i]));
    return list;
}

json_t *sl_key_write(const sl_key *k, const sl_experiment *experiment) {
    const char *field = (const char *)experiment + sl_key_offset(k);
    const void *list = field + ((ptrdiff_t)k->count_offset - (ptrdiff_t)k->offset);
    switch (k->type) {
    case SL_KEY_TEXT:
    case SL_KEY_PATH:
        return json_string(field);
    case SL_KEY_CHOICE:
        return json_string(k->choices[*(const int *)field]);
    case SL_KEY_BOOL:
        return json_boolean(*(const bool *)field);
    case SL_KEY_SWITCH:
        return *(const sl_switch *)field == SL_SWITCH_AUTO
                   ? json_string("auto")
                   : json_boolean(*(const sl_switch *)field == SL_SWITCH_ON);
    case SL_KEY_SERVER:
        return *(const int64_t *)field == SL_SERVER_SHARDED ? json_string("sharded")
                                                            : json_integer(*(const int64_t *)field);
    case SL_KEY_U32:
        return json_integer(*(const uint32_t *)field);
    case SL_KEY_U64:
        return json_integer((json_int_t) * (const uint64_t *)field);
    case SL_KEY_U64_BY_RANK:
        return write_by_rank(*(const uint64_t *)field, list);
    case SL_KEY_REAL_OR_SETS:
        return write_real_or_sets(*(const double *)field, list);
    case SL_KEY_CHOICE_OR_REALS:
        return write_choice_or_reals(k->choices[*(const int *)field], list);
    case SL_KEY_REAL:
        return json_real(*(const double *)field);
    case SL_KEY_PARAMETER:
        return isnan(*(const double *)field) ? json_string(word_of(k))
                                             : json_real(*(const double *)field);
    case SL_KEY_COUNT:
        return *(const uint64_t *)field == SL_COUNT_AUTO
                   ? json_string(word_of(k))
                   : json_integer((json_int_t) * (const uint64_t *)field);
    case SL_KEY_ROWS:
        return write_rows((const sl_number_rows *)field);
    case SL_KEY_REALS:
    case SL_KEY_FACTORS:
    case SL_KEY_U32S:
    case SL_KEY_U64S:
        return write_list(k, field, *(const size_t *)list);
    }
    return NULL;
}

const char *sl_key_choice(const sl_key *k, size_t index) {
    if (k->names != NULL)
        return k->names(index);
    for (size_t i = 0; k->choices != NULL && k->choices[i] != NULL; i++)
        if (i == index)
            return k->choices[i];
    return NULL;
}

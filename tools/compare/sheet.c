/* sheet.c - see sheet.h. */
#include "compare/sheet.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "starling/types.h"

enum { DIGITS = 9, PATH_BYTES = SL_PATH_MAX + 64 };

struct sheet {
    json_t *columns; /* an object: its keys are theirs */
    json_t *rows;    /* an array of objects */
    json_t *row;     /* the last; borrowed */
    bool failed;     /* out of memory */
};

sheet *sheet_open(void) {
    sheet *s = calloc(1, sizeof *s);
    if (s != NULL)
        *s = (sheet){.columns = json_object(), .rows = json_array()};
    return s;
}

void sheet_close(sheet **s) {
    if (*s != NULL) {
        json_decref((*s)->columns);
        json_decref((*s)->rows);
    }
    free(*s);
    *s = NULL;
}

void sheet_row(sheet *s) {
    if (s == NULL)
        return;
    s->row = json_object();
    s->failed = json_array_append_new(s->rows, s->row) != 0 || s->failed;
}

/* Takes `value`. */
static void put(sheet *s, const char *key, json_t *value) {
    if (s == NULL)
        json_decref(value);
    else
        s->failed = json_object_set_new(s->columns, key, json_true()) != 0 ||
                    json_object_set_new(s->row, key, value) != 0 || s->failed;
}

void sheet_text(sheet *s, const char *key, const char *text) {
    json_t *value = json_string(text);
    put(s, key, value != NULL ? value : json_string("(not UTF-8)"));
}

void sheet_number(sheet *s, const char *key, double value) {
    put(s, key, isfinite(value) ? json_real(value) : json_null());
}

void sheet_count(sheet *s, const char *key, uint64_t value) {
    put(s, key, json_integer((json_int_t)value));
}

void sheet_value(sheet *s, const char *key, json_t *value) {
    if (value == NULL || json_is_null(value)) {
        put(s, key, json_null());
    } else if (json_is_object(value) || json_is_array(value)) {
        char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
        sheet_text(s, key, text != NULL ? text : "");
        free(text);
    } else {
        put(s, key, json_incref(value));
    }
}

/* ---- writing ---- */

/* As RFC 4180 has it. */
static void write_text(FILE *out, const char *text) {
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static void write_cell(FILE *out, const json_t *value) {
    if (json_is_string(value))
        write_text(out, json_string_value(value));
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.*g", DIGITS, json_real_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "true" : "false", out);
}

static void write_csv(FILE *out, const sheet *s) {
    const char *key;
    json_t *ignored, *row;
    size_t i, column = 0;
    json_object_foreach(s->columns, key, ignored) {
        fputs(column++ > 0 ? "," : "", out);
        write_text(out, key);
    }
    fputc('\n', out);
    json_array_foreach(s->rows, i, row) {
        column = 0;
        json_object_foreach(s->columns, key, ignored) {
            fputs(column++ > 0 ? "," : "", out);
            write_cell(out, json_object_get(row, key));
        }
        fputc('\n', out);
    }
}

/* Every row has every key. */
static void write_lines(FILE *out, const sheet *s) {
    const char *key;
    json_t *ignored, *row;
    size_t i;
    json_array_foreach(s->rows, i, row) {
        json_t *whole = json_object();
        json_object_foreach(s->columns, key, ignored) {
            json_t *value = json_object_get(row, key);
            json_object_set_new(whole, key, value != NULL ? json_incref(value) : json_null());
        }
        json_dumpf(whole, out, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
        fputc('\n', out);
        json_decref(whole);
    }
}

/* Beside its name, and renamed. */
static int write_file(const sheet *s, const char *path, void (*writes)(FILE *, const sheet *),
                      sl_error *error) {
    char beside[PATH_BYTES + 8];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *out = fopen(beside, "w");
    if (out == NULL)
        return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", beside, strerror(errno));
    writes(out, s);
    bool good = !ferror(out);
    good = fclose(out) == 0 && good;
    if (good && rename(beside, path) == 0)
        return 0;
    const int why = errno;
    unlink(beside);
    return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(why));
}

int sheet_write(const sheet *s, const char *folder, const char *name, sl_error *error) {
    char path[PATH_BYTES];
    if (s == NULL || s->failed)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for its tables", folder);
    snprintf(path, sizeof path, "%.*s/%s.csv", SL_PATH_MAX, folder, name);
    int result = write_file(s, path, write_csv, error);
    snprintf(path, sizeof path, "%.*s/%s.jsonl", SL_PATH_MAX, folder, name);
    return result == 0 ? write_file(s, path, write_lines, error) : result;
}

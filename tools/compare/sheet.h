/* sheet.h - a table for programs: rows of named values, as CSV and as JSON lines. */
#ifndef SHEET_H
#define SHEET_H

#include <jansson.h>

#include "starling/error.h"

typedef struct sheet sheet;

/* NULL: out of memory. The other functions then do nothing, and sheet_write says so. */
sheet *sheet_open(void);
void sheet_close(sheet **s);

/* Begins a row. A value goes into the column of its key, which is made where it is new: columns
 * come in the order in which their keys came first. */
void sheet_row(sheet *s);
void sheet_text(sheet *s, const char *key, const char *text);
/* NaN and infinity: no value. */
void sheet_number(sheet *s, const char *key, double value);
void sheet_count(sheet *s, const char *key, uint64_t value);
/* A number, a text, a truth value, or anything else as its text. NULL, or null: no value.
 * Borrowed. */
void sheet_value(sheet *s, const char *key, json_t *value);

/* FOLDER/NAME.csv (RFC 4180) and FOLDER/NAME.jsonl, each whole or not at all. No value is an empty
 * cell, and null. */
int sheet_write(const sheet *s, const char *folder, const char *name, sl_error *error);

#endif

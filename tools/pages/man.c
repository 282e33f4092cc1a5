/* man.c - a man page; man(7) says what the macros mean. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages/pages.h"
#include "starling/version.h"

/* What groff would read otherwise: hyphens, escapes, requests, letters beyond ASCII. */
static void put_text(const char *text) {
    bool at_start = true;
    for (const char *c = text; *c != '\0'; c++) {
        if (at_start && (*c == '.' || *c == '\''))
            fputs("\\&", stdout);
        at_start = *c == '\n';
        if (*c == '-')
            fputs("\\-", stdout);
        else if (*c == '\\')
            fputs("\\e", stdout);
        else if (strncmp(c, "±", strlen("±")) == 0) {
            fputs("\\(+-", stdout);
            c += strlen("±") - 1;
        } else
            putchar(*c);
    }
}

static void put_upper(const char *text) {
    for (; *text != '\0'; text++)
        putchar(toupper((unsigned char)*text));
}

/* "starling-topology-make" */
static void page_name(const command *c, char *out, size_t bytes) {
    snprintf(out, bytes, "starling%s%s", c->name[0] != '\0' ? "-" : "", c->name);
    for (char *at = out; *at != '\0'; at++)
        *at = *at == ' ' ? '-' : *at;
}

static void put_section(const char *title) {
    fputs(".SH ", stdout);
    putchar('"');
    put_upper(title);
    puts("\"");
}

static void put_paragraphs(const char *text) {
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t bytes = end != NULL ? (size_t)(end - text) : strlen(text);
        char *paragraph = strndup(text, bytes);
        puts(".PP");
        put_text(paragraph != NULL ? paragraph : "");
        putchar('\n');
        free(paragraph);
        text += bytes + (end != NULL ? 2 : 0);
    }
}

/* "\fB\-\-out\fR \fIDIR\fR" */
static void put_option_name(const command_option *o, bool shortest) {
    if (o->letter != 0)
        printf("\\fB\\-%c\\fR%s", o->letter, shortest ? "" : ", ");
    if (o->letter == 0 || !shortest) {
        fputs("\\fB\\-\\-", stdout);
        put_text(o->name);
        fputs("\\fR", stdout);
    }
    if (o->argument != NULL) {
        fputs(" \\fI", stdout);
        put_text(o->argument);
        fputs("\\fR", stdout);
    }
}

static void put_synopsis(const command *c) {
    put_section("synopsis");
    printf("\\fBstarling%s", c->name[0] != '\0' ? " " : "");
    put_text(c->name);
    fputs("\\fR", stdout);
    if (c->operands != NULL)
        printf(c->operands_min > 0 ? " \\fI%s\\fR%s" : " [\\fI%s\\fR%s]", c->operands,
               c->operands_max > 1 ? "..." : "");
    if (c->commands != NULL)
        fputs(" \\fICOMMAND\\fR ...", stdout);
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++) {
        if ((*o)->hidden)
            continue;
        fputs((*o)->needed ? " " : " [", stdout);
        put_option_name(*o, true);
        printf("%s%s", (*o)->repeats ? " ..." : "", (*o)->needed ? "" : "]");
    }
    if (c->other_options != NULL) {
        fputs(" [", stdout);
        put_text(c->other_options);
        fputs(" ...]", stdout);
    }
    putchar('\n');
}

static void put_options(const command *c) {
    put_section("options");
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++) {
        if ((*o)->hidden)
            continue;
        puts(".TP");
        put_option_name(*o, false);
        putchar('\n');
        put_text((*o)->help);
        fputs((*o)->repeats ? "; may be repeated" : "", stdout);
        if ((*o)->otherwise != NULL) {
            fputs(" (default: ", stdout);
            put_text((*o)->otherwise);
            putchar(')');
        }
        putchar('\n');
    }
    puts(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\na shorter form of this page");
}

/* A section's line: a row, or prose. */
static void put_row(char *line) {
    size_t bytes = section_name_bytes(line);
    char *name = line + strspn(line, " "), *text = name + bytes;
    if (bytes == 0) {
        puts(".PP");
        put_text(name);
        putchar('\n');
        return;
    }
    *text++ = '\0';
    puts(".TP");
    fputs("\\fB", stdout);
    put_text(name);
    fputs("\\fR\n", stdout);
    put_text(text + strspn(text, " "));
    putchar('\n');
}

static void put_rows(const help_section *s) {
    char *rows = s->rows(), *rest = rows, *line;
    put_section(s->title);
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0')
            put_row(line);
    free(rows);
}

static void put_commands(const command *c) {
    char name[64];
    put_section("commands");
    for (const command *const *sub = c->commands; *sub != NULL; sub++) {
        page_name(*sub, name, sizeof name);
        fputs(".TP\n\\fB", stdout);
        put_text(name);
        fputs("\\fR(1)\n", stdout);
        put_text((*sub)->summary);
        putchar('\n');
    }
}

void man_print(const command *c) {
    char name[64];
    page_name(c, name, sizeof name);
    fputs(".TH ", stdout);
    put_upper(name);
    printf(" 1 \"\" \"Starling %s\" \"Starling Manual\"\n", sl_version());
    put_section("name");
    put_text(name);
    fputs(" \\- ", stdout);
    put_text(c->summary);
    putchar('\n');
    put_synopsis(c);
    put_section("description");
    put_paragraphs(c->text);
    if (c->commands != NULL)
        put_commands(c);
    else
        put_options(c);
    for (size_t i = 0; i < SECTIONS_MAX && c->sections[i].title != NULL; i++)
        put_rows(&c->sections[i]);
    put_section("see also");
    puts(c->name[0] != '\0' ? "\\fBstarling\\fR(1)" : "\\fBstarling\\-run\\fR(1)");
}

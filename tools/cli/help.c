/* help.c - `--help` of a command, from its table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/text_table.h"

enum { WIDTH = 80, NAME_COLUMNS_MAX = 22 };

const char *command_word(const command *c) {
    const char *space = strrchr(c->name, ' ');
    return space != NULL ? space + 1 : c->name;
}

/* "name          text", the text broken and indented; a long name has a line of its own. */
static void print_row(const char *name, const char *text, size_t columns) {
    char head[128];
    bool fits = text_width(name) <= columns;
    if (!fits)
        printf("  %s\n", name);
    snprintf(head, sizeof head, "  %s%*s", fits ? name : "",
             (int)(columns - (fits ? text_width(name) : 0)) + 2, "");
    print_wrapped(head, text, WIDTH);
}

/* ---- usage ---- */

typedef struct usage {
    size_t at, indent;
} usage;

static void put(usage *u, const char *part) {
    if (u->at > u->indent && u->at + 1 + strlen(part) > WIDTH) {
        printf("\n%*s", (int)u->indent, "");
        u->at = u->indent;
    }
    u->at += (size_t)printf("%s%s", u->at > u->indent ? " " : "", part);
}

static void put_option(usage *u, const command_option *o) {
    char call[64], part[96];
    const char *dots = o->repeats ? " ..." : "";
    if (o->letter != 0)
        snprintf(call, sizeof call, "-%c", o->letter);
    else
        snprintf(call, sizeof call, "--%s", o->name);
    snprintf(part, sizeof part, "%s%s%s%s%s%s", o->needed ? "" : "[", call,
             o->argument != NULL ? " " : "", o->argument != NULL ? o->argument : "", dots,
             o->needed ? "" : "]");
    put(u, part);
}

static void print_usage(const command *c) {
    usage u = {0};
    char part[96];
    u.at = u.indent =
        (size_t)printf("usage: starling%s%s ", c->name[0] != '\0' ? " " : "", c->name);
    if (c->operands != NULL) {
        const bool needed = c->operands_min > 0;
        snprintf(part, sizeof part, "%s%s%s%s", needed ? "" : "[", c->operands,
                 c->operands_max > 1 ? "..." : "", needed ? "" : "]");
        put(&u, part);
    }
    if (c->commands != NULL)
        put(&u, "COMMAND ...");
    for (int needed = 1; needed >= 0; needed--)
        for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++)
            if ((*o)->needed == needed && !(*o)->hidden)
                put_option(&u, *o);
    if (c->other_options != NULL) {
        snprintf(part, sizeof part, "[%s ...]", c->other_options);
        put(&u, part);
    }
    puts("\n");
}

/* ---- the parts ---- */

static void print_paragraphs(const char *text) {
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t bytes = end != NULL ? (size_t)(end - text) : strlen(text);
        char *paragraph = strndup(text, bytes);
        if (paragraph != NULL)
            print_wrapped("", paragraph, WIDTH);
        free(paragraph);
        putchar('\n');
        text += bytes + (end != NULL ? 2 : 0);
    }
}

static void option_name(char *out, size_t bytes, const command_option *o) {
    char letter[8] = "";
    if (o->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(out, bytes, "%s--%s%s%s", letter, o->name, o->argument != NULL ? " " : "",
             o->argument != NULL ? o->argument : "");
}

static void print_options(const command *c) {
    char name[96], text[512];
    size_t columns = strlen("-h, --help");
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++) {
        option_name(name, sizeof name, *o);
        size_t width = (*o)->hidden ? 0 : text_width(name);
        columns = width > columns && width <= NAME_COLUMNS_MAX ? width : columns;
    }
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++) {
        if ((*o)->hidden)
            continue;
        option_name(name, sizeof name, *o);
        snprintf(
            text, sizeof text, "%s%s%s%s%s", (*o)->help, (*o)->repeats ? "; may be repeated" : "",
            (*o)->otherwise != NULL ? " (default: " : "",
            (*o)->otherwise != NULL ? (*o)->otherwise : "", (*o)->otherwise != NULL ? ")" : "");
        print_row(name, text, columns);
    }
    print_row("-h, --help", "this text", columns);
}

size_t section_name_bytes(const char *line) {
    const char *name = line + strspn(line, " "), *end = strstr(name, "  ");
    if (end == NULL && name > line)
        end = name + strcspn(name, " ");
    return end != NULL ? (size_t)(end - name) : 0;
}

static size_t name_columns(const char *rows) {
    size_t columns = 0;
    for (const char *line = rows; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *one = strndup(line, strcspn(line, "\n"));
        size_t bytes = one != NULL ? section_name_bytes(one) : 0;
        columns = bytes > columns && bytes <= NAME_COLUMNS_MAX ? bytes : columns;
        free(one);
    }
    return columns;
}

static void print_line(char *line, size_t columns) {
    size_t bytes = section_name_bytes(line);
    if (bytes == 0) {
        print_wrapped("", line, WIDTH);
        return;
    }
    char *name = line + strspn(line, " "), *text = name + bytes;
    if (*text != '\0')
        *text++ = '\0';
    print_row(name, text + strspn(text, " "), columns);
}

static void print_section(const help_section *s) {
    char *rows = s->rows(), *rest = rows, *line;
    size_t columns = name_columns(rows);
    printf("\n%s:\n", s->title);
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0' || (rest != NULL && *rest != '\0'))
            print_line(line, columns);
    free(rows);
}

static void print_commands(const command *c) {
    puts("commands:");
    for (const command *const *sub = c->commands; *sub != NULL; sub++)
        print_row(command_word(*sub), (*sub)->summary, strlen("topology"));
    printf("\n  starling help%s%s COMMAND   what a command takes\n", c->name[0] != '\0' ? " " : "",
           c->name);
}

void help_print(const command *c) {
    print_usage(c);
    print_paragraphs(c->text);
    if (c->commands != NULL)
        print_commands(c);
    else
        print_options(c);
    for (size_t i = 0; i < SECTIONS_MAX && c->sections[i].title != NULL; i++)
        print_section(&c->sections[i]);
}

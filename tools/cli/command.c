/* command.c - see command.h. */
#include "cli/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/complain.h"
#include "starling/experiment.h"
#include "starling/suggest.h"

enum { CANDIDATES_MAX = 256 };

/* "starling run": how the command is called. */
static const char *called(const command *c, char text[64]) {
    snprintf(text, 64, "starling%s%s", c->name[0] != '\0' ? " " : "", c->name);
    return text;
}

/* ---- values ---- */

int take_switch(void *request, const command_option *row, const char *text) {
    (void)text;
    *(bool *)((char *)request + row->offset) = true;
    return TOOL_OK;
}

int take_text(void *request, const command_option *row, const char *text) {
    *(const char **)((char *)request + row->offset) = text;
    return TOOL_OK;
}

int take_whole(void *request, const command_option *row, const char *text) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < row->min ||
        value > row->max) {
        complain("--%s %s: expected a whole number from %llu to %llu", row->name, text,
                 (unsigned long long)row->min, (unsigned long long)row->max);
        return TOOL_USAGE;
    }
    *(uint64_t *)((char *)request + row->offset) = value;
    return TOOL_OK;
}

int take_fraction(void *request, const command_option *row, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0 && value < 1)) {
        complain("--%s %s: expected a number above 0 and below 1", row->name, text);
        return TOOL_USAGE;
    }
    *(double *)((char *)request + row->offset) = value;
    return TOOL_OK;
}

/* ---- options ---- */

static const command_option *find_option(const command *c, const char *name, size_t length) {
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++) {
        bool is_long = length > 2 && strlen((*o)->name) == length - 2 &&
                       strncmp((*o)->name, name + 2, length - 2) == 0;
        if (name[1] == '-' ? is_long : length == 2 && name[1] == (*o)->letter)
            return *o;
    }
    return NULL;
}

static bool takes_settings(const command *c) {
    const command_option *set = find_option(c, "--set", strlen("--set"));
    return set != NULL && set->offer == OFFER_SETTING;
}

/* A key of the experiment that is called `word` as a whole, or in its last part. */
static const char *find_key(const char *word) {
    sl_key_list keys;
    const char *found = NULL;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        const char *path = keys.items[i]->path, *dot = strrchr(path, '.');
        if (strcmp(path, word) == 0)
            return path;
        if (dot != NULL && strcmp(dot + 1, word) == 0)
            found = path;
    }
    return found;
}

/* What may have been meant by an option that there is not, "" if nothing is near. */
static void suggest_option(const command *c, const char *name, const char *value, char *out,
                           size_t bytes) {
    const char *known[CANDIDATES_MAX], *near;
    size_t count = 0;
    char key[64];
    out[0] = '\0';
    snprintf(key, sizeof key, "%s", name);
    for (char *at = key; *at != '\0'; at++)
        *at = *at == '-' ? '_' : *at;
    const char *found = takes_settings(c) ? find_key(sl_usual_name(key)) : NULL;
    if (found != NULL) {
        snprintf(out, bytes, "; did you mean --set %s=%s?", found, value);
        return;
    }
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++)
        if (!(*o)->hidden)
            known[count++] = (*o)->name;
    known[count++] = "help";
    near = sl_suggest(name, known, count);
    if (near != NULL)
        snprintf(out, bytes, "; did you mean --%s?", near);
}

/* Values are numbers, names and paths: none looks like an option. */
static bool is_value(const char *text) {
    return text != NULL && (text[0] != '-' || text[1] == '\0' || isdigit((unsigned char)text[1]));
}

static int refuse_option(const command *c, const char *text, size_t length, const char *next) {
    char name[64], near[256] = "", self[64];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    const char *value = text[length] == '=' ? text + length + 1 : is_value(next) ? next : "VALUE";
    if (strncmp(name, "--", 2) == 0)
        suggest_option(c, name + 2, value, near, sizeof near);
    called(c, self);
    complain("%s: unknown option %s%s (%s --help)", c->name, name, near, self);
    return TOOL_USAGE;
}

/* One option at argv[*at]; moves *at to its last argument. */
static int take_option(const command *c, void *request, int argc, char **argv, int *at) {
    const char *text = argv[*at], *value = NULL;
    size_t length = strcspn(text, "=");
    const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
    const command_option *o = find_option(c, text, length);
    bool is_other = o == NULL && c->take_other != NULL && strncmp(text, "--", 2) == 0;
    if (o == NULL && !is_other)
        return refuse_option(c, text, length, next);
    if (o != NULL && o->argument == NULL) {
        if (text[length] == '\0')
            return o->take(request, o, NULL);
        complain("%s: --%s takes no value, '%s' given", c->name, o->name, text + length + 1);
        return TOOL_USAGE;
    }
    if (text[length] == '=')
        value = text + length + 1;
    else if (is_value(next))
        value = argv[++*at];
    if (value == NULL) {
        complain("%s: %s: a value is missing", c->name, text);
        return TOOL_USAGE;
    }
    if (o != NULL)
        return o->take(request, o, value);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length - 2, text + 2);
    return c->take_other(request, name, value);
}

/* ---- operands ---- */

static int check_operands(const command *c, char *const *operands, size_t count) {
    char self[64];
    called(c, self);
    if (count >= c->operands_min && count <= c->operands_max)
        return TOOL_OK;
    if (c->operands_max == 0)
        complain("%s takes no file, '%s' given (%s --help)", c->name, operands[0], self);
    else if (count < c->operands_min)
        complain("%s: which %s? (%s --help)", c->name, c->operands, self);
    else
        complain("%s takes one %s, '%s' is another (%s --help)", c->name, c->operands,
                 operands[c->operands_max], self);
    return TOOL_USAGE;
}

static bool asks_for_help(const char *text) {
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

/* Parses into `request` and `operands` (argc), and runs the command. */
static int parse_and_run(const command *c, int argc, char **argv, void *request, char **operands) {
    size_t count = 0;
    int code = TOOL_OK;
    bool only_operands = false;
    for (int i = 1; i < argc && code == TOOL_OK; i++) {
        bool is_option = !only_operands && argv[i][0] == '-' && argv[i][1] != '\0';
        if (!is_option) {
            operands[count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (asks_for_help(argv[i])) {
            help_print(c);
            return TOOL_OK;
        } else {
            code = take_option(c, request, argc, argv, &i);
        }
    }
    if (code == TOOL_OK)
        code = check_operands(c, operands, count);
    return code == TOOL_OK ? c->run(request, operands, count) : code;
}

static int run_leaf(const command *c, int argc, char **argv) {
    void *request = calloc(1, c->request_bytes + 1);
    char **operands = calloc((size_t)argc, sizeof *operands);
    int code = TOOL_USAGE;
    if (request == NULL || operands == NULL) {
        complain("out of memory");
    } else {
        if (c->set_defaults != NULL)
            c->set_defaults(request);
        code = parse_and_run(c, argc, argv, request, operands);
        if (c->close != NULL)
            c->close(request);
    }
    free(operands);
    free(request);
    return code;
}

/* ---- subcommands ---- */

static const command *find_command(const command *c, const char *word) {
    for (const command *const *sub = c->commands; *sub != NULL; sub++)
        if (strcmp(command_word(*sub), word) == 0)
            return *sub;
    return NULL;
}

/* The command nearest to `word`, among those below `c`; NULL: none is near. */
static const command *nearest_command(const command *c, const char *word) {
    const char *words[CANDIDATES_MAX] = {0};
    const command *all[CANDIDATES_MAX];
    size_t count = 0;
    for (const command *const *sub = c->commands; *sub != NULL; sub++) {
        all[count++] = *sub;
        for (const command *const *inner = (*sub)->commands; inner != NULL && *inner != NULL;
             inner++)
            all[count++] = *inner;
    }
    for (size_t i = 0; i < count; i++)
        words[i] = command_word(all[i]);
    const char *near = sl_suggest(word, words, count);
    for (size_t i = 0; i < count; i++)
        if (words[i] == near)
            return all[i];
    return NULL;
}

static int refuse_command(const command *c, const char *word) {
    char self[64], all[256] = "";
    const command *near = nearest_command(c, word);
    const char *where = c->name[0] != '\0' ? c->name : "", *colon = c->name[0] != '\0' ? ": " : "";
    called(c, self);
    for (const command *const *sub = c->commands; *sub != NULL; sub++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", all[0] != '\0' ? ", " : "",
                 command_word(*sub));
    if (near != NULL)
        complain("%s%sunknown command '%s'; did you mean starling %s? (%s --help)", where, colon,
                 word, near->name, self);
    else
        complain("%s%sunknown command '%s'; one of %s (%s --help)", where, colon, word, all, self);
    return TOOL_USAGE;
}

/* `starling help topology make` */
static int help_on(const command *c, int count, char **words) {
    for (int i = 0; i < count; i++) {
        const command *sub = c->commands != NULL ? find_command(c, words[i]) : NULL;
        if (sub == NULL && c->commands != NULL)
            return refuse_command(c, words[i]);
        c = sub != NULL ? sub : c;
    }
    help_print(c);
    return TOOL_OK;
}

int command_main(const command *c, int argc, char **argv) {
    if (c->commands == NULL)
        return run_leaf(c, argc, argv);
    if (argc < 2) {
        help_print(c);
        return TOOL_USAGE;
    }
    if (asks_for_help(argv[1]))
        return help_on(c, 0, NULL);
    if (strcmp(argv[1], "help") == 0)
        return help_on(c, argc - 2, argv + 2);
    const command *sub = find_command(c, argv[1]);
    return sub != NULL ? command_main(sub, argc - 1, argv + 1) : refuse_command(c, argv[1]);
}

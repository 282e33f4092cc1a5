/* zsh.c - completion for zsh, by _arguments; zshcompsys(1) says what its words mean. */
#include <stdio.h>
#include <string.h>

#include "pages/pages.h"

/* Within single quotes, and within the brackets or behind the colons of _arguments. */
static void put_quoted(const char *text) {
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text) != NULL)
            printf("\\%c", *text);
        else
            putchar(*text);
}

static void put_offer(offer kind, const char *(*words)(size_t index)) {
    static const char *const actions[] = {" ", "_files", "_files -/", "_starling_setting", "("};
    fputs(actions[kind], stdout);
    for (size_t i = 0; kind == OFFER_WORDS && words(i) != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", words(i));
    if (kind == OFFER_WORDS)
        putchar(')');
}

static void put_option(const command_option *o) {
    for (int form = o->letter != 0 ? 0 : 1; form < 2; form++) {
        printf("            '%s", o->repeats ? "*" : "");
        if (form == 0)
            printf("-%c", o->letter);
        else
            printf("--%s%s", o->name, o->argument != NULL ? "=" : "");
        putchar('[');
        put_quoted(o->help);
        putchar(']');
        if (o->argument != NULL) {
            putchar(':');
            put_quoted(o->argument);
            putchar(':');
            put_offer(o->offer, o->words);
        }
        puts("' \\");
    }
}

static void put_leaf(const command *c) {
    printf("    '%s')\n        _arguments \\\n", c->name);
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++)
        if (!(*o)->hidden)
            put_option(*o);
    fputs("            '(-h --help)'{-h,--help}'[how it is used]'", stdout);
    if (c->operands != NULL) {
        printf(" \\\n            '%s:%s:",
               c->operands_max > 1   ? "*"
               : c->operands_min > 0 ? "1"
                                     : "1:",
               c->operands);
        put_offer(c->offer, c->words);
        putchar('\'');
    }
    puts(" ;;");
}

static void put_commands(const command *c) {
    printf("    '%s')\n        commands=(\n", c->name);
    for (const command *const *sub = c->commands; *sub != NULL; sub++) {
        printf("            '%s:", command_word(*sub));
        put_quoted((*sub)->summary);
        puts("'");
    }
    puts("        )\n        _describe command commands ;;");
}

static void put_settings(void) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    puts("_starling_setting() {\n    if compset -P '*='; then\n        "
         "case ${${IPREFIX%=}##*=} in");
    for (size_t i = 0; i < keys.count; i++) {
        if (key_value(keys.items[i], 0) == NULL)
            continue;
        printf("        %s) compadd --", keys.items[i]->path);
        for (size_t j = 0; key_value(keys.items[i], j) != NULL; j++)
            printf(" %s", key_value(keys.items[i], j));
        puts(" ;;");
    }
    fputs("        esac\n    else\n        compadd -S = --", stdout);
    for (size_t i = 0; i < keys.count; i++)
        printf(" \\\n            %s", keys.items[i]->path);
    puts("\n    fi\n}\n");
}

void zsh_print(void) {
    const command *const *leaves = leaf_commands();
    puts("#compdef starling\n# zsh completion of starling(1), generated from the command's "
         "tables.\n");
    put_settings();
    puts("_starling() {\n"
         "    local name=\n"
         "    local -a commands\n"
         "    # The command's words, which _arguments is not to see.\n"
         "    while ((CURRENT > 2)) && [[ ${words[2]} != -* && -z $(_starling_leaf $name) ]]; do\n"
         "        [[ ${words[2]} != help ]] && name+=${name:+ }${words[2]}\n"
         "        shift words\n"
         "        ((CURRENT--))\n"
         "    done\n"
         "    case $name in");
    put_commands(&starling_command);
    for (const command *const *c = starling_command.commands; *c != NULL; c++)
        if ((*c)->commands != NULL)
            put_commands(*c);
    for (size_t i = 0; leaves[i] != NULL; i++)
        put_leaf(leaves[i]);
    puts("    esac\n}\n\n_starling_leaf() {\n    case \"$*\" in");
    for (size_t i = 0; leaves[i] != NULL; i++)
        printf("    '%s') echo yes ;;\n", leaves[i]->name);
    puts("    esac\n}\n\n_starling \"$@\"");
}

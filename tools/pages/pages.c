/* pages.c - writes one page: `pages man [COMMAND ...]`, `pages bash`, `pages zsh`. */
#include "pages/pages.h"

#include <stdio.h>
#include <string.h>

enum { LEAVES_MAX = 64 };

const command *const *leaf_commands(void) {
    static const command *leaves[LEAVES_MAX];
    size_t count = 0;
    for (const command *const *c = starling_command.commands; *c != NULL; c++)
        if ((*c)->commands == NULL)
            leaves[count++] = *c;
        else
            for (const command *const *inner = (*c)->commands; *inner != NULL; inner++)
                leaves[count++] = *inner;
    leaves[count] = NULL;
    return leaves;
}

const char *key_value(const sl_key *key, size_t index) {
    static const char *const switches[] = {"true", "false", "auto"};
    switch (key->type) {
    case SL_KEY_BOOL:
        return index < 2 ? switches[index] : NULL;
    case SL_KEY_SWITCH:
        return index < 3 ? switches[index] : NULL;
    case SL_KEY_SERVER:
        return index < 1 ? "sharded" : NULL;
    case SL_KEY_TEXT:
    case SL_KEY_CHOICE:
        return sl_key_choice(key, index);
    case SL_KEY_PATH:
    case SL_KEY_U32:
    case SL_KEY_U64:
    case SL_KEY_REAL:
    case SL_KEY_REALS:
    case SL_KEY_FACTORS:
    case SL_KEY_U32S:
    case SL_KEY_U64S:
        return NULL;
    }
    return NULL;
}

static const command *find(const command *c, const char *word) {
    for (const command *const *sub = c->commands; sub != NULL && *sub != NULL; sub++)
        if (strcmp(command_word(*sub), word) == 0)
            return *sub;
    return NULL;
}

static int print_man(int count, char **words) {
    const command *c = &starling_command;
    for (int i = 0; i < count && c != NULL; i++)
        c = find(c, words[i]);
    if (c != NULL)
        man_print(c);
    return c != NULL ? 0 : 2;
}

int main(int argc, char **argv) {
    if (argc >= 2 && strcmp(argv[1], "man") == 0)
        return print_man(argc - 2, argv + 2);
    if (argc == 2 && strcmp(argv[1], "bash") == 0)
        bash_print();
    else if (argc == 2 && strcmp(argv[1], "zsh") == 0)
        zsh_print();
    else
        return 2;
    return 0;
}

/* pages.c - writes one page: `pages man [COMMAND ...]`, `pages bash`, `pages zsh`. */
#include "pages/pages.h"

#include <stdio.h>
#include <string.h>

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

/* pages.h - man pages and completion, from the command's tables; run while Starling is built. */
#ifndef PAGES_H
#define PAGES_H

#include "cli/command.h"
#include "starling/experiment.h"

/* To standard output. */
void man_print(const command *c);
void bash_print(void);
void zsh_print(void);

/* All commands below `c` that have no subcommands, up to NULL; static. */
const command *const *leaf_commands(void);
/* Value `index` of a key that has known ones; NULL: there are no more. */
const char *key_value(const sl_key *key, size_t index);

#endif

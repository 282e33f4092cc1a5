/* tables.c - what completion asks of the tables; see pages.h. */
#include <stddef.h>

#include "pages/pages.h"

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
    case SL_KEY_COUNT:
        return index < 1 ? "auto" : NULL;
    case SL_KEY_PARAMETER:
        return index > 0 ? NULL : key->choices != NULL ? key->choices[0] : "auto";
    case SL_KEY_TEXT:
    case SL_KEY_CHOICE:
    case SL_KEY_CHOICE_OR_REALS:
        return sl_key_choice(key, index);
    case SL_KEY_PATH:
    case SL_KEY_U32:
    case SL_KEY_U64:
    case SL_KEY_U64_BY_RANK:
    case SL_KEY_REAL:
    case SL_KEY_REAL_OR_SETS:
    case SL_KEY_REALS:
    case SL_KEY_FACTORS:
    case SL_KEY_ROWS:
    case SL_KEY_U32S:
    case SL_KEY_U64S:
        return NULL;
    }
    return NULL;
}

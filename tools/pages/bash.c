/* bash.c - completion for bash: the tables as functions of `case`, below them the code that asks
 * them. It needs nothing but bash, and works whether or not COMP_WORDBREAKS holds = and :. */
#include <stdio.h>

#include "pages/pages.h"

static const char code[] =
    "# The words of standard input that begin with the value go to COMPREPLY, behind the head.\n"
    "_starling_reply() {\n"
    "    local word\n"
    "    while read -r word; do\n"
    "        [[ -n $word && $word == \"$value\"* ]] && COMPREPLY+=(\"$head$word\")\n"
    "    done\n"
    "}\n"
    "\n"
    "# Completes a value of this kind: file, folder, setting, or words and the words.\n"
    "_starling_complete() {\n"
    "    local key\n"
    "    case $1 in\n"
    "    file)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        _starling_reply < <(compgen -f -- \"$value\") ;;\n"
    "    folder)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        _starling_reply < <(compgen -d -- \"$value\") ;;\n"
    "    setting)\n"
    "        if [[ $value == *=* ]]; then\n"
    "            key=${value%%=*} head+=$key= value=${value#*=}\n"
    "            _starling_reply < <(printf '%s\\n' $(_starling_values \"$key\"))\n"
    "        else\n"
    "            compopt -o nospace 2>/dev/null\n"
    "            _starling_reply < <(printf '%s=\\n' $_starling_keys)\n"
    "        fi ;;\n"
    "    words)\n"
    "        shift\n"
    "        _starling_reply < <(printf '%s\\n' \"$@\") ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_starling() {\n"
    "    local words=() word piece=${COMP_WORDS[COMP_CWORD]} before=${COMP_LINE:0:COMP_POINT}\n"
    "    local i command= current head= value kind strip\n"
    "    COMPREPLY=()\n"
    "    # What COMP_WORDBREAKS splits at = and : is one word.\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((${#words[@]} > 1)) && [[ $word == [=:]* || ${words[-1]} == *[=:] ]] &&\n"
    "            [[ -n $word || $before != *' ' ]]; then\n"
    "            words[-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    current=${words[-1]} value=${words[-1]}\n"
    "    for word in \"${words[@]:1:${#words[@]}-2}\"; do\n"
    "        [[ -z $command && $word == help ]] && continue\n"
    "        [[ \" $(_starling_commands \"$command\") \" == *\" $word \"* ]] || break\n"
    "        command+=${command:+ }$word\n"
    "    done\n"
    "    kind=$(_starling_argument \"$command ${words[-2]}\")\n"
    "    if [[ $current == --*=* ]]; then\n"
    "        head=${current%%=*}= value=${current#*=}\n"
    "        _starling_complete $(_starling_argument \"$command ${current%%=*}\")\n"
    "    elif [[ -n $kind ]]; then\n"
    "        _starling_complete $kind\n"
    "    elif [[ $current == -* ]]; then\n"
    "        _starling_complete words $(_starling_options \"$command\")\n"
    "    elif [[ -n $(_starling_commands \"$command\") ]]; then\n"
    "        _starling_complete words $(_starling_commands \"$command\")\n"
    "    else\n"
    "        _starling_complete $(_starling_operand \"$command\")\n"
    "    fi\n"
    "    # bash replaces only the piece after the last break.\n"
    "    if [[ $piece != \"$current\" ]]; then\n"
    "        strip=${current%\"$piece\"}\n"
    "        [[ $piece == [=:] ]] && strip=$current\n"
    "        COMPREPLY=(\"${COMPREPLY[@]#\"$strip\"}\")\n"
    "    fi\n"
    "}\n"
    "complete -F _starling starling\n";

static void put_offer(offer kind, const char *(*words)(size_t index)) {
    static const char *const names[] = {"nothing", "file", "folder", "setting", "words"};
    fputs(names[kind], stdout);
    for (size_t i = 0; kind == OFFER_WORDS && words(i) != NULL; i++)
        printf(" %s", words(i));
}

static void put_commands(const command *c, const char *more) {
    printf("    \"%s\") echo \"", c->name);
    for (const command *const *sub = c->commands; *sub != NULL; sub++)
        printf("%s%s", sub != c->commands ? " " : "", command_word(*sub));
    printf("%s\" ;;\n", more);
}

static void put_options(const command *c) {
    printf("    \"%s\") echo \"", c->name);
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++)
        if (!(*o)->hidden)
            printf("--%s ", (*o)->name);
    puts("--help\" ;;");
}

static void put_arguments(const command *c) {
    for (const command_option *const *o = c->options; o != NULL && *o != NULL; o++) {
        if ((*o)->hidden || (*o)->argument == NULL)
            continue;
        printf("    \"%s --%s\"", c->name, (*o)->name);
        if ((*o)->letter != 0)
            printf(" | \"%s -%c\"", c->name, (*o)->letter);
        fputs(") echo \"", stdout);
        put_offer((*o)->offer, (*o)->words);
        puts("\" ;;");
    }
}

static void put_keys(void) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    fputs("_starling_keys=\"", stdout);
    for (size_t i = 0; i < keys.count; i++)
        printf("%s%s", i > 0 ? "\n" : "", keys.items[i]->path);
    puts("\"\n\n_starling_values() {\n    case $1 in");
    for (size_t i = 0; i < keys.count; i++) {
        if (key_value(keys.items[i], 0) == NULL)
            continue;
        printf("    %s) echo \"", keys.items[i]->path);
        for (size_t j = 0; key_value(keys.items[i], j) != NULL; j++)
            printf("%s%s", j > 0 ? " " : "", key_value(keys.items[i], j));
        puts("\" ;;");
    }
    puts("    esac\n}\n");
}

void bash_print(void) {
    const command *const *leaves = leaf_commands();
    puts("# bash completion of starling(1), generated from the command's tables.\n");
    puts("_starling_commands() {\n    case $1 in");
    put_commands(&starling_command, " help");
    for (const command *const *c = starling_command.commands; *c != NULL; c++)
        if ((*c)->commands != NULL)
            put_commands(*c, "");
    puts("    esac\n}\n\n_starling_options() {\n    case $1 in\n    \"\") echo \"--help "
         "--version\" ;;");
    for (size_t i = 0; leaves[i] != NULL; i++)
        put_options(leaves[i]);
    puts("    *) echo \"--help\" ;;\n    esac\n}\n\n_starling_argument() {\n    case $1 in");
    for (size_t i = 0; leaves[i] != NULL; i++)
        put_arguments(leaves[i]);
    puts("    esac\n}\n\n_starling_operand() {\n    case $1 in");
    for (size_t i = 0; leaves[i] != NULL; i++) {
        printf("    \"%s\") echo \"", leaves[i]->name);
        put_offer(leaves[i]->offer, leaves[i]->words);
        puts("\" ;;");
    }
    puts("    esac\n}\n");
    put_keys();
    fputs(code, stdout);
}

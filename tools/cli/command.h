/* command.h - a subcommand as a table. Parsing, --help, the man page and completion follow from it,
 * so that each option stands once. */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What completion offers for a value. */
typedef enum offer { OFFER_NOTHING, OFFER_FILE, OFFER_FOLDER, OFFER_SETTING, OFFER_WORDS } offer;

/* An option. What all commands take, --help, has no row. */
typedef struct command_option {
    const char *name;      /* "out": --out */
    char letter;           /* 'o': -o; 0: none */
    const char *argument;  /* "DIR"; NULL: a switch */
    bool needed;           /* in the usage line; the command itself refuses to go without */
    bool repeats;          /* may be given more than once */
    bool hidden;           /* for other programs */
    const char *otherwise; /* the default, in words; NULL: none */
    const char *help;
    /* Stores the value (NULL for a switch) in the request: an exit code, an error line written. */
    int (*take)(void *request, const struct command_option *row, const char *text);
    size_t offset;     /* where in the request, for the functions below */
    uint64_t min, max; /* of a whole number */
    offer offer;
    const char *(*words)(size_t index); /* OFFER_WORDS; NULL ends them */
} command_option;

/* Take what most options are: bool, const char *, uint64_t, a double above 0 and below 1. */
int take_switch(void *request, const command_option *row, const char *text);
int take_text(void *request, const command_option *row, const char *text);
int take_whole(void *request, const command_option *row, const char *text);
int take_fraction(void *request, const command_option *row, const char *text);

/* A list below the options. */
typedef struct help_section {
    const char *title;
    /* Lines "name  text", two spaces between, and lines of prose. malloc'ed. */
    char *(*rows)(void);
} help_section;
enum { SECTIONS_MAX = 4 };
/* The bytes of the name that begins a line of a section, after its indent; 0: the line is prose. */
size_t section_name_bytes(const char *line);

typedef struct command {
    const char *name; /* "run", "topology make"; "": starling itself */
    const char *summary;
    const char *operands; /* "EXPERIMENT"; NULL: none */
    size_t operands_min, operands_max;
    offer offer; /* for operands */
    const char *(*words)(size_t index);
    const char *text;                      /* paragraphs, between them an empty line */
    const command_option *const *options;  /* up to NULL; NULL: none */
    const char *other_options;             /* "--PARAMETER VALUE", for `take_other`; NULL: none */
    help_section sections[SECTIONS_MAX];   /* up to one without a title */
    const struct command *const *commands; /* subcommands, up to NULL; NULL: none */
    size_t request_bytes;
    void (*set_defaults)(void *request); /* of a zeroed request; NULL: nothing to set */
    void (*close)(void *request);        /* NULL: nothing to close */
    /* Takes an option that has no row; NULL: there is none. */
    int (*take_other)(void *request, const char *name, const char *text);
    int (*run)(void *request, char *const *operands, size_t count);
} command;

/* A command that takes one file. */
#define OPERAND_FILE(name)                                                                         \
    .operands = name, .operands_min = 1, .operands_max = 1, .offer = OFFER_FILE

/* Runs what the arguments ask for: an exit code. argv[0] is the command's own name. */
int command_main(const command *c, int argc, char **argv);

/* The last word of a command's name. */
const char *command_word(const command *c);

/* `starling COMMAND --help`: at most 80 columns. */
void help_print(const command *c);

/* starling itself, and all that it can do. */
extern const command starling_command;

#endif

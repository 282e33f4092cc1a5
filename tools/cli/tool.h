/* tool.h - what the subcommands of `starling` share: common options, signals, an opened
 * experiment.
 *
 * The tools stand on the public headers only. They own what the library must not: signals,
 * processes, standard output, exit codes.
 */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/signals.h"
#include "starling/starling.h"

/* What a link is like, for predicted time. */
typedef struct link_profile {
    double bandwidth_mbit, latency_ms;
} link_profile;
enum { LINKS_MAX = 8 };

enum { OVERRIDES_MAX = 256 };

/* The request of commands that take experiments. */
typedef struct options {
    const char *file;   /* EXPERIMENT, or TOPOLOGY; the first */
    char *const *files; /* (file_count) borrowed */
    size_t file_count;
    const char *overrides[OVERRIDES_MAX];
    size_t override_count;
    const char *out;
    const char *resume; /* --resume: the folder of a run; NULL: a new one begins */
    bool has_rank;
    uint32_t rank;
    const char *roster, *master, *listen;
    int report_fd;         /* -1: none */
    bool join;             /* in place of a process that the others have lost */
    uint64_t resume_round; /* of `starling run`'s agents; 0: they agree on it */
    bool replay;           /* sim: `file` is the folder of a run, which is repeated */
    uint64_t end_after;    /* sim: the round after whose checkpoint it ends; 0: it does not */
    const char *history;   /* sim: the folder of a run whose losses are repeated; NULL: none */
    uint64_t port;         /* of hosts without one; 0: the usual */
    uint64_t run_id;
    bool agents;
    bool has_target_loss;
    double target_loss;
    link_profile links[LINKS_MAX];
    size_t link_count;
    const char *seeds;   /* compare: --seeds; NULL: those of the files */
    size_t jobs;         /* compare: runs at once; 0: not said */
    bool over_median;    /* compare: of seeds the median, not the mean */
    const char *best_by; /* compare: the column by which variants are chosen; NULL: not said */
    const char *against; /* compare: what others are measured against; NULL: not said */
    bool watch;          /* compare: tells how far the runs are */
    const char *session; /* check: "mix", "overlap"; NULL: it is no session's */
    bool open_page;      /* run: its page in the browser */
    bool wide;           /* tables with all columns; check: all lines */
    bool resolved;       /* check: the keys that it reads */
} options;

void options_set_defaults(void *request);
#define REQUEST_OPTIONS .request_bytes = sizeof(options), .set_defaults = options_set_defaults
/* The operands are files. */
void options_take_files(options *o, char *const *files, size_t count);
int options_take_out(void *request, const command_option *row, const char *path);

/* Rows of options that several commands take. */
extern const command_option option_set, option_wide, option_out;
/* --wide, of a request that has a bool `wide`. */
#define OPTION_WIDE(request)                                                                       \
    {                                                                                              \
        "wide", .help = "tables with all columns, however wide the terminal", .take = take_switch, \
                .offset = offsetof(request, wide)                                                  \
    }

/* "100:5"; TOOL_OK, or TOOL_USAGE with an error line written. */
int take_link(link_profile *out, const char *text);

/* An experiment, checked as far as it can be without starting anything. */
typedef struct trial {
    sl_experiment *experiment;
    sl_learner *learner;
    sl_task task;
    sl_plan plan;
    sl_sending sending;
    uint32_t nodes;
} trial;
int trial_open(trial *out, const options *o, sl_error *error);
/* The rest of it, once there is an experiment, and perhaps a learner that serves it. Tells its
 * warnings, but quietly. To be closed in any case. */
int trial_prepare(trial *t, bool quiet, sl_error *error);
void trial_close(trial *t);
/* sl_agent_find_path, its note to standard error. Before libfabric's first use. Refuses what only
 * the simulator does. */
int trial_find_path(const trial *t, const options *o, sl_error *error);
/* The same; its note is the caller's to tell. */
int trial_name_path(const trial *t, char note[SL_PATH_NOTE_MAX], sl_error *error);
/* The files of its key, if it names one, are as they have to be. */
int trial_check_key(const sl_experiment *experiment, sl_error *error);
/* What a run needs, and has. */
void trial_memory(const trial *t, sl_run_memory *out);
/* Refuses a run, with agents or simulated, that needs more than this host has or a process may
 * take. `where` begins the error. */
int trial_check_memory(const trial *t, const char *where, bool agents, sl_error *error);
/* trial_find_path, and refuses likewise what agents of one command cannot do. */
int trial_check_agents(const trial *t, const options *o, const char *where, sl_error *error);
/* A warning of each key that was given and has no effect, to standard error. */
void warn_of_keys(const sl_experiment *experiment);
/* A line as tell_line's, broken between words where people read it. */
void tell_wrapped(const char *text, bool wide);
/* Why its weights are lazy, to standard output, where nobody has named them. */
void say_weights(const sl_experiment *experiment);
/* warn_of_keys, and sl_experiment_warnings, to standard error. */
void trial_warn(const trial *t);

/* After a run that failed: writes the model that its folder, at `path`, remembers as the last
 * finite one (rank -1: the averaged one), and says in one line why the run failed and what there is
 * of it. folder NULL: it was closed, with all that it holds. */
void complain_of_run(const char *why, sl_folder *folder, int64_t rank, const char *path);

/* --out, or runs/NAME-YYYYmmdd-HHMMSS[SUFFIX], into path. */
void choose_folder(const options *o, const sl_experiment *experiment, const char *suffix,
                   char path[SL_PATH_MAX]);
/* What glob() finds earlier ones with. */
void choose_pattern(const sl_experiment *experiment, const char *suffix, char out[SL_PATH_MAX]);

double now_seconds(void);

extern const command run_command, agent_command, sim_command, check_command, compare_command,
    devices_command, status_command, reload_command, checkpoint_command, average_command,
    keys_command, topology_command, show_command, top_command, doctor_command;

#endif

/* log.h - lines that say what happens while a run goes on: "21:10:35 warning rank 2: ..." for
 * people; with --log json an object a line, and then all else that the command says, too. */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>

#include "cli/command.h"
#include "starling/observer.h"

/* Info goes to standard output, the others to standard error. */
typedef enum log_level { LOG_INFO, LOG_NOTICE, LOG_WARNING, LOG_ERROR } log_level;

/* Events beside those of SL_LOG_KINDS, which keep their names: constant, name, what it says. */
#define LOG_OWN_EVENTS(X)                                                                          \
    X(LOG_BEGIN, "begin", "what runs, and where it is written")                                    \
    X(LOG_ROUND, "round", "a round is recorded: what was measured")                                \
    X(LOG_SAYS, "says", "what an agent says, such as whom it waits for")                           \
    X(LOG_WARNS, "warning", "what it, or the command, warns of")                                   \
    X(LOG_LEFT, "left", "of run: an agent has left on request")                                    \
    X(LOG_RESTART, "restart", "of run: a lost agent is started again, or no more")                 \
    X(LOG_RETURN, "return", "of run: a lost agent takes part again")                               \
    X(LOG_FAILED, "failed", "of run: an agent has failed")                                         \
    X(LOG_FAILS, "error", "why the command ends")                                                  \
    X(LOG_FINISHED, "finished", "all rounds are done")
enum {
    LOG_KINDS = SL_LOG_END, /* the last one of SL_LOG_KINDS */
#define LOG_ENUM(name, text, meaning) name,
    LOG_OWN_EVENTS(LOG_ENUM)
#undef LOG_ENUM
        LOG_EVENTS
};
enum { NOBODY = -1, MYSELF = -2 };

typedef struct log_about {
    log_level level;
    unsigned event; /* LOG_*, or an sl_log_kind */
    int64_t rank;   /* who says it; MYSELF: log_of's; NOBODY: the command, of the whole run */
    int64_t peer;   /* of whom; NOBODY: of nobody else */
    uint64_t round; /* 0: of none */
} log_about;

void log_say(const log_about *about, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What an agent tells, who begins a warning with "warning: ", and a text of a round with it. */
void log_notice(int64_t rank, const char *text);
/* The same event as in the log of the run folder; nothing for people. */
void log_entry(const sl_log_entry *entry);

bool log_is_json(void);
void log_use_json(bool json);
/* Of what the lines are from now on: a run folder, and the process's rank or NOBODY. */
void log_of(const char *run, int64_t rank);
/* The levels and events of what has no other: as complain and tell_line have it. */
void log_plain(const char *text, bool fails);

/* --log, and what it is in the help. */
extern const command_option option_log;
char *log_events_help(void);

#endif

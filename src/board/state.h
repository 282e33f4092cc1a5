/* state.h - what a board knows of a run: filled in by reading, asked for by writing. */
#ifndef SL_BOARD_STATE_H
#define SL_BOARD_STATE_H

#include <jansson.h>

#include "board/tail.h"
#include "starling/asking.h"
#include "starling/board.h"
#include "starling/event_log.h"
#include "starling/experiment.h"

enum { SL_DOING_MAX = 24, SL_WORDS_MAX = 256, SL_NOTES_MAX = 8, SL_OUTCOME_MAX = 16 };

/* A line of metrics, as the strip needs it. */
typedef struct sl_sample {
    uint64_t round;
    double time_s;
    double total, gradient, encode, exchange, wait, combine; /* seconds since the first round */
} sl_sample;

typedef struct sl_down {
    double from_s, until_s; /* since 1970; until NaN: it still is */
} sl_down;

typedef struct sl_board_node {
    /* of its metrics: */
    sl_sample *samples; /* (sample_count) by time; the last one is always there */
    size_t sample_count, sample_room;
    uint64_t stride, lines; /* of each `stride` lines one sample is kept, and the last */
    double loss, accuracy;  /* of the last line */
    double bytes_sent;
    /* of its events: */
    double epoch_s;        /* since 1970, of its time 0; NaN: not known */
    bool is_clock_guessed; /* until its first line of metrics */
    bool begun, lost;
    const char *ended; /* how; NULL: it has not */
    uint64_t round;
    sl_down *downs;
    size_t down_count;
    /* of those who were asked now: */
    bool is_there, answers, heard;
    char doing[SL_DOING_MAX], words[SL_WORDS_MAX];
    uint64_t now_round;
    double still_s;
    json_t *waits_for; /* ranks; NULL: not known */
} sl_board_node;

/* One recorded round, of all that have told of it. */
typedef struct sl_recorded {
    uint64_t round;
    double loss, accuracy, apart, bytes; /* sums over so many: */
    uint32_t losses, accuracies, aparts, nodes;
    double averaged, distance; /* NaN: not known */
} sl_recorded;

/* An event that was read in this look, and not taken yet. */
typedef struct sl_fresh {
    double epoch_s;
    size_t number; /* in which it was read */
    sl_log_entry entry;
} sl_fresh;

typedef struct sl_told {
    sl_log_kind kind;
    uint32_t node, nodes; /* node: SL_LOG_ALL: all */
    uint64_t round;
    double epoch_s;
    char *text;
} sl_told;

typedef struct sl_board_edge {
    uint32_t from, to;
    double weight;
    json_t *slots; /* NULL: all */
} sl_board_edge;

/* What is known of a pair, whatever the topology is now. */
typedef struct sl_board_link {
    uint32_t from, to;
    uint64_t reconnects;
    char *protection;                      /* NULL: not known */
    double said_s, bytes, waited_s;        /* as `to` said it then; NaN: it has not */
    double mb_s, wait_share, round_trip_s; /* since; NaN: not known */
} sl_board_link;

typedef struct sl_run_facts {
    char outcome[SL_OUTCOME_MAX];
    json_t *about; /* run.json, or that of the lone agent; NULL: there is none */
    int64_t rank;  /* of a lone agent; -1: of all, or of several */
    double started_s;
} sl_run_facts;

typedef struct sl_board_state {
    sl_experiment *experiment;
    sl_run_facts run;
    uint32_t node_room, node_count; /* that may take part, and have; 0: too many to be shown */
    sl_board_node *nodes;           /* (node_room) */
    uint64_t rounds;                /* 0: not known */
    uint32_t first;                 /* the rank whose first event came first */
    double epoch_s;                 /* of that one's time 0, as the run began; NaN: unknown */
    sl_recorded *records;
    size_t record_count, record_room;
    sl_fresh *fresh; /* (fresh_count) of all files */
    size_t fresh_count, fresh_room;
    sl_told *events;
    size_t event_count;
    uint32_t *members; /* (member_count) NULL: those of the experiment's topology */
    uint32_t member_count;
    sl_topology *topology; /* of the members, in ranks; NULL: the experiment's */
    sl_board_edge *edges;
    size_t edge_count;
    json_t *positions;
    double rho; /* per round; NaN: not known */
    sl_board_link *links;
    size_t link_count, link_room;
    uint32_t *link_at; /* (node_room, node_room): to, from; 1 + place in links, 0: none */
    sl_tail *tails;
    size_t tail_count;
    char *notes[SL_NOTES_MAX];
    size_t note_count;
} sl_board_state;

/* ---- note.c: what could not be read ---- */
void sl_board_note(sl_board_state *s, const char *text);

/* ---- facts.c: run.json ---- */
int sl_run_facts_read(sl_run_facts *run, const char *folder, sl_error *error);
/* The field of run.json; borrowed; NULL: there is none. */
const char *sl_run_fact(const sl_run_facts *run, const char *name);

/* ---- network.c: who is connected to whom ---- */
/* Edges, positions and rho of the present members. */
int sl_board_connect(sl_board_state *s, sl_error *error);
/* Takes ranks (count) as the members. */
int sl_board_members(sl_board_state *s, const uint32_t *ranks, uint32_t count, sl_error *error);
void sl_board_disconnect(sl_board_state *s);
/* NULL: out of memory, or beyond what is shown. */
sl_board_link *sl_board_link_of(sl_board_state *s, uint32_t from, uint32_t to);

/* ---- records.c: metrics and consensus ---- */
int sl_board_take_metrics(sl_board_state *s, const json_t *line, sl_error *error);
int sl_board_take_consensus(sl_board_state *s, const json_t *line, sl_error *error);

/* ---- happened.c: events ---- */
/* A line of a log; taken by sl_board_take_fresh, in the order of time. */
int sl_board_keep_event(sl_board_state *s, const char *line, size_t bytes, sl_error *error);
int sl_board_take_fresh(sl_board_state *s, sl_error *error);
void sl_board_forget_fresh(sl_board_state *s);

/* ---- present.c: what agents say ---- */
/* ports (port_count): of agents that may have no socket in the folder. */
int sl_board_ask(sl_board_state *s, const char *folder, const sl_asked_port *ports,
                 size_t port_count, double patience_s, sl_error *error);

/* ---- document.c, columns.c: as JSON; NULL: out of memory ---- */
json_t *sl_board_run_json(const sl_board_state *s);
json_t *sl_board_nodes_json(const sl_board_state *s);
json_t *sl_board_edges_json(const sl_board_state *s);
json_t *sl_board_positions_json(const sl_board_state *s);
json_t *sl_board_links_json(const sl_board_state *s);
json_t *sl_board_events_json(const sl_board_state *s);
json_t *sl_board_curves_json(const sl_board_state *s);
json_t *sl_board_strip_json(const sl_board_state *s);
/* For Prometheus; malloc'ed. NULL: out of memory. */
char *sl_board_metrics_text(const sl_board_state *s);
/* What a node did between two samples; before NULL: since its first round began. */
typedef struct sl_phases {
    double compute, encode, exchange, wait;
} sl_phases;
sl_phases sl_phases_between(const sl_sample *before, const sl_sample *after);
/* Seconds that it was down, up to so many since the run began. */
double sl_down_seconds(const sl_board_node *n, double until_s);
/* A node's first line of metrics says when its first round began, which its log tells, too. */
void sl_board_set_clock(sl_board_state *s, uint32_t rank);

/* ---- grow.c: room for one more of items (count), of so many bytes each; false: no memory ---- */
bool sl_board_grow(void **items, size_t *room, size_t count, size_t bytes);

#endif

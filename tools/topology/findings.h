/* findings.h - everything that `starling topology analyse` finds out, before it prints or judges.
 */
#ifndef FINDINGS_H
#define FINDINGS_H

#include <stdio.h>

#include "cli/tool.h"

#define FINDINGS_DECAYS                                                                            \
    { 0.9, 0.99 } /* for the effective number of neighbours */
enum { FINDINGS_DECAY_COUNT = 2 };

/* What to find out. */
typedef struct inquiry {
    const sl_topology *topology;  /* borrowed; NULL: formulas of spec */
    const sl_topology_spec *spec; /* borrowed */
    const sl_links *links;        /* borrowed; NULL: no times */
    const char *note;             /* borrowed; how the topology came about; "", NULL: nothing */
    uint64_t parameters;          /* parameters of the model */
    double epsilon;               /* target consensus error */
    bool eigenvalues;             /* all of them */
} inquiry;

/* The cost of one vector a round under a compressor. */
typedef struct message_cost {
    sl_compressor_config compressor;
    double bytes;
    double serial_s, parallel_s; /* seconds of a round; NaN without links */
} message_cost;

typedef struct findings {
    inquiry asked;
    sl_topology_report report;
    sl_structure structure;
    sl_spectrum spectrum;
    double *real, *imaginary; /* (nodes) eigenvalues; NULL: not requested */
    bool by_formula;
    bool optimized; /* if the weights are fmmc or fdla: */
    sl_optimum optimum;
    double *errors; /* (error_count) ||W(k) ... W(1) - J||; schedules and asymmetric W */
    uint32_t error_count;
    uint32_t exact_after; /* 0: never */
    double gap_per_round; /* 1 - effective rho */
    double effective_rho;
    double rounds;         /* rounds to epsilon */
    double consensus_rate; /* p = 1 - ||W - J||^2 */
    sl_bounds mixing;
    double neighbours[FINDINGS_DECAY_COUNT];
    double *perron; /* (nodes); NULL: by formula, where it is 1/n */
    double perron_min, perron_max, perron_residual;
    sl_node_loss loss;
    sl_traffic traffic;
    message_cost messages[SL_COMPRESSOR_COUNT];
} findings;

/* Close it in any case. */
int findings_open(findings *out, const inquiry *asked, sl_error *error);
void findings_close(findings *f);

/* Notes on the findings: at most NOTES_MAX sentences of at most NOTE_BYTES. Returns their number.
 */
enum { NOTES_MAX = 8, NOTE_BYTES = 512 };
size_t findings_notes(const findings *f, char notes[NOTES_MAX][NOTE_BYTES]);

/* Tables are as wide as the terminal; `wide`: with all columns. */
void findings_print(const findings *f, bool wide);
/* Prints indented JSON; SL_ENOMEM. */
int findings_print_json(const findings *f, sl_error *error);

/* Does a condition such as "gap=0.01" or "connected" hold? 1: yes. 0: no, and `text` says what is
 * so. SL_EINVAL: not a condition. */
int requirement_check(const findings *f, const char *condition, char text[NOTE_BYTES],
                      sl_error *error);
/* Is it a condition? */
int requirement_parse(const char *condition, sl_error *error);
char *requirements_help(void);
/* The name of a condition; NULL: past the end. */
const char *requirement_name(size_t index);

#endif

/* live_view.h - the live view: redrawn in place on a terminal, plain lines elsewhere. */
#ifndef LIVE_VIEW_H
#define LIVE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIVE_VIEW_NAME_MAX = 24 };

/* Measurements of all nodes in the last recorded round; NaN if meaningless or unknown. */
typedef struct measured {
    uint64_t round;
    double loss;     /* mean over nodes of their batches' loss */
    double accuracy; /* mean over the nodes' models */
    double accuracy_mean_model;
    double consensus;
    double bytes_per_node; /* sent */
} measured;

typedef struct live_view {
    bool terminal;
    bool wide;
    bool quiet; /* prints nothing unless on a terminal */
    int lines_drawn;
    char name[LIVE_VIEW_NAME_MAX]; /* before each line; "": the output is this process's alone */
    uint64_t rounds, round;        /* rounds of the run; the last round that every node has begun */
    uint64_t first;                /* from which on this process measures */
    double began, drawn;           /* seconds; began: start of `first` */
    bool has_measured;
    measured last;
} live_view;

/* Lines are as wide as the terminal; `wide`: with everything. */
void live_view_open(live_view *v, uint64_t rounds, bool wide);
/* Others write to the same output: nothing is redrawn, and each line says of whom it is. */
void live_view_share(live_view *v, uint32_t rank);
/* All nodes have begun this round. */
void live_view_round(live_view *v, uint64_t round);
void live_view_measured(live_view *v, const measured *m);
/* Call it often: it redraws when due. */
void live_view_tick(live_view *v);
/* Clears the view, before other output. */
void live_view_clear(live_view *v);

#endif

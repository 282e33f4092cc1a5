/* live_view.h - the live view: redrawn in place on a terminal, plain lines elsewhere. */
#ifndef LIVE_VIEW_H
#define LIVE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was measured over all nodes in the last recorded round; NaN where it means nothing or is not
 * known. */
typedef struct measured {
    uint64_t round;
    double loss;     /* of the batches, mean over nodes */
    double accuracy; /* of the nodes' models, mean */
    double accuracy_mean_model;
    double consensus;
    double bytes_per_node; /* sent */
} measured;

typedef struct live_view {
    bool terminal;
    bool wide;
    bool quiet; /* no lines where there is no terminal */
    int lines_drawn;
    uint64_t rounds, round; /* of the run; that every node has reached */
    double began, drawn;    /* seconds; began: when the first round did */
    bool has_measured;
    measured last;
} live_view;

/* Lines as wide as the terminal; `wide`: with all that is known. */
void live_view_open(live_view *v, uint64_t rounds, bool wide);
/* Every node has begun this round. */
void live_view_round(live_view *v, uint64_t round);
void live_view_measured(live_view *v, const measured *m);
/* To be called now and then: redraws when it is time to. */
void live_view_tick(live_view *v);
/* Takes the view off the terminal, before something else is written. */
void live_view_clear(live_view *v);

#endif

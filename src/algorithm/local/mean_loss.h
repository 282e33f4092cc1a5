/* mean_loss.h - the mean of all nodes' losses since the last average, found beside an average over
 * servers: losses are in the headers of the models, up and down. One server's word counts, so that
 * all nodes have the same number.
 */
#ifndef SL_MEAN_LOSS_H
#define SL_MEAN_LOSS_H

#include "starling/algorithm.h"

/* The first of an algorithm's own numbers. */
enum {
    SL_LOSS_LAST,  /* round of the last average */
    SL_LOSS_SUM,   /* of this node's losses since */
    SL_LOSS_HEARD, /* of servers: sum of the nodes' mean losses */
    SL_LOSS_MEAN,
    SL_LOSS_NUMBERS
};

uint64_t sl_loss_rounds(const sl_state *s); /* since the last average */
void sl_loss_note(sl_state *s);             /* at each gradient */
/* Ends an average: the mean loss of the rounds that led to it. */
double sl_loss_end(sl_state *s);

#define SL_LOSS_STAGES                                                                             \
    {.plain = true,                                                                                \
     .says = sl_loss_own,                                                                          \
     .prepare = sl_local_step,                                                                     \
     .vector = sl_publish_model,                                                                   \
     .combine = sl_loss_add_model},                                                                \
    {                                                                                              \
        .plain = true, .gather = true, .says = sl_loss_of_all, .prepare = sl_average_model,        \
        .vector = sl_publish_model, .combine = sl_loss_copy_model                                  \
    }

double sl_loss_own(const sl_state *s);
double sl_loss_of_all(const sl_state *s);
void sl_loss_add_model(sl_state *s, const sl_mix *mix, size_t from, size_t count);
void sl_loss_copy_model(sl_state *s, const sl_mix *mix, size_t from, size_t count);

#endif

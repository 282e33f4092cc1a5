/* clients.h - of a federation, who trains from one exchange to the next, how long, and for how much
 * that counts.
 *
 *   before each H rounds:  S = m nodes at random, m = max(1, round(clients n)), or the next of
 *                          the lists of `clients`
 *   n_k of each k in S:    its training samples, 1, or its own number (`client_weights`)
 *   H_k:                   `local_steps`, or E ceil(n_k/B) of E `local_epochs`; H = max_k H_k
 *
 * S is drawn for each exchange, the same on all nodes. A client steps in the first H_k rounds of
 * its turn. Momentum is 0 when a turn begins.
 */
#ifndef SL_CLIENTS_H
#define SL_CLIENTS_H

#include "algorithm/own_keys.h"

extern const char *const sl_client_weight_names[];
#define SL_ROWS_CLIENTS                                                                            \
    {SL_OWN_LIST(clients, clients_of),                                                             \
     .type = SL_KEY_REAL_OR_SETS,                                                                  \
     SL_KEY_BETWEEN(1e-9, 1),                                                                      \
     .length_max = SL_COUNTS_MAX,                                                                  \
     .fallback = "1",                                                                              \
     .help = "fraction of the nodes that train from one exchange to the next, at least one; or "   \
             "lists of their ranks, taken by turns"},                                              \
        {SL_OWN_LIST(client_weights, weights_of),                                                  \
         .type = SL_KEY_CHOICE_OR_REALS,                                                           \
         SL_KEY_BETWEEN(0, 1e9),                                                                   \
         .length_max = SL_COUNTS_MAX,                                                              \
         .choices = sl_client_weight_names,                                                        \
         .fallback = "\"samples\"",                                                                \
         .help = "models are weighed by their nodes' training samples, all alike, or by a list"},  \
    {                                                                                              \
        SL_OWN_U64(local_epochs, 0, 1e6),                                                          \
            .fallback = "0",                                                                       \
            .help = "passes of a client over its samples between exchanges; 0 = local_steps"       \
    }

/* The numbers that are kept; TOTAL: sum_{k in S} n_k of those who are heard. */
enum { SL_CLIENTS_IS_ONE, SL_CLIENTS_TOTAL, SL_CLIENTS_NUMBERS };
size_t sl_clients_numbers(const sl_algorithm_config *config);

int sl_clients_check(const sl_algorithm_config *config, const sl_topology *topology,
                     sl_error *error);
/* Lists that name ranks need all of them. */
const char *sl_clients_need_all(const sl_algorithm_config *config);

/* At each gradient: is the node in S? */
void sl_clients_choose(sl_state *s);
bool sl_clients_is_one(sl_state *s);
double sl_clients_weight(const sl_state *s);
/* Their n_k count, once each: a message's first part says it. */
void sl_clients_hear(sl_state *s, const sl_mix *mix);

/* out = sum / sum_{k in S} n_k; out may be the sum. */
void sl_clients_divide(const sl_state *s, float *out, const float *sum, size_t count);

/* A client's step; the others stay where they are. */
void sl_clients_step(sl_state *s, size_t from, size_t count);
/* The momentum, of those who wait for the next turn, too. */
void sl_clients_forget(sl_state *s, size_t from, size_t count);

#endif

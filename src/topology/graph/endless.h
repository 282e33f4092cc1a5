/* endless.h - a schedule that never repeats: each round has another random graph.
 *
 * Epidemic learning (de Vos, Farhadkhani, Guerraoui, Kermarrec, Pires, Sharma: "Epidemic Learning:
 * Boosting Decentralized Learning with Randomized Communication", NeurIPS 2023) draws anew in every
 * round whom a node exchanges models with. Here nodes take random places on a ring in each round,
 * and exchange with those up to degree/2 places away; of an odd degree with the one opposite, too.
 * So W is symmetric and doubly stochastic in every round: 1/(degree + 1) for each neighbour. Of an
 * odd number of nodes and an odd degree one node has a neighbour less.
 *
 * A row is a pure function of (seed, round, place) and costs O(degree) whatever the number of
 * nodes: the places are a keyed permutation, by swap-or-not (Hoang, Morris, Rogaway, "An
 * Enciphering Scheme Based on a Card Shuffle", CRYPTO 2012), which is exact for any number.
 */
#ifndef SL_ENDLESS_H
#define SL_ENDLESS_H

#include <stdbool.h>
#include <stdint.h>

/* Of a schedule that never repeats, as many rounds are kept as an example: for its structure. */
enum { SL_ENDLESS_SHOWN = 16 };
/* After so many rounds every node has heard of every other, but for a chance below 2^-100: news
 * comes to all but a part of e^-k within log2(nodes) + k rounds. */
enum { SL_ENDLESS_HEARD = 128 };

typedef struct sl_endless {
    uint32_t nodes, degree; /* degree < nodes */
    uint64_t seed;
    bool lazy; /* (I + W)/2 */
} sl_endless;

/* The neighbours of node `i` in `round`, sorted, into peers (degree). Returns how many. */
uint32_t sl_endless_peers(const sl_endless *e, uint64_t round, uint32_t i, uint32_t *peers);

/* E ||(W - J) x||^2 / ||(I - J) x||^2 over all such graphs: (tr W'W - 1) / (nodes - 1), the same
 * for every x, since places are uniformly random. */
double sl_endless_mean_square(const sl_endless *e);

#endif

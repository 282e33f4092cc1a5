/* timeline.h - predicts how long a run takes on other links and computers, from a simulation's
 * messages.
 *
 * A simulation tells a timeline who sent how much to whom, round by round. All algorithms are
 * synchronous: the time of an event depends only on the events that it waits for. So one
 * simulation serves any number of platforms.
 *
 *   - A node computes for compute_ms / speed in each round, or as sl_network_gradient_ms says.
 *   - A message may leave when the step before it is done. The first message of an exchange may
 *     leave when the round's computing is done; if it does not need this round's gradient, when the
 *     round begins; if it needs some of it only, when that is there.
 *   - Parts leave one after the other, each once for every receiver, beginning with the next higher
 *     rank. A copy occupies the sender's uplink for bytes / bandwidth. Its first bit arrives
 * latency later; then it occupies the receiver's downlink for bytes / bandwidth.
 *   - Where a pair has a slower link of its own, a copy then passes that, each way one after the
 *     other, while the sender's uplink goes on.
 *   - A downlink takes the messages of a step in order of arrival, then those of later steps:
 *     credit keeps a neighbour that is ahead from filling the link.
 *   - A step is done when all its messages have arrived and the node's own have left. A round is
 *     done when its last step and its computing are done. */
#ifndef STARLING_TIMELINE_H
#define STARLING_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/algorithm.h"
#include "starling/api.h"
#include "starling/error.h"
#include "starling/observer.h"
#include "starling/ranges.h"
#include "starling/topology.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_timeline sl_timeline;

SL_API int sl_timeline_open(sl_timeline **out, uint32_t nodes, sl_error *error);
SL_API void sl_timeline_close(sl_timeline **timeline);

/* Events, in an order in which they can happen. sl_timeline_seconds reports a lack of memory. */
/* A message of `rank` begins; its parts follow. overlaps: it does not need this round's gradient.
 * A message without receivers is not kept. */
SL_API void sl_timeline_send(sl_timeline *timeline, uint32_t rank, uint64_t exchange, uint32_t step,
                             bool overlaps, const uint32_t *peers, uint32_t count);
/* The message that has begun needs no more of the gradient than is there after this share of the
 * computing, in (0, 1). */
SL_API void sl_timeline_ready(sl_timeline *timeline, double share);
SL_API void sl_timeline_part(sl_timeline *timeline, size_t bytes); /* with its frame's header */
/* rank has finished its round, in which it combined `frames` parts. */
SL_API void sl_timeline_end_node_round(sl_timeline *timeline, uint32_t rank, uint64_t frames);
/* All nodes are done with theirs. */
SL_API void sl_timeline_end_round(sl_timeline *timeline);
/* All messages of one round of an algorithm without edges (all-reduce, servers), in parts of
 * chunk_bytes, told without a run. `round`: which one, where rounds differ; its exchange needs the
 * round's gradient. early: ranges that leave as soon as theirs is there, of which each is exchanged
 * by itself if `apart`; NULL: none does. SL_EINVAL: messages go along edges, or are as long as sums
 * say. */
SL_API int sl_timeline_exchange(sl_timeline *timeline, const sl_algorithm_config *config,
                                const sl_topology *topology, const sl_shapes *shapes,
                                size_t chunk_bytes, uint64_t round, const sl_ranges *early,
                                bool apart, sl_error *error);
SL_API uint64_t sl_timeline_rounds(const sl_timeline *timeline);
/* Parts times receivers: the work of a prediction. */
SL_API uint64_t sl_timeline_copies(const sl_timeline *timeline);

typedef struct sl_platform {
    double bandwidth_mbit; /* of each node's uplink and downlink, in 10^6 bit/s; 0: infinite */
    double latency_ms;
    double compute_ms;              /* of a round, on a node of speed 1 */
    const double *speeds;           /* (nodes) borrowed; NULL: all 1 */
    const sl_network_config *drawn; /* gradients take what it says beside compute_ms, for
                                              this seed; NULL: that and speeds only. Borrowed */
    uint64_t seed;
    /* Pairs of nodes with a link of their own between their links, which is slower: rows of [i, j,
     * bandwidth_mbit], or with its latency_ms in place of the other. Borrowed; NULL: none. */
    const sl_number_rows *links;
} sl_platform;

/* The time at which the last node finishes the first `rounds` rounds; 0: all rounds. */
SL_API int sl_timeline_seconds(double *out, const sl_timeline *timeline,
                               const sl_platform *platform, uint64_t rounds, sl_error *error);

/* The same for rounds (count), rising, into out (count). */
SL_API int sl_timeline_times(double *out, const uint64_t *rounds, size_t count,
                             const sl_timeline *timeline, const sl_platform *platform,
                             sl_error *error);

/* What each node does in all rounds, in no order: what sl_timeline_seconds goes by. */
SL_API int sl_timeline_spans(const sl_timeline *timeline, const sl_platform *platform,
                             void (*each)(void *context, const sl_span *span), void *context,
                             sl_error *error);

/* As a packed file. Between rounds only. Reading: SL_EFILE: it is no such file, or damaged. */
SL_API int sl_timeline_write(const sl_timeline *timeline, const char *path, sl_error *error);
SL_API int sl_timeline_read(sl_timeline **out, const char *path, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif

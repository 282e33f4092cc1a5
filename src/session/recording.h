/* recording.h - the run folder of a simulation of sessions, as `starling sim` writes one.
 *
 * How many rounds there will be is known only when all peers leave. So every round is observed, and
 * one that is due, or was the last, is written; models are borrowed until the next one.
 */
#ifndef SL_SESSION_RECORDING_H
#define SL_SESSION_RECORDING_H

#include "session/state.h"
#include "starling/observer.h"
#include "starling/timeline.h"

typedef struct sl_recording sl_recording;

/* The folder options->out. The experiment is borrowed, and observes every round from now on. */
int sl_recording_open(sl_recording **out, sl_experiment *experiment,
                      const sl_session_options *options, sl_error *error);
/* Before the first round: vectors of this dimension. SL_EINVAL: there were rounds before. */
int sl_recording_begin(sl_recording *r, size_t dimension, sl_error *error);
/* As an observer's. */
int sl_recording_take(sl_recording *r, const sl_record *record, const float *x, sl_error *error);
int sl_recording_parameters(sl_recording *r, uint64_t round, uint32_t rank, const float *x,
                            double push_sum_weight, sl_error *error);
/* All have left, and their models are as they were after the last round. */
int sl_recording_finish(sl_recording *r, sl_error *error);
/* Then: the summary. Of each round network.gradient_ms is the gradient. */
int sl_recording_summarise(sl_recording *r, const sl_timeline *timeline, sl_error *error);
/* why: the run has failed; NULL: it has not. Frees it; files stay. */
void sl_recording_close(sl_recording **r, const char *why);

#endif

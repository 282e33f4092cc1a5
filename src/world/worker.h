/* worker.h - the thread on which an agent evaluates and computes gradients. Meanwhile its loop
 * moves data.
 *
 * The two threads share nothing but the vectors that a job hands over and its result hands back,
 * where a gradient comes in ranges (sl_task.watch) range by range;
 * where these are on a device, events order the one thread's operations behind the other's at both
 * points.
 */
#ifndef SL_WORKER_H
#define SL_WORKER_H

#include <stdbool.h>

#include "world/job.h"

typedef struct sl_worker sl_worker;

/* vec: where the vectors of its jobs are. leaves: a gradient comes in these ranges; borrowed; NULL:
 * at once. */
int sl_worker_open(sl_worker **out, const sl_vec_ops *vec, const sl_task *task,
                   const sl_observer *observer, uint32_t rank, const sl_ranges *leaves,
                   sl_error *error);
/* Becomes readable when a result is there. */
int sl_worker_descriptor(const sl_worker *worker);
/* One job at a time. */
void sl_worker_give(sl_worker *worker, const sl_job *job);
bool sl_worker_busy(const sl_worker *worker);
/* Was the last job over so soon that it pays to look for the result of this one, in place of
 * sleeping? */
bool sl_worker_is_quick(const sl_worker *worker);
/* Is there a result, or a range of one, to take? */
bool sl_worker_done(sl_worker *worker);
/* Takes the result if there is one, or how far it is: then `from` is not 0, and more follows. */
bool sl_worker_take(sl_worker *worker, sl_job_result *out);
/* Waits for the job under way, at most patience_s. False: it is still running; then the thread and
 * what it uses are left behind. */
bool sl_worker_close(sl_worker **worker, double patience_s);

#endif

/* job.c - see job.h. */
#include "world/job.h"

#include <math.h>

#include "base/clock.h"

static void wait_until(double seconds) {
    for (double now = sl_clock_seconds(); now < seconds; now = sl_clock_seconds())
        sl_clock_sleep(seconds - now);
}

/* What leaves together is told of together, in whole tensors. */
static void pass_on(void *means, double loss, size_t from) {
    sl_job_means *m = means;
    const size_t border = sl_ranges_border(m->leaves, from, m->task.dimension);
    if (border == m->border)
        return;
    m->border = border;
    wait_until(m->began_s + m->task.gradient_seconds * sl_gradient_share(from, m->task.dimension));
    m->told.tell(m->told.context, loss, from);
}

int sl_job_means_open(sl_job_means *out, const sl_vec_ops *vec, const sl_task *task,
                      const sl_observer *observer, uint32_t rank, const sl_ranges *leaves,
                      sl_progress told, sl_error *error) {
    *out = (sl_job_means){.task = *task,
                          .observer = *observer,
                          .rank = rank,
                          .leaves = leaves,
                          .watching = {pass_on, out},
                          .told = told};
    const int result = sl_host_task_open(&out->host, vec, &out->task, error);
    /* What is copied to a device is there when all of it is. */
    if (result == 0 && task->watch != NULL && leaves != NULL && out->host.g == NULL)
        task->watch(task->context, &out->watching);
    return result;
}

void sl_job_means_close(sl_job_means *m) {
    sl_host_task_close(&m->host);
}

static int report(const sl_job_means *m, sl_job *job) {
    int code = 0;
    const float *x = job->parameters || job->record ? sl_host_task_view(&m->host, job->x) : NULL;
    if (job->aside != NULL && m->observer.aside != NULL)
        m->observer.aside(m->observer.context, m->rank, job->compute_round, job->aside);
    if (job->returns && m->observer.returned != NULL)
        m->observer.returned(m->observer.context, m->rank, job->compute_round);
    if (job->parameters && m->observer.parameters != NULL)
        code = m->observer.parameters(m->observer.context, job->parameters_round, m->rank, x,
                                      job->push_sum_weight);
    if (code == 0 && job->record) {
        job->report.evaluation =
            job->evaluate ? m->task.evaluate(m->task.context, x) : (sl_evaluation){NAN, NAN};
        if (m->observer.record != NULL)
            code = m->observer.record(m->observer.context, &job->report, x);
    }
    return code;
}

sl_job_result sl_job_perform(sl_job_means *m, sl_job *job) {
    sl_job_result result = {.code = report(m, job),
                            .initialized = job->initial != NULL,
                            .evaluated = job->record && job->evaluate,
                            .evaluation = job->report.evaluation};
    if (result.initialized)
        sl_host_task_initial(&m->host, m->rank, job->initial);
    if (job->compute && result.code == 0) {
        if (m->observer.round != NULL)
            m->observer.round(m->observer.context, m->rank, job->compute_round);
        if (m->task.ready != NULL)
            m->task.ready(m->task.context, m->rank, job->compute_round, job->point,
                          job->push_sum_weight);
        m->began_s = sl_clock_seconds();
        m->border = 0;
        result.loss =
            sl_host_task_gradient(&m->host, m->rank, job->compute_round, job->point, job->g);
        wait_until(m->began_s + m->task.gradient_seconds);
        result.gradient_seconds = sl_clock_seconds() - m->began_s;
        result.computed = true;
    }
    return result;
}

/* simulation.c - a run in this process; see simulation.h. */
#include "run/simulation.h"

typedef struct simulation {
    collector *collector;
    sl_task inner;
    sl_error error; /* of the observer: sl_sim_run only passes its code on */
} simulation;

static int on_record(void *context, const sl_record *record, const float *x) {
    simulation *s = context;
    return collector_record(s->collector, record, x, &s->error);
}

static int on_parameters(void *context, uint64_t round, uint32_t rank, const float *x,
                         double weight) {
    simulation *s = context;
    return sl_folder_parameters(s->collector->folder, round, rank, x, s->inner.dimension, weight,
                                &s->error);
}

/* The learner's gradient, with a look at the live view: a round is under way when rank 0 computes.
 */
static double watched_gradient(void *context, uint32_t rank, uint64_t round, const float *x,
                               float *g) {
    simulation *s = context;
    if (rank == 0) {
        live_view_round(s->collector->view, round - 1);
        live_view_tick(s->collector->view);
    }
    return s->inner.gradient(s->inner.context, rank, round, x, g);
}

static void inner_initial(void *context, uint32_t rank, float *x) {
    simulation *s = context;
    s->inner.initial(s->inner.context, rank, x);
}

static sl_evaluation inner_evaluate(void *context, const float *x) {
    simulation *s = context;
    return s->inner.evaluate(s->inner.context, x);
}

static int inner_attach(void *context, const sl_vec_ops *vec, sl_error *error) {
    simulation *s = context;
    return s->inner.attach(s->inner.context, vec, error);
}

static sl_task watched_task(simulation *s, const sl_task *inner) {
    s->inner = *inner;
    sl_task task = *inner;
    task.context = s;
    task.initial = inner_initial;
    task.gradient = watched_gradient;
    task.evaluate = inner_evaluate;
    task.attach = inner->attach != NULL ? inner_attach : NULL;
    return task;
}

int simulation_run(collector *c, bool predicts, sl_summary *summary, sl_error *error) {
    simulation s = {.collector = c};
    const trial *t = c->trial;
    sl_task task = watched_task(&s, &t->task);
    sl_observer observer = {&s, on_record, on_parameters};
    int result = sl_sim_run(t->experiment, &task, &observer, predicts ? &c->timeline : NULL,
                            &stop_requested, error);
    if (result != 0 && s.error.code != 0)
        *error = s.error;
    if (result == 0)
        result = collector_finish(c, summary, error);
    live_view_clear(c->view);
    return result;
}

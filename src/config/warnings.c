/* warnings.c - what to say of an experiment, and to watch in it: one list for check, run, sim,
 * agents and sessions; see starling/experiment.h. */
#include <stdarg.h>
#include <stdio.h>

#include "starling/experiment.h"

static void warn(sl_warnings *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(sl_warnings *w, const char *format, ...) {
    va_list arguments;
    if (w->count == SL_WARNINGS_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(w->texts[w->count++], SL_PLAN_TEXT_MAX, format, arguments);
    va_end(arguments);
}

/* An exact average that never comes. */
static void warn_of_average(sl_warnings *w, const sl_experiment *e, const sl_algorithm_config *c,
                            uint64_t rounds) {
    const sl_algorithm *a = sl_algorithm_of(c, NULL);
    const uint64_t exchanges = rounds / sl_algorithm_interval(a, c);
    const bool has_period = sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, "period");
    if (a->route == SL_ROUTE_BOTH && sl_algorithm_average_period(a, c) > exchanges)
        warn(w,
             "algorithm.%s: %llu, but the run has %llu exchanges, and so no exact average; take "
             "%llu or less%s",
             has_period ? "period" : "average_period",
             (unsigned long long)sl_algorithm_average_period(a, c), (unsigned long long)exchanges,
             (unsigned long long)exchanges,
             e->final_average ? "" : ", or final_average, which takes one at the end");
}

/* No exchange at all. */
static void warn_of_exchanges(sl_warnings *w, const sl_experiment *e, const sl_algorithm_config *c,
                              uint64_t rounds) {
    const uint64_t interval = sl_algorithm_interval(sl_algorithm_of(c, NULL), c);
    if (interval > rounds && sl_topology_nodes(e->topology) > 1)
        warn(w,
             "the run has %llu rounds, and an exchange comes each %llu (algorithm.local_steps, or "
             "period): every node trains alone",
             (unsigned long long)rounds, (unsigned long long)interval);
}

/* A switch, or the end of a warm-up, that never comes. */
static void warn_of_rounds(sl_warnings *w, const sl_algorithm_config *c, uint64_t rounds) {
    const sl_algorithm *a = sl_algorithm_of(c, NULL);
    const uint64_t earliest = sl_warm_up_earliest(c),
                   last = c->warmup_rounds < rounds ? c->warmup_rounds : rounds;
    if (c->switch_round >= rounds && sl_algorithm_reads(a, SL_COMPRESSOR_IDENTITY, "switch_round"))
        warn(w, "algorithm.switch_round: %llu, and the run has %llu rounds: all are all-reduce's",
             (unsigned long long)c->switch_round, (unsigned long long)rounds);
    if (c->warmup_ratio > 0 && earliest >= last)
        warn(w,
             "algorithm.warmup_ratio: can end the warm-up after round %llu at the earliest, and %s "
             "%llu: it never does",
             (unsigned long long)earliest,
             c->warmup_rounds < rounds ? "algorithm.warmup_rounds is" : "rounds are",
             (unsigned long long)last);
}

void sl_experiment_say_weights(const sl_experiment *e, char *out, size_t bytes) {
    const sl_topology_spec *spec = sl_topology_description(e->topology);
    out[0] = '\0';
    if (e->chose_lazy)
        snprintf(out, bytes, "no weights are named: \"%s\", for larger stable steps",
                 sl_weighting_name(spec->weighting, true));
}

void sl_experiment_warnings(sl_warnings *out, const sl_experiment *e, const sl_plan *plan,
                            const sl_task *task) {
    out->count = 0;
    char mended[SL_PLAN_TEXT_MAX / 2];
    if (sl_topology_mended(mended, sizeof mended, e->topology))
        warn(out, "topology: %s", mended);
    if (plan->warning[0] != '\0')
        warn(out, "%s", plan->warning);
    warn_of_rounds(out, &plan->config, task->rounds);
    warn_of_average(out, e, &plan->config, task->rounds);
    warn_of_exchanges(out, e, &plan->config, task->rounds);
    if (e->record.every_ms > 0 && !sl_experiment_is_asynchronous(e))
        warn(out, "record.every_ms has no effect where nodes share rounds; set record.every");
    if (task->warning != NULL && task->warning[0] != '\0')
        warn(out, "%s", task->warning);
}

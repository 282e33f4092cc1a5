/* averaging.c - after the last round: all come to it, and average their models; see state.h. */
#include <math.h>
#include <stdlib.h>

#include "agent/state.h"

/* Those of the last view. */
static uint32_t nodes_of(const sl_agent *a) {
    const uint32_t members = a->cohort.view.members.count;
    return members > 0 ? members : sl_topology_nodes(a->settings.experiment->topology);
}

static size_t bytes_of(const sl_agent *a) {
    return a->settings.task.dimension * sizeof(float);
}

int sl_averaging_open(sl_agent *a, sl_error *error) {
    if (!a->settings.experiment->final_average)
        return 0;
    a->averaging.mean = malloc(2 * bytes_of(a));
    return a->averaging.mean != NULL
               ? 0
               : sl_fail(error, SL_ENOMEM, "agent %u: out of memory for an average of %zu numbers",
                         a->side.rank, a->settings.task.dimension);
}

void sl_averaging_close(sl_agent *a) {
    free(a->averaging.mean);
}

/* Beside the mean: this agent's model, on the host. */
static float *own_model(const sl_agent *a) {
    return a->averaging.mean + a->settings.task.dimension;
}

/* Of push-sum's models the sum of w_i z_i, over that of the w_i: the mean that it conserves. In the
 * first view the w_i add up to n; an agent that leaves takes its own along. */
static bool average(sl_agent *a) {
    sl_averaging *s = &a->averaging;
    const size_t d = a->settings.task.dimension;
    s->stage = SL_AVERAGING_NONE;
    if (s->mean == NULL)
        return false;
    const float weight = (float)sl_machine_push_sum_weight(&a->node);
    a->side.vec->copy_out(own_model(a), sl_machine_model(&a->node), bytes_of(a));
    sl_vec_cpu()->combine(s->mean, (const float *const[]){own_model(a)}, &weight, 1, d);
    s->weight = sl_machine_push_sum_weight(&a->node);
    s->stage = SL_AVERAGING_MODELS;
    sl_calls_give(&a->calls, &(sl_call){SL_CALL_SUM, .share = {.x = s->mean,
                                                               .count = d,
                                                               .numbers = &s->weight,
                                                               .number_count = 1,
                                                               .divisor = nodes_of(a)}});
    return true;
}

static void add_numbers(sl_agent *a, double *number) {
    sl_calls_give(
        &a->calls,
        &(sl_call){SL_CALL_SUM, .share = {.numbers = number, .number_count = 1, .divisor = 1}});
}

bool sl_averaging_begin(sl_agent *a) {
    if (a->node.own == NULL)
        return average(a);
    a->averaging.stage = SL_AVERAGING_GATHERS;
    add_numbers(a, &a->averaging.distance);
    return true;
}

static void add_distances(sl_agent *a) {
    sl_averaging *s = &a->averaging;
    if (a->cohort.view.members.count > 0)
        sl_vec_cpu()->combine(s->mean, (const float *const[]){s->mean},
                              (const float[]){(float)(nodes_of(a) / s->weight)}, 1,
                              a->settings.task.dimension);
    s->distance = sl_vec_cpu()->distance_squared(own_model(a), s->mean, a->settings.task.dimension);
    s->stage = SL_AVERAGING_DISTANCES;
    add_numbers(a, &s->distance);
}

static void take_mean(sl_agent *a) {
    sl_averaging *s = &a->averaging;
    a->side.vec->copy_in(sl_machine_model(&a->node), s->mean, bytes_of(a));
    a->record.averaged = true;
    a->record.averaged_distance = sqrt(s->distance / nodes_of(a));
    s->stage = SL_AVERAGING_NONE;
}

/* Members agree that all have come to their last rounds, or on a next view: never on both. Where
 * the sum that says the one is made known, the other is refused from then on. */
static bool may_agree(const sl_agent *a) {
    return a->cohort.membership != NULL && a->averaging.stage == SL_AVERAGING_GATHERS;
}

bool sl_averaging_holds(const sl_agent *a) {
    return may_agree(a) && sl_membership_holds(a->cohort.membership);
}

bool sl_averaging_ends_views(const sl_agent *a) {
    return may_agree(a) && sl_calls_know_sum(&a->calls);
}

/* For who repeats the run. */
static void note(const sl_agent *a, sl_act_kind kind) {
    if (a->averaging.mean != NULL)
        sl_agent_act(a, &(sl_act){.kind = kind});
}

/* Somebody was lost meanwhile. Others may have come to the average. */
static bool give_up(sl_agent *a) {
    note(a, SL_ACT_GIVES_UP);
    a->averaging.stage = SL_AVERAGING_NONE;
    if (a->averaging.mean != NULL)
        sl_agent_notice(
            a,
            "warning: final_average: an agent was lost while the average was made; agent "
            "%u ends with its own model (starling average makes one of several)",
            a->side.rank);
    return true;
}

/* Of a node at its own times, when all have come to their last rounds. True: nothing is left to do.
 */
static bool drain(sl_agent *a) {
    sl_error error;
    a->averaging.stage = SL_AVERAGING_DRAINS;
    if (!sl_async_is_whole(a->node.own))
        return false;
    note(a, SL_ACT_ADD);
    if (a->averaging.mean == NULL || sl_async_drain(a->node.own, &error) == 0)
        return !average(a);
    sl_agent_notice(a, "warning: %s", error.text);
    return give_up(a);
}

/* Somebody of this view has, without a word of leaving. At rest that may be by the next view, which
 * this agent has not heard of. */
static bool has_ended_alone(const sl_agent *a) {
    const sl_neighbour *n = sl_calls_sum_lacks(&a->calls);
    return n != NULL && n->process.bye_received && !n->absence.gone &&
           !sl_cohort_leaves(&a->cohort, n->rank) && !sl_cohort_rests(&a->cohort);
}

/* Who was lost does not come: members gather anew under the next view, unless one of them had
 * gathered before, and has given up. */
static bool gather(sl_agent *a) {
    int answer = 0;
    if (a->averaging.stage == SL_AVERAGING_WAITS)
        return false;
    if (!sl_calls_answered(&a->calls, &answer))
        return has_ended_alone(a) && give_up(a);
    if (answer == SL_SUM_VOID)
        a->averaging.stage = SL_AVERAGING_WAITS;
    return answer == 0 && drain(a);
}

bool sl_averaging_advance(sl_agent *a, bool is_void, bool is_behind) {
    int answer;
    /* One that had not heard yet that all have come rests, and gathers under the next view. */
    const bool anew = a->node.own != NULL && !is_void && is_behind;
    if (a->averaging.stage == SL_AVERAGING_DRAINS && anew)
        a->averaging.stage = SL_AVERAGING_WAITS;
    if (a->averaging.stage == SL_AVERAGING_DRAINS)
        return is_void ? give_up(a) : drain(a);
    if (a->averaging.stage == SL_AVERAGING_WAITS && !a->calls.cut)
        sl_averaging_begin(a);
    if (a->averaging.stage <= SL_AVERAGING_GATHERS)
        return gather(a);
    if (!sl_calls_answered(&a->calls, &answer))
        return (is_void || sl_calls_sum_lacks(&a->calls) != NULL) && give_up(a);
    if (answer == SL_SUM_VOID && anew)
        a->averaging.stage = SL_AVERAGING_WAITS;
    if (answer == SL_SUM_VOID)
        return !anew && give_up(a);
    if (a->averaging.stage == SL_AVERAGING_MODELS) {
        add_distances(a);
        return false;
    }
    take_mean(a);
    return true;
}

/* averaging.c - the exact average of all models after the last round, as agents form it
 * (agent/averaging.c): along the same tree, with the same bits. Block by block, so that it takes no
 * second set of models. */
#include <math.h>
#include <stdlib.h>

#include "route/route.h"
#include "route/tree.h"
#include "sim/simulator.h"

enum { BLOCK = 1024 };

typedef struct averaging {
    sl_tree tree;
    const sl_scene_view *view; /* the last one; NULL: the first */
    sl_share *shares;          /* (nodes) */
    float *block;              /* (nodes, BLOCK) of the models, and then of their mean */
    float *mean;               /* (d) */
    double *weights;           /* (nodes) of push-sum, and then all models' */
    double *distances;         /* (nodes) squares of each model's from the mean */
} averaging;

/* What each model is worth: of push-sum's its weight, so that the mean is what it conserves. */
static void take_block(const simulator *s, const averaging *a, size_t from, size_t count) {
    for (uint32_t k = 0; k < a->tree.count; k++) {
        const uint32_t i = a->tree.order[k];
        float *own = a->block + (size_t)i * BLOCK;
        a->shares[i] = (sl_share){.x = own, .count = count, .divisor = a->tree.count};
        const float weight = (float)sl_sim_push_sum_weight(s, i);
        s->vec->copy_out(own, sl_sim_model(s, i) + from, count * sizeof *own);
        sl_vec_cpu()->combine(own, (const float *const[]){own}, &weight, 1, count);
    }
}

static int sum_weights(const simulator *s, const averaging *a, sl_error *error) {
    for (uint32_t k = 0; k < a->tree.count; k++) {
        const uint32_t i = a->tree.order[k];
        a->weights[i] = sl_sim_push_sum_weight(s, i);
        a->shares[i] = (sl_share){.numbers = &a->weights[i], .number_count = 1, .divisor = 1};
    }
    return sl_tree_sum(&a->tree, a->shares, error);
}

static int form_mean(const simulator *s, const averaging *a, sl_error *error) {
    const size_t d = s->task->dimension;
    const uint32_t root = a->tree.order[0];
    int result = sum_weights(s, a, error);
    for (size_t from = 0; from < d && result == 0; from += BLOCK) {
        const size_t count = d - from < BLOCK ? d - from : BLOCK;
        take_block(s, a, from, count);
        result = sl_tree_sum(&a->tree, a->shares, error);
        for (size_t e = 0; e < count && result == 0; e++)
            a->mean[from + e] = a->block[root * BLOCK + e];
    }
    if (result == 0 && a->view != NULL)
        sl_vec_cpu()->combine(a->mean, (const float *const[]){a->mean},
                              (const float[]){(float)(a->tree.count / a->weights[root])}, 1, d);
    return result;
}

static int sum_distances(const simulator *s, const averaging *a, sl_error *error) {
    for (uint32_t k = 0; k < a->tree.count; k++) {
        const uint32_t i = a->tree.order[k];
        const float *x = sl_host_task_view(&s->host, sl_sim_model(s, i));
        a->distances[i] = sl_vec_cpu()->distance_squared(x, a->mean, s->task->dimension);
        a->shares[i] = (sl_share){.numbers = &a->distances[i], .number_count = 1, .divisor = 1};
    }
    return sl_tree_sum(&a->tree, a->shares, error);
}

static void take_mean(simulator *s, const averaging *a) {
    for (uint32_t k = 0; k < a->tree.count; k++) {
        const uint32_t i = a->tree.order[k];
        peer *p = &s->peers[i];
        if (p->gave_up)
            continue;
        s->vec->copy_in(sl_sim_model(s, i), a->mean, s->task->dimension * sizeof *a->mean);
        p->record.averaged = true;
        p->record.averaged_distance = sqrt(a->distances[i] / a->tree.count);
    }
}

static bool is_under(const simulator *s, const sl_scene_view *v) {
    for (const peer *p = s->peers; p < s->peers + s->nodes; p++)
        if (sl_sim_is_there(p) && p->view == v)
            return true;
    return false;
}

/* Else some of its members ended under another view. */
static bool are_there(const simulator *s, const sl_scene_view *v) {
    bool all = true;
    for (uint32_t k = 0; k < v->group.count; k++)
        all = all && sl_sim_is_there(&s->peers[v->group.ranks[k]]);
    return all;
}

/* Nodes at their own times come to an older view later than others to a newer one. */
static const sl_scene_view *last_view(const simulator *s) {
    const sl_scene_view *last = NULL;
    for (const sl_scene_view *v = s->scene.made; v != NULL; v = v->before)
        if (is_under(s, v) && are_there(s, v) &&
            (last == NULL || v->view.exchange > last->view.exchange))
            last = v;
    return last;
}

bool sl_sim_ends_with(const simulator *s, uint32_t rank) {
    const sl_scene_view *v = last_view(s);
    return v == NULL || sl_peer_index(v->group.ranks, v->group.count, rank) < v->group.count;
}

static int open_tree(const simulator *s, averaging *a, sl_error *error) {
    a->view = last_view(s);
    const sl_algorithm *algorithm = sl_algorithm_of(&s->plan.config, error);
    if (algorithm == NULL)
        return SL_EINVAL;
    if (a->view == NULL)
        return sl_tree_open(&a->tree, algorithm, &s->plan.config, s->experiment->topology, NULL,
                            error);
    const sl_node_view *v = &a->view->view;
    const sl_tree_members some = {v->members, v->broken, v->broken_count};
    return sl_tree_open(&a->tree, algorithm, &v->plan->config, v->topology, &some, error);
}

int sl_sim_average(simulator *s, sl_error *error) {
    averaging a = {0};
    int result = open_tree(s, &a, error);
    if (result != 0)
        return result;
    a.shares = calloc(s->nodes, sizeof *a.shares);
    a.block = malloc((size_t)s->nodes * BLOCK * sizeof *a.block);
    a.mean = malloc(s->task->dimension * sizeof *a.mean);
    a.distances = calloc(s->nodes, sizeof *a.distances);
    a.weights = calloc(s->nodes, sizeof *a.weights);
    if (a.shares == NULL || a.block == NULL || a.mean == NULL || a.distances == NULL ||
        a.weights == NULL)
        result = sl_fail(error, SL_ENOMEM, "simulator: out of memory for the average of %u nodes",
                         s->nodes);
    if (result == 0)
        result = form_mean(s, &a, error);
    if (result == 0)
        result = sum_distances(s, &a, error);
    if (result == 0)
        take_mean(s, &a);
    sl_tree_close(&a.tree);
    free(a.shares);
    free(a.block);
    free(a.mean);
    free(a.weights);
    free(a.distances);
    return result;
}

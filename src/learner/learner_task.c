/* learner_task.c - the learner as a task (starling/task.h). */
#include "starling/learner.h"

static void initial(void *learner, uint32_t rank, float *x) {
    sl_learner_initial(learner, rank, x);
}

static double gradient(void *learner, uint32_t rank, uint64_t round, const float *x, float *g) {
    return sl_learner_gradient(learner, rank, round, x, g);
}

static sl_evaluation evaluate(void *learner, const float *x) {
    return sl_learner_evaluate(learner, x);
}

static double samples(void *learner, uint32_t rank) {
    return sl_learner_samples(learner, rank);
}

static int attach(void *learner, const sl_vec_ops *vec, sl_error *error) {
    return sl_learner_attach(learner, vec, error);
}

static int members(void *learner, uint32_t rank, uint32_t place, uint32_t count, sl_error *error) {
    return sl_learner_share(learner, rank, place, count, error);
}

static void watch(void *learner, const sl_progress *progress) {
    sl_learner_watch(learner, progress);
}

sl_task sl_learner_task(sl_learner *learner) {
    size_t tensor_count;
    const size_t *tensor_ends = sl_learner_tensors(learner, &tensor_count);
    return (sl_task){
        .context = learner,
        .tensor_ends = tensor_ends,
        .tensor_count = tensor_count,
        .tensor_rows = sl_learner_tensor_rows(learner),
        .dimension = sl_learner_dimension(learner),
        .rounds = sl_learner_rounds(learner),
        .gradient_seconds = sl_learner_gradient_seconds(learner),
        .layout_hash = sl_learner_layout_hash(learner),
        .data_hash = sl_learner_data_hash(learner),
        .warning = sl_learner_warning(learner),
        .epoch_rounds = sl_learner_epoch_rounds(learner),
        .initial = initial,
        .gradient = gradient,
        .evaluate = evaluate,
        .samples = samples,
        .members = sl_learner_shares(learner) ? members : NULL,
        .attach = sl_learner_has_layers(learner) ? attach : NULL,
        .watch = sl_learner_goes_by_layers(learner) ? watch : NULL,
    };
}

/* mlp_step.c - how long one gradient takes: MLP 784-256-10, batch 32, one thread; the gathering of
 * the batch included.
 *
 * Prints one line, "starling MEDIAN MIN" in milliseconds, for mlp_step.sh, which sets PyTorch's
 * beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "starling/learner.h"

#define WARM_UP 300
#define STEPS 3000

static void time_steps(sl_learner *learner, const float *x, float *g, double times_ms[STEPS]) {
    for (int step = -WARM_UP; step < STEPS; step++) {
        double start = bench_now_ms();
        sl_learner_gradient(learner, 0, (uint64_t)(step + WARM_UP + 1), x, g);
        if (step >= 0)
            times_ms[step] = bench_now_ms() - start;
    }
}

int main(void) {
    static double times_ms[STEPS];
    sl_error error = {0};
    sl_learner *learner = NULL;
    sl_experiment experiment = {.seed = 1, .rounds = 1, .data = {.batch = 32}};
    experiment.model = (sl_model_config){.kind = SL_MODEL_MLP, .hidden = {256}, .hidden_count = 1};
    const char *two_nodes = "{\"nodes\": 2, \"family\": \"path\"}";
    if (sl_topology_parse(&experiment.topology, two_nodes, "mlp_step", &error) != 0 ||
        sl_learner_open(&learner, &experiment, &error) != 0) {
        fprintf(stderr, "mlp_step: %s\n", error.text);
        return 1;
    }
    size_t dimension = sl_learner_dimension(learner);
    float *x = sl_vec_cpu()->allocate(dimension), *g = sl_vec_cpu()->allocate(dimension);
    sl_learner_initial(learner, 0, x);
    time_steps(learner, x, g, times_ms);
    qsort(times_ms, STEPS, sizeof times_ms[0], bench_compare);
    printf("starling %.4f %.4f\n", times_ms[STEPS / 2], times_ms[0]);
    sl_vec_cpu()->release(x);
    sl_vec_cpu()->release(g);
    sl_learner_close(&learner);
    sl_topology_close(&experiment.topology);
    return 0;
}

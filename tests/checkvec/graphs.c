/* graphs.c - gradients that a device notes once and repeats: the bits of those that are computed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkvec.h"

static const model_row models[] = {
    {"lenet5", {.kind = SL_MODEL_LENET5}, {28, 28, 1}, 10, 3},
    {"lstm", {.kind = SL_MODEL_LSTM, .embedding = 4, .layers = 1, .units = 8}, {1, 12, 1}, 9, 3},
};
enum { MODELS = sizeof models / sizeof *models, STEPS = 7 };

/* Of each step: the model, whose place alternates, its gradient and its loss. */
typedef struct trace {
    float *x[2], *g;
    double losses[STEPS];
} trace;

/* x moves against its gradient, into the other place: as where an algorithm swaps its vectors. */
static void train(const target *t, sl_network *net, int m, trace *out) {
    const sl_sgd sgd = {.learning_rate = 0.1f};
    const size_t d = net->table.dimension;
    out->x[0] = initial_model(t, net);
    out->x[1] = initial_model(t, net);
    out->g = initial_model(t, net);
    for (int step = 0; step < STEPS; step++) {
        float *x = out->x[step % 2], *next = out->x[(step + 1) % 2];
        fill_batch(net, &models[m], (size_t)step);
        out->losses[step] = sl_network_gradient(net, models[m].rows, x, out->g);
        t->vec->copy(next, x, d * sizeof *x);
        t->vec->sgd_step(next, next, out->g, NULL, &sgd, d);
    }
}

static bool open_model(const target *t, int m, const char *graphs, sl_network *net) {
    setenv("STARLING_GRAPHS", graphs, 1);
    return open_network(net, t, &models[m]);
}

static bool is_equal(const target *t, const trace *a, const trace *b, size_t d) {
    float *host = host_vector(d);
    bool good = memcmp(a->losses, b->losses, sizeof a->losses) == 0;
    for (int i = 0; i < 2; i++) {
        t->vec->copy_out(host, a->x[i], d * sizeof *host);
        good = agrees(t, b->x[i], host, d, "x") && good;
    }
    t->vec->copy_out(host, a->g, d * sizeof *host);
    good = agrees(t, b->g, host, d, "the gradient") && good;
    free(host);
    return good;
}

static void release(const target *t, const trace *out) {
    t->vec->release(out->x[0]);
    t->vec->release(out->x[1]);
    t->vec->release(out->g);
}

static void check_model(const target *t, int m) {
    char name[64];
    sl_network computed, repeated;
    trace one, other;
    if (!open_model(t, m, "0", &computed) || !open_model(t, m, "1", &repeated)) {
        tell(t, models[m].name, false);
        return;
    }
    train(t, &computed, m, &one);
    train(t, &repeated, m, &other);
    snprintf(name, sizeof name, "gradients of %s, repeated", models[m].name);
    tell(t, name, is_equal(t, &one, &other, computed.table.dimension));
    snprintf(name, sizeof name, "%s has a graph for each place of x", models[m].name);
    tell(t, name,
         repeated.latest[0].graph != NULL && repeated.latest[1].graph != NULL &&
             computed.latest[0].graph == NULL);
    sl_network_close(&computed);
    sl_network_close(&repeated);
    release(t, &one);
    release(t, &other);
}

void check_graphs(const target *t) {
    for (int m = 0; m < MODELS && !t->vec->on_host; m++)
        check_model(t, m);
    unsetenv("STARLING_GRAPHS");
}

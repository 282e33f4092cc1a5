/* learner.c - models on data; see starling/learner.h.
 *
 * A network trains on batches of the rank's samples; the quadratic has its whole function in a file
 * and neither data, batches nor a held-out set: a round of it is a full gradient, and an epoch is
 * one round.
 */
#include "starling/learner.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "hash.h"
#include "network.h"
#include "partition.h"
#include "quadratic.h"

#define EVALUATION_ROWS 256u /* held-out samples at a time */
#define ROWS_AHEAD 4u        /* samples of a batch that are fetched before their turn */
#define DESCRIPTION_MAX (SL_PATH_MAX + 512)

struct sl_learner {
    const sl_experiment *experiment;
    uint32_t nodes;
    bool is_quadratic;
    sl_quadratic quadratic; /* is_quadratic; else: */
    sl_data data;
    sl_partition partition;
    sl_network network;
    uint64_t data_hash;
    char description[DESCRIPTION_MAX];
};

static const char *data_name(sl_data_kind kind) {
    switch (kind) {
    case SL_DATA_DIGITS:
        return "digits";
    case SL_DATA_MNIST:
        return "mnist";
    case SL_DATA_CIFAR10:
        return "cifar10";
    case SL_DATA_LIBSVM:
        return "libsvm";
    }
    return "?";
}

static void describe_partition(char *text, size_t size, const sl_data_config *config) {
    switch (config->partition) {
    case SL_PARTITION_IID:
        snprintf(text, size, "iid");
        return;
    case SL_PARTITION_SHARDS:
        snprintf(text, size, "%u label shards a node", config->shards_per_node);
        return;
    case SL_PARTITION_DIRICHLET:
        snprintf(text, size, "dirichlet(%g)", config->alpha);
        return;
    }
}

static void describe_network(sl_learner *learner) {
    const sl_network *net = &learner->network;
    char sizes[SL_NETWORK_SIZES_MAX * 11 + 1], partition[64] = "";
    size_t used = 0;
    for (size_t i = 0; i <= net->layers; i++)
        used += (size_t)snprintf(sizes + used, sizeof sizes - used, "%s%u", i > 0 ? "-" : "",
                                 net->sizes[i]);
    describe_partition(partition, sizeof partition, &learner->experiment->data);
    snprintf(learner->description, DESCRIPTION_MAX,
             "%s %s, %zu parameters; %s, %u train, %u test, %s",
             net->layers > 1 ? "mlp" : "softmax", sizes, net->dimension,
             data_name(learner->experiment->data.kind), learner->data.train.count,
             learner->data.test.count, partition);
}

static int open_quadratic(sl_learner *learner, sl_error *error) {
    const char *path = learner->experiment->model.path;
    sl_quadratic *q = &learner->quadratic;
    int code = sl_quadratic_load(q, path, learner->nodes, error);
    if (code != 0)
        return code;
    size_t vectors = (size_t)q->nodes * q->dimension, rows = (size_t)q->nodes * q->rows;
    uint64_t hash = sl_hash(SL_HASH_START, q->a, vectors * q->rows * sizeof *q->a);
    hash = sl_hash(hash, q->b, rows * sizeof *q->b);
    learner->data_hash = sl_hash(hash, q->x0, vectors * sizeof *q->x0);
    const char *slash = strrchr(path, '/');
    snprintf(learner->description, DESCRIPTION_MAX, "quadratic, %u parameters, %u rows a node; %s",
             q->dimension, q->rows, slash != NULL ? slash + 1 : path);
    return 0;
}

/* Layer sizes: what the data gives at both ends, the model's hidden layers between. */
static int open_network(sl_learner *learner, sl_error *error) {
    const sl_model_config *model = &learner->experiment->model;
    uint32_t sizes[SL_NETWORK_SIZES_MAX], batch = learner->experiment->data.batch;
    size_t count = 0, hidden = model->kind == SL_MODEL_MLP ? model->hidden_count : 0;
    if (hidden > SL_HIDDEN_MAX || (model->kind == SL_MODEL_MLP && hidden == 0))
        return sl_fail(error, SL_EINVAL, "model.hidden has %zu layers; allowed are 1 to %d", hidden,
                       SL_HIDDEN_MAX);
    sizes[count++] = learner->data.train.features;
    for (size_t i = 0; i < hidden; i++)
        sizes[count++] = model->hidden[i];
    sizes[count++] = learner->data.train.classes;
    if (batch > learner->data.train.count)
        batch = learner->data.train.count; /* no node has more */
    return sl_network_open(&learner->network, sizes, count,
                           batch > EVALUATION_ROWS ? batch : EVALUATION_ROWS, error);
}

static int open_with_data(sl_learner *learner, sl_error *error) {
    const sl_experiment *experiment = learner->experiment;
    if (experiment->data.batch < 1)
        return sl_fail(error, SL_EINVAL, "data.batch is 0; it must be at least 1");
    int code = sl_data_load(&learner->data, &experiment->data, experiment->seed, error);
    if (code == 0)
        code = sl_partition_open(&learner->partition, &experiment->data, &learner->data.train,
                                 learner->nodes, experiment->seed, error);
    if (code == 0)
        code = open_network(learner, error);
    if (code != 0)
        return code;
    learner->data_hash =
        sl_samples_hash(sl_samples_hash(SL_HASH_START, &learner->data.train), &learner->data.test);
    describe_network(learner);
    return 0;
}

int sl_learner_open(sl_learner **out, const sl_experiment *experiment, sl_error *error) {
    sl_learner *learner = calloc(1, sizeof *learner);
    if (learner == NULL)
        return sl_fail(error, SL_ENOMEM, "learner: out of memory");
    /* Peers share the cores, and one thread gives the same bits on every host. */
    openblas_set_num_threads(1);
    learner->experiment = experiment;
    learner->nodes = sl_topology_nodes(experiment->topology);
    learner->is_quadratic = experiment->model.kind == SL_MODEL_QUADRATIC;
    int code =
        learner->is_quadratic ? open_quadratic(learner, error) : open_with_data(learner, error);
    if (code != 0)
        sl_learner_close(&learner);
    else
        *out = learner;
    return code;
}

void sl_learner_close(sl_learner **learner) {
    if (*learner == NULL)
        return;
    sl_quadratic_close(&(*learner)->quadratic);
    sl_network_close(&(*learner)->network);
    sl_partition_close(&(*learner)->partition);
    sl_data_free(&(*learner)->data);
    free(*learner);
    *learner = NULL;
}

size_t sl_learner_dimension(const sl_learner *learner) {
    return learner->is_quadratic ? learner->quadratic.dimension : learner->network.dimension;
}

uint64_t sl_learner_rounds(const sl_learner *learner) {
    const sl_experiment *experiment = learner->experiment;
    if (experiment->rounds > 0)
        return experiment->rounds;
    double rounds = experiment->epochs;
    if (!learner->is_quadratic)
        rounds *= learner->data.train.count / ((double)learner->nodes * experiment->data.batch);
    rounds = ceil(rounds);
    return rounds >= 1 ? (uint64_t)fmin(rounds, 0x1p47)
                       : 1; /* the generator's keys hold 48 bits of round */
}

const size_t *sl_learner_tensors(const sl_learner *learner, size_t *count) {
    *count = learner->is_quadratic ? 0 : 2 * learner->network.layers;
    return learner->is_quadratic ? NULL : learner->network.tensor_ends;
}

uint64_t sl_learner_layout_hash(const sl_learner *learner) {
    uint64_t hash = sl_hash_word(SL_HASH_START, (uint64_t)learner->experiment->model.kind);
    if (learner->is_quadratic)
        return sl_hash_word(hash, learner->quadratic.dimension);
    return sl_hash(hash, learner->network.sizes,
                   (learner->network.layers + 1) * sizeof learner->network.sizes[0]);
}

uint64_t sl_learner_data_hash(const sl_learner *learner) {
    return learner->data_hash;
}

const char *sl_learner_describe(const sl_learner *learner) {
    return learner->description;
}

void sl_learner_initial(sl_learner *learner, uint32_t rank, float *x) {
    assert(rank < learner->nodes);
    if (!learner->is_quadratic) {
        sl_network_initial(&learner->network, learner->experiment->seed, x);
        return;
    }
    size_t d = learner->quadratic.dimension;
    memcpy(x, learner->quadratic.x0 + rank * d, d * sizeof *x);
}

double sl_learner_gradient(sl_learner *learner, uint32_t rank, uint64_t round, const float *x,
                           float *g) {
    if (learner->is_quadratic)
        return sl_quadratic_gradient(&learner->quadratic, rank, x, g);
    sl_network *net = &learner->network;
    const uint32_t *indices;
    uint32_t rows = sl_partition_batch(&learner->partition, rank, round,
                                       learner->experiment->data.batch, &indices);
    for (uint32_t i = 0; i < rows; i++) {
        if (i + ROWS_AHEAD < rows)
            sl_samples_prefetch(&learner->data.train, indices[i + ROWS_AHEAD]);
        net->labels[i] = sl_samples_get(&learner->data.train, indices[i],
                                        net->activations[0] + (size_t)i * net->sizes[0]);
    }
    return sl_network_gradient(net, rows, x, g);
}

sl_evaluation sl_learner_evaluate(sl_learner *learner, const float *x) {
    if (learner->is_quadratic)
        return (sl_evaluation){.loss = sl_quadratic_mean(&learner->quadratic, x), .accuracy = NAN};
    sl_network *net = &learner->network;
    const sl_samples *test = &learner->data.test;
    double loss = 0;
    uint64_t correct = 0;
    for (uint32_t first = 0; first < test->count; first += EVALUATION_ROWS) {
        uint32_t rest = test->count - first, rows = rest < EVALUATION_ROWS ? rest : EVALUATION_ROWS;
        for (uint32_t i = 0; i < rows; i++)
            net->labels[i] =
                sl_samples_get(test, first + i, net->activations[0] + (size_t)i * net->sizes[0]);
        loss += sl_network_score(net, rows, x, &correct);
    }
    return (sl_evaluation){.loss = loss / test->count, .accuracy = (double)correct / test->count};
}

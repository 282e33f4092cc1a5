/* learner.c - models on data; see starling/learner.h.
 *
 * A network trains on batches of the rank's samples. Batch normalisation keeps no running
 * statistics: gossip would not mix them. Each evaluation computes them from training samples
 * ("precise" statistics: Wu, Johnson 2021), so they are a pure function of x. A problem
 * (problem.h) has no layers; some have samples, too.
 */
#include "starling/learner.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "learner/data/data.h"
#include "learner/data/image.h"
#include "learner/data/shares.h"
#include "learner/layers/network.h"
#include "learner/model.h"
#include "learner/problem.h"
#include "vec/finite.h"

#define EVALUATION_ROWS 256u /* held-out samples at a time */
#define EVALUATION_FLOATS ((size_t)1 << 24)
#define STATISTICS_ROWS 2048u /* training samples behind normalisation statistics, about */
#define ROWS_AHEAD 4u         /* samples of a batch that are prefetched */
#define DESCRIPTION_MAX (SL_PATH_MAX + 512)

/* A node's samples of a round. */
typedef struct node_batch {
    uint32_t rank, rows;
    uint64_t round;
} node_batch;

struct sl_learner {
    sl_learner_settings settings;
    sl_problem problem; /* without ops: */
    sl_data data;
    sl_shares shares;
    sl_network network;
    float *evaluated; /* (dimension) the model under evaluation, on the device; NULL: on the host */
    uint32_t batch;   /* most samples of a training batch */
    uint32_t evaluation_rows; /* most samples of one pass over held-out data */
    node_batch gathered;      /* the batch in the network's input; rows 0: none */
    uint32_t last_rank;       /* of the last gradient */
    uint64_t last_round;      /* of the last gradient; 0: none yet */
    bool augments;
    sl_tensor *tensors;    /* (tensor_count) */
    sl_tensor_name *names; /* (tensor_count) */
    size_t *tensor_ends;   /* (tensor_count) */
    size_t *tensor_rows;   /* (tensor_count) */
    size_t tensor_count;
    float *start;  /* (dimension) from model.start; NULL: none is given */
    float *planes; /* (features) a sample before its pixels are reordered; NULL: no reordering */
    const sl_progress *progress; /* NULL: nobody hears how far gradients are */
    uint64_t data_hash;
    char description[DESCRIPTION_MAX];
    char warning[SL_DATA_WARNING_MAX];
};

static bool is_problem(const sl_learner *learner) {
    return learner->problem.ops != NULL;
}

static bool has_samples(const sl_learner *learner) {
    return learner->data.train.count > 0;
}

static void describe_list(char *text, size_t size, const sl_learner *learner) {
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t rank = 0; rank < learner->settings.nodes; rank++) {
        const uint32_t own = sl_shares_size(&learner->shares, rank);
        least = own < least ? own : least;
        most = own > most ? own : most;
    }
    snprintf(text, size, "listed, %u to %u a node", least, most);
}

static void describe_partition(char *text, size_t size, const sl_learner *learner) {
    const sl_data_config *config = &learner->settings.data;
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
    case SL_PARTITION_SPEAKERS:
        snprintf(text, size, "speakers");
        return;
    case SL_PARTITION_LISTED:
        describe_list(text, size, learner);
        return;
    }
}

/* The model, and the samples that it is trained on. */
static void describe(sl_learner *learner, const char *model) {
    char partition[64] = "";
    describe_partition(partition, sizeof partition, learner);
    snprintf(learner->description, DESCRIPTION_MAX, "%s, %zu parameters; %s, %u train, %u test, %s",
             model, sl_learner_dimension(learner), sl_data_name(learner->settings.data.kind),
             learner->data.train.count, learner->data.test.count, partition);
}

static const sl_problem_ops *problem_of(sl_model_kind kind) {
    return kind == SL_MODEL_QUADRATIC   ? &sl_quadratic_problem
           : kind == SL_MODEL_SYNTHETIC ? &sl_synthetic_problem
           : kind == SL_MODEL_LINEAR    ? &sl_linear_problem
                                        : NULL;
}

static int open_problem(sl_learner *learner, sl_error *error) {
    const sl_problem_source source = {&learner->settings, &learner->data, &learner->shares};
    char model[DESCRIPTION_MAX] = "";
    int result = learner->problem.ops->open(&learner->problem, &source, model, sizeof model, error);
    if (result != 0)
        return result;
    if (has_samples(learner))
        describe(learner, model);
    else {
        memcpy(learner->description, model, sizeof model);
        learner->data_hash = learner->problem.data_hash;
    }
    return 0;
}

/* Returns how many held-out samples one pass takes: it stays within EVALUATION_FLOATS. */
static uint32_t evaluation_rows(const sl_layers *table) {
    size_t rows = EVALUATION_FLOATS / sl_network_row_floats(table);
    return rows < 1 ? 1 : rows < EVALUATION_ROWS ? (uint32_t)rows : EVALUATION_ROWS;
}

static int open_network(sl_learner *learner, sl_error *error) {
    const sl_learner_settings *settings = &learner->settings;
    const sl_samples *train = &learner->data.train;
    bool images = sl_model_takes_images(settings->model.kind);
    sl_shape input = {1, 1, train->features};
    if (images && train->height > 0)
        input = (sl_shape){train->height, train->width, train->channels};
    if (sl_model_takes_text(settings->model.kind))
        input = (sl_shape){1, train->features, 1};
    sl_layers table;
    int result = sl_model_build(&table, &settings->model, input, train->classes,
                                sl_data_name(settings->data.kind), error);
    if (result != 0)
        return result;
    learner->batch = settings->data.batch < train->count ? settings->data.batch
                                                         : train->count; /* no node has more */
    learner->evaluation_rows = evaluation_rows(&table);
    return sl_network_open(&learner->network, &table, sl_vec_cpu(),
                           learner->batch > learner->evaluation_rows ? learner->batch
                                                                     : learner->evaluation_rows,
                           error);
}

static bool is_on(sl_switch wanted, bool fallback) {
    return wanted == SL_SWITCH_AUTO ? fallback : wanted == SL_SWITCH_ON;
}

/* Checks that a text meets a model of text. */
static int check_text(const sl_learner_settings *settings, sl_error *error) {
    bool takes = sl_model_takes_text(settings->model.kind),
         is = settings->data.kind == SL_DATA_TEXT;
    if (takes == is)
        return 0;
    const char *model = sl_model_name(settings->model.kind),
               *data = sl_data_name(settings->data.kind);
    if (is)
        return sl_fail(
            error, SL_EINVAL,
            "model.name: %s does not take text, but data.name is text; use lstm or transformer",
            model);
    return sl_fail(error, SL_EINVAL,
                   "model.name: %s needs text, but data.name is %s; use data.name text, or another "
                   "model",
                   model, data);
}

/* How samples become rows of the network's input. */
static int open_rows(sl_learner *learner, sl_error *error) {
    const sl_learner_settings *settings = &learner->settings;
    bool images = sl_model_takes_images(settings->model.kind);
    learner->augments = is_on(settings->data.augment, settings->model.kind == SL_MODEL_RESNET20);
    if (learner->augments && !images)
        return sl_fail(
            error, SL_EINVAL,
            "data.augment: true needs a model that sees images, such as lenet5 or resnet20");
    if (!images || (learner->data.train.channels == 1 && !learner->augments))
        return 0;
    learner->planes = malloc(learner->data.train.features * sizeof *learner->planes);
    return learner->planes != NULL ? 0 : sl_fail(error, SL_ENOMEM, "learner: out of memory");
}

static int open_layers(sl_learner *learner, sl_error *error) {
    char model[SL_LAYERS_MAX * 11];
    int result = open_network(learner, error);
    if (result == 0)
        result = open_rows(learner, error);
    if (result != 0)
        return result;
    sl_model_describe(model, sizeof model, &learner->settings.model, &learner->network.table);
    describe(learner, model);
    return 0;
}

static int open_data(sl_learner *learner, sl_error *error) {
    const sl_learner_settings *settings = &learner->settings;
    sl_data_config data = settings->data;
    data.real_labels =
        settings->model.kind == SL_MODEL_LINEAR && settings->model.loss == SL_LOSS_SQUARED;
    data.standardise = is_on(data.standardise, sl_model_takes_images(settings->model.kind) &&
                                                   sl_data_has_pixels(data.kind))
                           ? SL_SWITCH_ON
                           : SL_SWITCH_OFF;
    if (settings->data.batch < 1)
        return sl_fail(error, SL_EINVAL, "data.batch is 0; it must be at least 1");
    int result = check_text(settings, error);
    if (result == 0)
        result = sl_data_load(&learner->data, &data, settings->seed, error);
    if (result == 0)
        result = sl_shares_open(&learner->shares, &settings->data, &learner->data.train,
                                learner->settings.nodes, settings->joiners, settings->seed, error);
    if (result != 0)
        return result;
    learner->data_hash = sl_shares_hash(
        sl_samples_hash(sl_samples_hash(SL_HASH_START, &learner->data.train), &learner->data.test),
        &learner->shares);
    return sl_data_warn(&learner->data, learner->warning, error);
}

/* Names the tensors of the model, and counts where they end. */
static int open_layout(sl_learner *learner, sl_error *error) {
    const sl_problem *p = &learner->problem;
    const size_t count =
        is_problem(learner) ? p->tensor_count : learner->network.table.tensor_count;
    learner->tensors = calloc(count, sizeof *learner->tensors);
    learner->names = calloc(count, sizeof *learner->names);
    learner->tensor_ends = calloc(count, sizeof *learner->tensor_ends);
    learner->tensor_rows = calloc(count, sizeof *learner->tensor_rows);
    if (learner->tensors == NULL || learner->names == NULL || learner->tensor_ends == NULL ||
        learner->tensor_rows == NULL)
        return sl_fail(error, SL_ENOMEM, "learner: out of memory");
    learner->tensor_count = count;
    if (is_problem(learner))
        memcpy(learner->tensors, p->tensors, count * sizeof *learner->tensors);
    else
        sl_layers_name_tensors(&learner->network.table, learner->tensors, learner->names);
    for (size_t i = 0, end = 0; i < count; i++) {
        learner->tensor_ends[i] = end += sl_tensor_size(&learner->tensors[i]);
        learner->tensor_rows[i] = learner->tensors[i].axes > 1 ? learner->tensors[i].shape[0] : 1;
    }
    return 0;
}

/* Reads model.start. Agents that start from different files find it in the hash of their data. */
static int open_start(sl_learner *learner, sl_error *error) {
    const char *path = learner->settings.model.start;
    const size_t dimension = sl_learner_dimension(learner);
    if (path[0] == '\0')
        return 0;
    learner->start = malloc(dimension * sizeof *learner->start);
    if (learner->start == NULL)
        return sl_fail(error, SL_ENOMEM, "model.start: out of memory for %zu parameters",
                       dimension);
    int result =
        sl_tensors_load(learner->start, learner->tensors, learner->tensor_count, path, error);
    if (result == 0 && !sl_vec_is_finite(learner->start, dimension))
        result = sl_fail(error, SL_EFILE, "%s: holds a number that is not finite", path);
    if (result != 0)
        return sl_fail_prefix(error, result, "model.start");
    learner->data_hash =
        sl_hash(learner->data_hash, learner->start, dimension * sizeof *learner->start);
    return 0;
}

int sl_learner_open(sl_learner **out, const sl_learner_settings *settings, sl_error *error) {
    sl_learner *learner = calloc(1, sizeof *learner);
    if (learner == NULL)
        return sl_fail(error, SL_ENOMEM, "learner: out of memory");
    /* Peers share the cores, and one thread gives the same bits on every host. */
    openblas_set_num_threads(1);
    learner->settings = *settings;
    const sl_problem_ops *problem = learner->problem.ops = problem_of(settings->model.kind);
    int result = problem == NULL || problem->takes_data ? open_data(learner, error) : 0;
    if (result == 0)
        result = problem != NULL ? open_problem(learner, error) : open_layers(learner, error);
    if (result == 0)
        result = open_layout(learner, error);
    if (result == 0)
        result = open_start(learner, error);
    if (result != 0)
        sl_learner_close(&learner);
    else
        *out = learner;
    return result;
}

static void release_evaluated(sl_learner *learner) {
    if (learner->evaluated != NULL)
        learner->network.vec->release(learner->evaluated);
    learner->evaluated = NULL;
}

const char *sl_learner_blas(void) {
    return openblas_get_corename();
}

double sl_learner_operations(const sl_learner *learner) {
    const double products = is_problem(learner) ? learner->problem.products
                                                : sl_layers_products(&learner->network.table);
    return 6 * products * learner->settings.data.batch;
}

double sl_learner_gradient_seconds(const sl_learner *learner) {
    const double gflops = learner->settings.model.gflops;
    return learner->settings.model.kind == SL_MODEL_SYNTHETIC && gflops > 0
               ? sl_learner_operations(learner) / (1e9 * gflops)
               : 0;
}

bool sl_learner_has_layers(const sl_learner *learner) {
    return !is_problem(learner);
}

int sl_learner_attach(sl_learner *learner, const sl_vec_ops *vec, sl_error *error) {
    assert(!is_problem(learner));
    if (learner->network.vec == vec)
        return 0;
    const sl_layers *table = &learner->network.table;
    float *evaluated = vec->on_host ? NULL : vec->allocate(table->dimension);
    if (!vec->on_host && evaluated == NULL)
        return sl_vec_no_memory(vec, error, "model: %zu parameters", table->dimension);
    sl_network network;
    int result = sl_network_open(&network, table, vec, learner->network.rows_max, error);
    if (result != 0) {
        if (evaluated != NULL)
            vec->release(evaluated);
        return result;
    }
    release_evaluated(learner);
    sl_network_close(&learner->network);
    learner->network = network;
    learner->gathered = (node_batch){0};
    learner->evaluated = evaluated;
    return vec->fence(error); /* another thread may use it */
}

void sl_learner_close(sl_learner **learner) {
    if (*learner == NULL)
        return;
    if (is_problem(*learner))
        (*learner)->problem.ops->close((*learner)->problem.self);
    release_evaluated(*learner);
    sl_network_close(&(*learner)->network);
    sl_shares_close(&(*learner)->shares);
    sl_data_close(&(*learner)->data);
    free((*learner)->planes);
    free((*learner)->tensors);
    free((*learner)->names);
    free((*learner)->tensor_ends);
    free((*learner)->tensor_rows);
    free((*learner)->start);
    free(*learner);
    *learner = NULL;
}

size_t sl_learner_dimension(const sl_learner *learner) {
    return is_problem(learner) ? learner->problem.dimension : learner->network.table.dimension;
}

double sl_learner_samples(const sl_learner *learner, uint32_t rank) {
    const uint32_t count = has_samples(learner) ? sl_shares_size(&learner->shares, rank) : 1;
    return count > 1 ? count : 1;
}

bool sl_learner_shares(const sl_learner *learner) {
    return learner->settings.data.on_change == SL_ON_CHANGE_SHARE;
}

int sl_learner_share(sl_learner *learner, uint32_t rank, uint32_t place, uint32_t count,
                     sl_error *error) {
    return has_samples(learner) ? sl_shares_deal(&learner->shares, rank, place, count, error) : 0;
}

/* An epoch of a problem with samples is as long as data.train_samples says. */
static uint32_t samples_of(const sl_learner *learner) {
    return has_samples(learner) ? learner->data.train.count : learner->settings.data.train_samples;
}

uint64_t sl_learner_rounds(const sl_learner *learner) {
    const sl_learner_settings *settings = &learner->settings;
    if (settings->rounds > 0)
        return settings->rounds;
    double rounds = settings->epochs;
    if (settings->model.kind != SL_MODEL_QUADRATIC)
        rounds *= samples_of(learner) / ((double)settings->nodes * settings->data.batch);
    rounds = ceil(rounds);
    return rounds >= 1 ? (uint64_t)fmin(rounds, 0x1p47)
                       : 1; /* the generator's keys hold 48 bits of round */
}

uint64_t sl_learner_epoch_rounds(const sl_learner *learner) {
    sl_learner once = *learner;
    once.settings.rounds = 0;
    once.settings.epochs = 1;
    return sl_learner_rounds(&once);
}

static bool is_one_vector(const sl_learner *learner) {
    return learner->settings.model.kind == SL_MODEL_QUADRATIC &&
           learner->settings.model.matrix_count == 0;
}

const size_t *sl_learner_tensors(const sl_learner *learner, size_t *count) {
    *count = is_one_vector(learner) ? 0 : learner->tensor_count;
    return is_one_vector(learner) ? NULL : learner->tensor_ends;
}

const size_t *sl_learner_tensor_rows(const sl_learner *learner) {
    return is_one_vector(learner) ? NULL : learner->tensor_rows;
}

const sl_tensor *sl_learner_layout(const sl_learner *learner, size_t *count) {
    *count = learner->tensor_count;
    return learner->tensors;
}

uint64_t sl_learner_layout_hash(const sl_learner *learner) {
    uint64_t hash = sl_hash_word(SL_HASH_START, (uint64_t)learner->settings.model.kind);
    for (size_t i = 0; is_problem(learner) && i < learner->tensor_count; i++)
        hash = sl_hash_word(hash, sl_tensor_size(&learner->tensors[i]));
    return is_problem(learner) ? hash : sl_layers_hash(hash, &learner->network.table);
}

uint64_t sl_learner_data_hash(const sl_learner *learner) {
    return learner->data_hash;
}

size_t sl_learner_memory(const sl_learner *learner) {
    const size_t start = learner->start != NULL ? sl_learner_dimension(learner) : 0,
                 samples = has_samples(learner) ? sl_samples_bytes(&learner->data.train) +
                                                      sl_samples_bytes(&learner->data.test)
                                                : 0;
    return samples + learner->problem.bytes +
           (learner->network.work_floats + start) * sizeof(float);
}

const char *sl_learner_warning(const sl_learner *learner) {
    return learner->warning;
}

const char *sl_learner_describe(const sl_learner *learner) {
    return learner->description;
}

void sl_learner_initial(sl_learner *learner, uint32_t rank, float *x) {
    const size_t d = sl_learner_dimension(learner);
    assert(rank < learner->settings.nodes + learner->settings.joiners);
    if (learner->start != NULL)
        memcpy(x, learner->start, d * sizeof *x);
    else if (is_problem(learner))
        learner->problem.ops->initial(learner->problem.self, rank, x);
    else
        sl_layers_initial(&learner->network.table, learner->settings.seed, x);
}

/* Sample `index` into row `row` of the network's input, and its labels. */
static void fill_row(sl_learner *learner, const sl_samples *samples, uint32_t index, uint32_t row,
                     sl_crop crop) {
    sl_network *net = &learner->network;
    float *x = net->input + (size_t)row * samples->features;
    bool as_it_lies = learner->planes == NULL;
    const uint16_t *labels = sl_samples_get(samples, index, as_it_lies ? x : learner->planes);
    memcpy(net->labels + (size_t)row * net->positions, labels, net->positions * sizeof *labels);
    if (!as_it_lies)
        sl_image_arrange(x, learner->planes, net->table.input, crop);
}

static void gather(sl_learner *learner, uint32_t rank, uint64_t round) {
    const uint32_t *indices;
    uint32_t rows =
        sl_shares_batch(&learner->shares, rank, round, learner->settings.data.batch, &indices);
    for (uint32_t i = 0; i < rows; i++) {
        if (i + ROWS_AHEAD < rows)
            sl_samples_prefetch(&learner->data.train, indices[i + ROWS_AHEAD]);
        sl_crop crop =
            learner->augments ? sl_crop_draw(learner->settings.seed, rank, round, i) : (sl_crop){0};
        fill_row(learner, &learner->data.train, indices[i], i, crop);
    }
    learner->gathered = (node_batch){.rank = rank, .rows = rows, .round = round};
}

bool sl_learner_goes_by_layers(const sl_learner *learner) {
    return learner->settings.by_layers;
}

void sl_learner_watch(sl_learner *learner, const sl_progress *progress) {
    learner->progress = progress;
}

/* Tensor by tensor, though all are there. */
static double problem_gradient(const sl_learner *learner, uint32_t rank, uint64_t round,
                               const float *x, float *g) {
    const sl_progress *p = learner->progress;
    const double loss = learner->problem.ops->gradient(learner->problem.self, rank, round, x, g);
    for (size_t t = learner->tensor_count; p != NULL && t > 0; t--)
        p->tell(p->context, loss, learner->tensor_ends[t - 1]);
    return loss;
}

double sl_learner_gradient(sl_learner *learner, uint32_t rank, uint64_t round, const float *x,
                           float *g) {
    if (is_problem(learner))
        return problem_gradient(learner, rank, round, x, g);
    learner->network.progress = learner->progress;
    const bool goes_on =
        rank == learner->last_rank && learner->last_round > 0 && round == learner->last_round + 1;
    learner->last_rank = rank;
    learner->last_round = round;
    if (learner->gathered.rows == 0 || learner->gathered.rank != rank ||
        learner->gathered.round != round)
        gather(learner, rank, round);
    const uint32_t rows = learner->gathered.rows;
    sl_network_begin_gradient(&learner->network, rows, x, g);
    learner->gathered = (node_batch){0};
    /* If one node asks round by round, its next batch can be ready before it asks. */
    if (goes_on && !learner->network.vec->on_host)
        gather(learner, rank, round + 1);
    return sl_network_end_gradient(&learner->network, rows);
}

/* Computes normalisation statistics of x from evenly spread training samples, the same ones on
 * every agent. */
static void collect_statistics(sl_learner *learner, const float *x) {
    const sl_samples *train = &learner->data.train;
    uint32_t wanted = train->count < STATISTICS_ROWS ? train->count : STATISTICS_ROWS,
             batches = (wanted + learner->batch - 1) / learner->batch;
    uint64_t total = (uint64_t)batches * learner->batch;
    sl_network_forget(&learner->network);
    for (uint32_t b = 0; b < batches; b++) {
        for (uint32_t i = 0; i < learner->batch; i++)
            fill_row(learner, train, (uint32_t)((i * (uint64_t)batches + b) * train->count / total),
                     i, (sl_crop){0});
        sl_network_collect(&learner->network, learner->batch, x);
    }
}

sl_evaluation sl_learner_evaluate(sl_learner *learner, const float *x) {
    if (is_problem(learner))
        return learner->problem.ops->evaluate(learner->problem.self, x);
    sl_network *net = &learner->network;
    const sl_samples *test = &learner->data.test;
    double loss = 0;
    uint64_t correct = 0;
    learner->gathered = (node_batch){0}; /* overwritten below */
    if (learner->evaluated != NULL) {
        net->vec->copy_in(learner->evaluated, x, net->table.dimension * sizeof *x);
        x = learner->evaluated;
    }
    if (net->statistics_count > 0)
        collect_statistics(learner, x);
    for (uint32_t first = 0; first < test->count; first += learner->evaluation_rows) {
        uint32_t rest = test->count - first,
                 rows = rest < learner->evaluation_rows ? rest : learner->evaluation_rows;
        for (uint32_t i = 0; i < rows; i++)
            fill_row(learner, test, first + i, i, (sl_crop){0});
        loss += sl_network_score(net, rows, x, &correct);
    }
    double labels = (double)test->count * net->positions;
    return (sl_evaluation){.loss = loss / labels, .accuracy = (double)correct / labels};
}

/* counters.c - what a round costs the host where vectors are on a device: each count beside its
 * limit. No GPU is needed, and nothing is timed.
 *
 * D-PSGD, and CHOCO-SGD with three compressors, with two neighbours and ResNet-50's number of
 * parameters. A process counts at its end (gpu/launches.h), so a round is half of what three rounds
 * have cost more than one. It closes nothing: to close an event is to wait for the notices that
 * were asked for, and how many these were depends on time.
 */
#include <math.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/driven_node.h"
#include "learner/layers/network.h"
#include "learner/model.h"
#include "starling/device.h"
#include "starling/rng.h"

enum { DIMENSION = 25557032, DIMENSION_RESNET20 = 269722 };

#define EXPERIMENT(algorithm)                                                                      \
    "{\"rounds\": 3, \"device\": \"cuda:0\", \"topology\": {\"nodes\": 4, \"family\": \"ring\"},"  \
    " \"algorithm\": " algorithm "}"
#define CHOCO(compressor) EXPERIMENT("{\"name\": \"choco-sgd\", \"compressor\": " compressor "}")
static const char plain[] = EXPERIMENT("\"d-psgd\""),
                  levels[] = CHOCO("{\"name\": \"qsgd\", \"levels\": 7}"),
                  largest[] = CHOCO("{\"name\": \"top-k\", \"fraction\": 0.01}"),
                  dropping[] = CHOCO("{\"name\": \"random-dropping\", \"probability\": 0.1}");

static void stop(const char *what) {
    fprintf(stderr, "counters: %s\n", what);
    exit(1);
}

/* Messages leave from memory that neighbours read, and theirs are there, too. */
static void *take_shared(void *memory, size_t bytes, bool *waits) {
    (void)bytes, (void)waits;
    return memory;
}

static void *open_shared(const sl_vec_ops *vec) {
    char why[SL_SHARE_WHY_MAX];
    int descriptor;
    void *memory = vec->share->open(2 * DIMENSION * sizeof(float), &descriptor, why);
    if (memory == NULL)
        stop(why);
    return memory;
}

/* In a process of its own, which ends here. */
static void run_node(const char *text, const char *path, uint64_t rounds, bool measures,
                     bool shared) {
    driven_node d;
    sl_experiment *experiment;
    sl_plan plan;
    sl_error error;
    sl_vec_memory before, after;
    setenv("STARLING_LAUNCHES", path, 1);
    if (sl_experiment_parse(&experiment, text, "counters", "", NULL, 0, &error) != 0 ||
        sl_algorithm_plan(&plan, &experiment->algorithm, experiment->topology, DIMENSION, &error) !=
            0)
        stop(error.text);
    sl_node_settings settings = sl_experiment_node(experiment, &plan, NULL, DIMENSION, rounds);
    settings.measure_every = measures;
    if (sl_device_open(&settings.vec, experiment->device, 0, &error) != 0)
        stop(error.text);
    if (shared)
        settings.way_out = (sl_way_out){take_shared, open_shared(settings.vec)};
    driven_open(&d, settings, sl_receive_window(experiment, 1, false));
    for (int i = 0; i < DRIVEN_NEIGHBOURS && shared; i++)
        d.from[i].there = settings.way_out.context;
    settings.vec->memory(&before);
    driven_train(&d);
    settings.vec->memory(&after);
    if (measures && after.taken != before.taken)
        stop("a recorded round takes memory of the device, for which a GPU would stop");
    if (settings.vec->fence(&error) != 0)
        stop(error.text);
    FILE *file = fopen(path, "a");
    if (file == NULL || fprintf(file, "sleeps %lu\n", d.sleeps) < 0 || fclose(file) != 0)
        stop("the counts cannot be written");
    exit(0);
}

/* What a model's gradients cost. */
typedef struct learner {
    sl_model_config model;
    sl_shape in;
    uint32_t classes, rows;
} learner;
static const learner resnet = {{.kind = SL_MODEL_RESNET20}, {32, 32, 3}, 10, 128},
                     few_images = {{.kind = SL_MODEL_RESNET20}, {32, 32, 3}, 10, 24},
                     lstm = {{.kind = SL_MODEL_LSTM, .embedding = 8}, {1, 80, 1}, 65, 4};

/* On the device. Returns x and g (2, dimension). */
static float *open_learner(sl_network *net, const learner *l) {
    const sl_vec_ops *vec;
    sl_layers table;
    sl_error error;
    if (sl_model_build(&table, &l->model, l->in, l->classes, "counters", &error) != 0 ||
        sl_device_open(&vec, "cuda:0", 0, &error) != 0 ||
        sl_network_open(net, &table, vec, l->rows, &error) != 0)
        stop(error.text);
    float *vectors = vec->allocate(2 * table.dimension);
    if (vectors == NULL)
        stop("no vectors");
    return vectors;
}

/* ResNet-20's convolutions on a device with a cache of its own. */
typedef struct cached {
    double mib;                         /* that one works in, at most, at 128 rows */
    float gradient[DIMENSION_RESNET20]; /* of their weights, at 24 rows of what a seed draws */
} cached;

static float *draw(const sl_vec_ops *vec, size_t count, uint64_t seed) {
    float *there = vec->allocate(count), *here = vec->allocate_host(count * sizeof *here);
    sl_rng rng = sl_rng_open(seed, 0, 0, SL_PURPOSE_DATA);
    if (there == NULL || here == NULL)
        stop("no vectors");
    for (size_t i = 0; i < count; i++)
        here[i] = (float)sl_rng_uniform(&rng);
    vec->copy_in(there, here, count * sizeof *here);
    vec->release_host(here);
    return there;
}

/* In a process of its own, which ends here. */
static void run_cached(cached *to, const char *cache_mib) {
    sl_network net;
    double most = 0;
    setenv("STARLING_CACHE_MIB", cache_mib, 1);
    float *x = open_learner(&net, &few_images), *g = x + net.table.dimension;
    const size_t size = net.rows_max * 32 * 32 * 16; /* all others are smaller */
    float *in = draw(net.vec, size, 1), *d = draw(net.vec, size, 2);
    for (size_t i = 0; i < net.table.count; i++) {
        const sl_layer *layer = &net.table.items[i];
        if (layer->kind != SL_LAYER_CONV2D)
            continue;
        const sl_layer_ops *ops = net.backend->kinds[layer->kind];
        most = fmax(most, ops->memory(layer, resnet.rows).scratch);
        ops->backward(&(sl_layer_call){.layer = layer,
                                       .rows = net.rows_max,
                                       .w = x + layer->offset,
                                       .in = in,
                                       .d_out = d,
                                       .g = g + layer->offset,
                                       .scratch = net.scratch});
    }
    net.vec->copy_out(to->gradient, g, sizeof to->gradient);
    to->mib = most * sizeof(float) / 1048576;
    exit(0);
}

/* The same for gradients. */
static void run_gradients(const char *path, const learner *l, uint64_t count) {
    sl_network net;
    setenv("STARLING_LAUNCHES", path, 1);
    float *x = open_learner(&net, l);
    for (uint64_t i = 0; i < count; i++)
        sl_network_gradient(&net, l->rows, x, x + net.table.dimension);
    exit(0);
}

/* ---- the counts ---- */

typedef struct tally {
    double kernels, calls, bells, waits, sleeps;
} tally;

static void add_line(tally *t, const char *name, double count) {
    double *const costs[] = {&t->calls, &t->bells, &t->waits, &t->sleeps};
    static const char *const names[] = {"calls", "bells", "waits", "sleeps"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) {
            *costs[i] += count;
            return;
        }
    t->kernels += count;
}

/* A node's rounds, or gradients. */
typedef struct work {
    const char *node;
    const learner *learner;
    uint64_t count;
    bool measures, shared;
} work;

static tally tally_of(work w) {
    char path[] = "/tmp/starling-counters-XXXXXX", name[64];
    const int file = mkstemp(path);
    if (file < 0)
        stop("no file for the counts");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0 && w.learner != NULL)
        run_gradients(path, w.learner, w.count);
    if (child == 0)
        run_node(w.node, path, w.count, w.measures, w.shared);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        stop("the node's process failed");
    tally t = {0};
    double count;
    FILE *counts = fdopen(file, "r");
    while (fscanf(counts, "%63s %lf", name, &count) == 2)
        add_line(&t, name, count);
    fclose(counts);
    unlink(path);
    return t;
}

/* Kernels of one round, which no time changes. */
static double kernels_of_round(const char *text) {
    const tally one = tally_of((work){.node = text, .count = 1}),
                two = tally_of((work){.node = text, .count = 2});
    return two.kernels - one.kernels;
}

/* Of one round. */
static tally tally_of_round(const char *text, bool measures, bool shared) {
    const tally one = tally_of((work){text, NULL, 1, measures, shared}),
                three = tally_of((work){text, NULL, 3, measures, shared});
    return (tally){.kernels = (three.kernels - one.kernels) / 2,
                   .calls = (three.calls - one.calls) / 2,
                   .bells = (three.bells - one.bells) / 2,
                   .waits = (three.waits - one.waits) / 2,
                   .sleeps = (three.sleeps - one.sleeps) / 2};
}

/* Compared as it is printed. */
static bool tell(const char *name, double count, double limit) {
    const bool good = round(10 * count) <= 10 * limit;
    printf("%s %-44s %10.1f, limit %5.0f%s\n", good ? "ok" : "not ok", name, count, limit,
           good ? "" : ": exceeded");
    return good;
}

/* In memory that a child shares. */
static const cached *cached_of(const char *cache_mib) {
    int status = -1;
    cached *made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    const pid_t child = made == MAP_FAILED ? -1 : fork();
    if (child == 0)
        run_cached(made, cache_mib);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        stop("the process with a device of its own failed");
    return made;
}

/* An H100's cache, in two halves, and an A10's. */
static bool tell_caches(void) {
    const cached *large = cached_of("50"), *small = cached_of("6");
    double others = 0;
    for (size_t i = 0; i < DIMENSION_RESNET20; i++)
        others += large->gradient[i] != small->gradient[i];
    bool good = tell("MiB for ResNet-20's windows, a cache of 50", large->mib, 25);
    good &= tell("MiB for these, a cache of 6", small->mib, 6);
    good &= tell("numbers of weights' gradients that change", others, 0);
    return good;
}

int main(void) {
    const double mib = DIMENSION * sizeof(float) / 1048576.0;
    const tally usual = tally_of_round(plain, false, false),
                recorded = tally_of_round(plain, true, false),
                shared = tally_of_round(plain, false, true),
                step = tally_of((work){.learner = &resnet, .count = 1}),
                text = tally_of((work){.learner = &lstm, .count = 1}),
                noted = tally_of((work){.learner = &lstm, .count = 3}),
                repeated = tally_of((work){.learner = &lstm, .count = 4});
    bool good = tell("CUDA calls per MiB and neighbour", usual.calls / mib / DRIVEN_NEIGHBOURS, 8);
    good &= tell("kernels in a D-PSGD round of 25.5 M", usual.kernels, 60);
    good &= tell("kernels where it reads neighbours' memory", shared.kernels, 6);
    good &= tell("CUDA calls there", shared.calls, 40);
    good &= tell("kernels in a CHOCO round of 4 bits each", kernels_of_round(levels), 40);
    good &= tell("kernels in a CHOCO round of top-1 %", kernels_of_round(largest), 20);
    good &= tell("kernels in a CHOCO round of dropping to 10 %", kernels_of_round(dropping), 60);
    good &= tell("kernels of ResNet-20's gradient, batch 128", step.kernels, 250);
    good &= tell("kernels of an LSTM's gradient, 80 characters", text.kernels, 350);
    good &= tell("CUDA calls of that gradient, repeated", repeated.calls - noted.calls, 10);
    good &= tell_caches();
    good &= tell("bells per sleep", usual.sleeps > 0 ? usual.bells / usual.sleeps : 0, 1);
    good &= tell("waits that a recorded round adds", recorded.waits - usual.waits, 1);
    return good ? 0 : 1;
}

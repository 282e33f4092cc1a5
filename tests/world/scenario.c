/* scenario.c - see scenario.h. Each seed draws which kinds of faults it has at all, and then from
 * these: a few kinds at a time find more than all of them always. */
#include "scenario.h"

#include <stdio.h>
#include <string.h>

#include "virtual.h"
#include "wire/checksum.h"

#define PICK(list) (list)[world_below(sizeof(list) / sizeof *(list))]

/* ---- what is trained ---- */

/* Which topologies it takes. */
typedef enum takes { FIXED, SYMMETRIC, DOUBLY, DIRECTED, TAKES_COUNT } takes;

typedef struct form {
    const char *algorithm;
    takes takes;
    bool compressed;
} form;

static const form forms[] = {
    {"\"name\": \"d-psgd\"", DOUBLY, false},
    {"\"name\": \"d-psgd\", \"variant\": \"combine-while-adapt\"", DOUBLY, false},
    {"\"name\": \"d-psgd\", \"local_steps\": 2", DOUBLY, false},
    {"\"name\": \"choco-sgd\"", FIXED, true},
    {"\"name\": \"choco-sgd\", \"variant\": \"mix-then-compress\"", FIXED, true},
    {"\"name\": \"choco-sgd\", \"replicas\": \"per-neighbour\"", SYMMETRIC, true},
    {"\"name\": \"dcd-psgd\"", FIXED, true},
    {"\"name\": \"dcd-psgd\", \"replicas\": \"per-neighbour\"", SYMMETRIC, true},
    {"\"name\": \"ecd-psgd\"", FIXED, true},
    {"\"name\": \"deep-squeeze\"", SYMMETRIC, true},
    {"\"name\": \"naive-compression\"", SYMMETRIC, true},
    {"\"name\": \"sgp\"", DIRECTED, false},
    {"\"name\": \"gradient-tracking\"", SYMMETRIC, false},
    {"\"name\": \"exact-diffusion\"", SYMMETRIC, false},
    {"\"name\": \"all-reduce\"", FIXED, false},
    {"\"name\": \"gossip-pga\", \"average_period\": 2", DOUBLY, false},
    {"\"name\": \"parameter-server\"", FIXED, false},
    {"\"server\": \"sharded\"", FIXED, false},
    {"\"name\": \"double-squeeze\"", FIXED, true},
    {"\"name\": \"local-sgd\", \"period\": 2", FIXED, false},
    {"\"name\": \"cd-sgd\"", FIXED, false},
};
/* Of what averages everything; the seed says which, so that it takes no draw. */
static const char *const all_reduces[] = {"ring",         "tree",       "recursive-doubling",
                                          "hierarchical", "torus-2d",   "halving-doubling",
                                          "two-rings",    "double-tree"};
enum { ALL_REDUCES = sizeof all_reduces / sizeof *all_reduces };
/* Of what has a server for each shard, by the seed too. */
static const char *const sharded[] = {"parameter-server", "sign-vote"};
static const char *const compressors[] = {"qsgd", "random-k", "random-dropping", "terngrad",
                                          "natural"};

/* `schedules` need an even number of nodes, or a power of two. */
enum { FAMILIES = 5 };
static const struct {
    const char *families[FAMILIES];
    bool schedule[FAMILIES];
} topologies[TAKES_COUNT] = {
    [FIXED] = {{"ring", "path", "complete", "star", "hypercube"}, {false}},
    [SYMMETRIC] = {{"ring", "path", "complete", "star", "alternating-matchings"}, {[4] = true}},
    [DOUBLY] = {{"ring", "path", "one-peer-hypercube", "star", "one-peer-exponential"},
                {[2] = true, [4] = true}},
    [DIRECTED] = {{"directed-ring", "path", "complete", "static-exponential",
                   "one-peer-exponential"},
                  {[4] = true}},
};

const char *scenario_overlap(const scenario *s, const char *algorithm) {
    static const char *const able[] = {"\"d-psgd\"", "\"all-reduce\"", "\"parameter-server\""};
    bool is_able = false;
    for (size_t i = 0; i < sizeof able / sizeof *able; i++)
        is_able = is_able || strstr(algorithm, able[i]) != NULL;
    is_able = is_able && strstr(algorithm, "while-adapt") == NULL &&
              strstr(algorithm, "compressor") == NULL && strstr(algorithm, "staleness") == NULL;
    static const char *const ways[] = {"none", "layers", "none", "merged", "none", "partitioned"};
    return ways[is_able ? s->seed / 2 % (sizeof ways / sizeof *ways) : 0];
}

static void draw_experiment(scenario *s) {
    const form *f = &PICK(forms);
    char more[64] = "";
    const uint32_t which = world_below(FAMILIES);
    const char *family = topologies[f->takes].families[which];
    s->nodes = 3 + world_below(NODES_MAX - 2);
    s->rounds = 2 + world_below(ROUNDS_MAX - 1);
    static const size_t dimensions[] = {7, 100, 1100, 2100, 3000};
    s->dimension = PICK(dimensions);
    if (topologies[f->takes].schedule[which] || strcmp(family, "hypercube") == 0)
        s->nodes = world_below(2) == 0 ? 4 : 8;
    s->period = topologies[f->takes].schedule[which] ? 3 : strstr(f->algorithm, "local") ? 2 : 1;
    if (f->compressed)
        snprintf(more, sizeof more, ", \"compressor\": {\"name\": \"%s\"}", PICK(compressors));
    if (strstr(f->algorithm, "all-reduce") != NULL || strstr(f->algorithm, "local-sgd") != NULL ||
        strstr(f->algorithm, "gossip-pga") != NULL)
        snprintf(more, sizeof more, ", \"all_reduce\": \"%s\"",
                 all_reduces[s->seed / 4 % ALL_REDUCES]);
    if (strstr(f->algorithm, "sharded") != NULL)
        snprintf(more, sizeof more, ", \"name\": \"%s\"", sharded[s->seed / 4 % 2]);
    s->timeout_s = 0.5 + 1.5 * world_uniform();
    s->connect_s = 2 + 2 * world_uniform();
    s->reconnect_s = world_chance(0.7) ? 5 + 3 * world_uniform() : 0;
    /* who is gone is noticed before those further away have waited too long */
    s->round_s = s->reconnect_s + 8 + 8 * world_uniform();
    char whole[160];
    snprintf(whole, sizeof whole, "%s%s", f->algorithm, more);
    snprintf(s->text, sizeof s->text,
             "{\"rounds\": %llu, \"seed\": %u, \"topology\": {\"nodes\": %u, \"family\": \"%s\"},"
             " \"algorithm\": {%s}, \"record\": {\"every\": 1}, \"optimizer\":"
             " {\"learning_rate\": 0.1}, \"transport\": {\"chunk_bytes\": 4096,"
             " \"overlap\": \"%s\", \"window_chunks\": %u, \"timeout_s\": %.3f, "
             "\"connect_timeout_s\": %.3f," SCENARIO_PIECES
             " \"round_timeout_s\": %.3f, \"reconnect_s\": %.3f}," SCENARIO_LINKS
             " \"security\": {\"mode\": \"%s\", \"seal\": \"%s\"},"
             " \"membership\": {\"on_loss\": \"stop\"}}",
             (unsigned long long)s->rounds, world_below(1000000), s->nodes, family, whole,
             scenario_overlap(s, whole), 2 + world_below(4), s->timeout_s, s->connect_s, s->round_s,
             s->reconnect_s, s->seed % 2 == 1 ? "auto" : "none",
             s->seed % 4 == 1 ? "on" : "handshake-only");
}

/* ---- what goes wrong ---- */

static const double soon_s = 0.02; /* most agents start by then */

static bool starts_late(const scenario *s) {
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->start_s[i] > soon_s)
            return true;
    return false;
}

/* A connection between two that train is connected anew. Where one still waits for others, its time
 * for that may be over first: until an exchange has gone over each edge. */
static bool is_mended(const scenario *s, const fault *f) {
    if (s->reconnect_s == 0)
        return false;
    if (f->kind == FAULT_CUT)
        return f->round > s->period || (f->round > 0 && !starts_late(s));
    return (f->kind == FAULT_HALF_OPEN || f->kind == FAULT_MUTE) && f->round > s->period;
}

static bool may_end_the_run(const scenario *s, const fault *f) {
    return f->kind >= FAULT_CUT && !is_mended(s, f);
}

static fault draw_fault(const scenario *s, fault_kind kind) {
    fault f = {.kind = kind, .a = world_below(s->nodes)};
    f.b = (f.a + 1 + world_below(s->nodes - 1)) % s->nodes;
    f.at_s = world_uniform() * world_uniform() * 0.3;
    if (world_chance(0.7)) {
        f.round = 1 + world_below((uint32_t)s->rounds);
        f.at_s = world_uniform() * (network.latency_s * 4 + s->gradient_s);
    }
    const double longest = kind == FAULT_SHORT_STOP || kind == FAULT_SHORT_PARTITION
                               ? 0.3 * s->timeout_s
                               : 2 * s->timeout_s;
    f.seconds = longest * world_uniform();
    return f;
}

static void draw_faults(scenario *s) {
    fault_kind kinds[FAULT_KINDS];
    int kind_count = 0;
    for (fault_kind kind = FAULT_STRANGER; kind < FAULT_KINDS; kind++)
        if (world_chance(kind < FAULT_CUT ? 0.3 : 0.15))
            kinds[kind_count++] = kind;
    if (kind_count == 0)
        return;
    s->fault_count = 1 + (int)world_below(world_chance(0.3) ? FAULTS_MAX : 4);
    for (int i = 0; i < s->fault_count; i++) {
        s->faults[i] = draw_fault(s, kinds[world_below((uint32_t)kind_count)]);
        s->may_fail = s->may_fail || may_end_the_run(s, &s->faults[i]);
    }
    /* Short ones that add up are not short. */
    double silent_s = s->timeout_s / 5; /* between two heartbeats */
    for (int i = 0; i < s->fault_count; i++) {
        fault *f = &s->faults[i];
        if (f->kind != FAULT_SHORT_STOP && f->kind != FAULT_SHORT_PARTITION)
            continue;
        for (int j = 0; j < i; j++)
            f->seconds *= 0.4;
        silent_s += f->seconds + (f->kind == FAULT_SHORT_PARTITION ? network_resend_s : 0);
    }
    s->may_fail = s->may_fail || silent_s > 0.85 * s->timeout_s;
}

static void draw_habits(scenario *s) {
    network.latency_s = 1e-4 + 2e-3 * world_uniform() * world_uniform();
    network.jitter_s = world_chance(0.5) ? 5e-3 * world_uniform() : 0;
    network.slow = world_below(s->nodes);
    network.slow_s = world_chance(0.3) ? 0.03 * world_uniform() : 0;
    network.no_room = world_chance(0.3) ? 0.2 * world_uniform() : 0;
    network.spurious = world_chance(0.3) ? 0.3 * world_uniform() : 0;
    network.slow_wake_s = world_chance(0.5) ? 1e-3 * world_uniform() : 1e-6;
    s->gradient_s =
        world_chance(0.1) ? 1.5 * s->timeout_s * world_uniform() : 0.02 * world_uniform();
}

/* By each rank's process; a simulation is told nothing. */
static const sl_progress *told[NODES_MAX + 1];

void scenario_draw(scenario *out, uint64_t seed) {
    *out = (scenario){.seed = seed};
    draw_experiment(out);
    draw_habits(out);
    for (uint32_t i = 0; i < out->nodes; i++)
        out->start_s[i] = world_uniform() * (world_chance(0.2) ? 0.6 * out->connect_s : soon_s);
    draw_faults(out);
}

static const char *const names[FAULT_KINDS] = {
    "none",      "stranger", "crowd",   "short-stop", "short-partition", "blackout", "cut",
    "half-open", "mute",     "corrupt", "kill",       "power",           "stop",     "partition",
    "term",      "restart"};

void scenario_print(const scenario *s) {
    printf("%s\n", s->text);
    for (uint32_t i = 0; i < s->nodes; i++)
        printf("agent %u starts at %.4f\n", i, s->start_s[i]);
    for (int i = 0; i < s->fault_count; i++) {
        const fault *f = &s->faults[i];
        printf("fault %s of %u, %u, %.4f s after %s %llu, for %.3f s\n", names[f->kind], f->a, f->b,
               f->at_s, f->round > 0 ? "round" : "the start", (unsigned long long)f->round,
               f->seconds);
    }
}

/* ---- the task ---- */

static void initial(void *context, uint32_t rank, float *x) {
    const scenario *s = context;
    for (size_t i = 0; i < s->dimension; i++)
        x[i] = (float)(i % 13) / 8;
}

/* It takes a while in a process, and meanwhile nobody changes x. */
static void compute(const scenario *s, uint32_t rank, const float *x) {
    const size_t bytes = s->dimension * sizeof *x;
    if (process_current() == NULL)
        return;
    const uint64_t before = sl_checksum(x, bytes);
    process_wait(world_now() + s->gradient_s * world_uniform() * world_uniform());
    if (sl_checksum(x, bytes) != before)
        world_fail("agent %u changed its model while a gradient was computed", rank);
}

static void watch(void *context, const sl_progress *progress) {
    if (process_current() != NULL)
        told[process_current()->rank] = progress;
}

/* Meanwhile nobody changes x below what is told. */
void scenario_tell(const scenario *s, uint32_t rank, const float *x, double loss) {
    const bool tells = process_current() != NULL && told[rank] != NULL;
    for (int t = SCENARIO_TENSORS - 1; tells && t >= 0; t--) {
        const size_t end = s->ends[t], bytes = end * sizeof *x;
        const uint64_t before = sl_checksum(x, bytes);
        told[rank]->tell(told[rank]->context, loss, end);
        process_wait(world_now() +
                     s->gradient_s / SCENARIO_TENSORS * world_uniform() * world_uniform());
        if (sl_checksum(x, bytes) != before)
            world_fail("agent %u changed its model where no gradient was yet", rank);
    }
}

enum { TARGETS = 11 };

double scenario_gradient(const scenario *s, uint32_t rank, uint64_t round, const float *x,
                         float *g) {
    compute(s, rank, x);
    float targets[TARGETS]; /* of the first elements, and again */
    for (size_t i = 0; i < TARGETS; i++)
        targets[i] = (float)((i * (rank + 3) + round * 7) % TARGETS) / 4;
    for (size_t i = 0; i < s->dimension; i += TARGETS)
        for (size_t j = 0; j < TARGETS && i + j < s->dimension; j++)
            g[i + j] = x[i + j] - targets[j];
    return 1;
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    const double loss = scenario_gradient(context, rank, round, x, g);
    scenario_tell(context, rank, x, loss);
    return loss;
}

static sl_evaluation evaluate(void *context, const float *x) {
    return (sl_evaluation){0};
}

sl_task scenario_task(scenario *s) {
    memset(told, 0, sizeof told);
    for (size_t t = 0; t < SCENARIO_TENSORS; t++)
        s->ends[t] = s->dimension * (t + 1) / SCENARIO_TENSORS;
    return (sl_task){.context = s,
                     .dimension = s->dimension,
                     .rounds = s->rounds,
                     .initial = initial,
                     .gradient = gradient,
                     .evaluate = evaluate,
                     .tensor_ends = s->ends,
                     .tensor_count = SCENARIO_TENSORS,
                     .watch = watch};
}

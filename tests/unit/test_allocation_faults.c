/* test_allocation_faults.c - the n-th allocation fails, for every n until what was asked for works:
 * opening and running fail with one error, crash nowhere and, as the leak sanitizer sees, lose
 * nothing.
 *
 * The linker passes the library's calls of malloc and its kin through here (tests/meson.build), and
 * jansson's where nothing is parsed: its parser takes a shortage for a mistake in the text, or
 * passes over it. Those inside other libraries and libc are not touched.
 */
#include <execinfo.h>
#include <limits.h>
#include <stdatomic.h>

#include <jansson.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "harness.h"
#include "peers.h"
#include "starling/agent.h"
#include "starling/analysis.h"
#include "starling/compressor.h"
#include "starling/folder.h"
#include "starling/launch.h"
#include "starling/learner.h"
#include "starling/monitor.h"
#include "starling/rank.h"
#include "starling/sim.h"
#include "starling/spectrum.h"

/* ---- the n-th allocation ---- */

#define ALLOCATIONS_MAX 20000
#define ALWAYS LONG_MAX

/* Allocations until one fails; who asked for that one. */
static atomic_long left = ALWAYS;
static void *callers[16];
static int caller_count;

static bool fails(void) {
    if (atomic_load(&left) == ALWAYS || atomic_fetch_sub(&left, 1) != 0)
        return false;
    caller_count = backtrace(callers, sizeof callers / sizeof *callers);
    return true;
}

#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        return fails() ? NULL : __real_##name arguments;                                           \
    }
WRAP(void *, malloc, (size_t bytes), (bytes))
WRAP(void *, calloc, (size_t count, size_t bytes), (count, bytes))
WRAP(void *, realloc, (void *memory, size_t bytes), (memory, bytes))
WRAP(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))
WRAP(char *, strdup, (const char *text), (text))

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

enum { CHECKED_TOGETHER = 16 }; /* a look for leaks takes longer than what is looked at */

static bool loses_memory(long n) {
    return n % CHECKED_TOGETHER == 0 && __lsan_do_recoverable_leak_check != NULL &&
           __lsan_do_recoverable_leak_check() != 0;
}

typedef int work_function(sl_error *error);

/* What failed, was said, and with what code, for each n. */
static void sweep(const char *name, work_function *work) {
    sl_error error;
    error.text[0] = '\0';
    ck_assert_msg(work(&error) == 0, "%s: %s", name, error.text); /* and caches are filled */
    for (long n = 0; n < ALLOCATIONS_MAX; n++) {
        error = (sl_error){0};
        atomic_store(&left, n);
        int result = work(&error);
        bool failed = atomic_exchange(&left, ALWAYS) < 0;
        if (!failed) {
            ck_assert_msg(result == 0, "%s: %s", name, error.text);
            ck_assert_msg(!loses_memory(0), "%s: memory was lost", name);
            printf("%s: %ld allocations\n", name, n);
            return;
        }
        if (result != SL_ENOMEM)
            backtrace_symbols_fd(callers, caller_count, STDOUT_FILENO);
        ck_assert_msg(result == SL_ENOMEM, "%s: allocation %ld failed, and it ended with %d: %s",
                      name, n, result, error.text);
        ck_assert_msg(error.text[0] != '\0' && strchr(error.text, '\n') == NULL,
                      "%s, allocation %ld: no line, but '%s'", name, n, error.text);
        ck_assert_msg(!loses_memory(n),
                      "%s: allocation %ld failed, or one of the %d before, and memory was lost",
                      name, n, CHECKED_TOGETHER - 1);
    }
    ck_abort_msg("%s: never done", name);
}

/* ---- topologies ---- */

static const char *const topologies[] = {
    "{'nodes': 7, 'family': 'ring'}",
    "{'nodes': 8, 'family': 'one-peer-exponential'}",
    "{'nodes': 9, 'family': 'erdos-renyi', 'probability': 0.6, 'seed': 3}",
    "{'nodes': 6, 'family': 'base-k', 'peers': 1}",
    "{'nodes': 6, 'family': 'epidemic', 'degree': 3}",
    "{'nodes': 5, 'edges': [[0, 1], [1, 2], [2, 3], [3, 4]], 'weights': 'fmmc'}",
    "{'W': [[0.1, 0.2, 0.7], [0.6, 0.1, 0.3], [0.3, 0.7, 0.0000004]]}", /* is put right */
};
static const char *topology;

static int open_topology(sl_error *error) {
    sl_topology *t = NULL;
    int result = sl_topology_parse(&t, topology, "test", error);
    sl_topology_close(&t);
    return result;
}

START_LOOP_TEST(opening_a_topology, sizeof topologies / sizeof *topologies) {
    topology = quoted(topologies[_i]);
    sweep(topology, open_topology);
}

/* ---- experiments, and what runs them ---- */

#define DIGITS "'data': {'name': 'digits', 'train_samples': 60, 'test_samples': 20, 'batch': 4"
static const char *const experiments[] = {
    "{'rounds': 3, 'model': 'softmax', " DIGITS "}, 'topology': {'nodes': 3, 'family': 'ring'}, "
    "'record': {'parameters_at': [0, 3]}}",
    "{'rounds': 3, 'model': {'name': 'mlp', 'hidden': [8]}, " DIGITS "}, 'topology': {'nodes': 3, "
    "'family': 'ring'}, 'algorithm': {'name': 'choco-sgd', 'compressor': {'name': 'top-k', "
    "'fraction': 0.1}}, 'optimizer': {'momentum': 0.9, 'learning_rate': 0.05}}",
    "{'rounds': 3, 'model': 'softmax', " DIGITS ", 'partition': {'name': 'dirichlet', 'alpha': "
    "0.5}}, 'topology': {'nodes': 3, 'family': 'star'}, 'algorithm': {'name': 'double-squeeze', "
    "'compressor': 'scaled-sign'}, 'optimizer': {'momentum': 0, 'learning_rate': 0.05}}",
};
enum { EXPERIMENTS = sizeof experiments / sizeof *experiments };
static const char *text;

static int open_experiment(sl_error *error) {
    sl_experiment *e = NULL;
    const char *const overrides[] = {"rounds=4", "data.batch=5"};
    int result = sl_experiment_parse(&e, text, "test", ".", overrides, 2, error);
    if (result == 0) {
        char *json = sl_experiment_json(e);
        if (json == NULL)
            result = sl_fail(error, SL_ENOMEM, "no JSON");
        free(json);
    }
    sl_experiment_close(&e);
    return result;
}

/* An experiment with its learner, opened while allocations work. */
static sl_experiment *experiment;
static sl_learner *learner;
static sl_task task;

static void open_all(int index) {
    sl_error error;
    EXPECT_WELL(
        sl_experiment_parse(&experiment, quoted(experiments[index]), "test", ".", NULL, 0, &error));
    const sl_learner_settings settings = sl_experiment_learner(experiment);
    EXPECT_WELL(sl_learner_open(&learner, &settings, &error));
    task = sl_learner_task(learner);
}

static void close_all(void) {
    sl_learner_close(&learner);
    sl_experiment_close(&experiment);
}

static int open_learner(sl_error *error) {
    sl_learner *other = NULL;
    const sl_learner_settings settings = sl_experiment_learner(experiment);
    int result = sl_learner_open(&other, &settings, error);
    sl_learner_close(&other);
    return result;
}

static int open_node(sl_error *error) {
    sl_plan plan;
    sl_node *node = NULL;
    int result = sl_algorithm_plan(&plan, &experiment->algorithm, experiment->topology,
                                   task.dimension, error);
    if (result != 0)
        return result;
    sl_node_settings settings = sl_experiment_node(experiment, &plan, NULL, task.dimension, 3);
    settings.rank = 1;
    settings.inbox_parts = 4;
    result = sl_node_open(&node, &settings, error);
    sl_node_close(&node);
    return result;
}

/* Takes the number behind this name out of an answer. */
static void forget_number(char *answer, const char *name) {
    char *at = strstr(answer, name);
    if (at != NULL) {
        at += strlen(name);
        const char *rest = at + strspn(at, "0123456789.e+-");
        memmove(at, rest, strlen(rest) + 1);
    }
}

static char first[4096]; /* the body of a monitor's first answer */

/* An answer is whole, or an error: whoever makes it may go on without some memory. */
static int ask(const char *folder, sl_error *error) {
    static const char request[] = "GET /status HTTP/1.1\r\nHost: agent\r\n\r\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[sizeof first] = "";
    size_t used = 0;
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/status-1.sock", folder);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        write(fd, request, sizeof request - 1) < 0)
        abort();
    for (ssize_t got; (got = read(fd, answer + used, sizeof answer - 1 - used)) > 0;)
        used += (size_t)got;
    close(fd);
    forget_number(answer, "\"still_s\":");
    const char *body = strstr(answer, "\r\n\r\n");
    if (body == NULL || strstr(answer, " 200 OK") == NULL)
        return sl_fail(error, SL_ENOMEM, "no answer");
    if (first[0] == '\0')
        snprintf(first, sizeof first, "%s", body);
    if (strcmp(body, first) != 0)
        return sl_fail(error, SL_EPROTO, "half an answer: %s", body);
    return atomic_load(&left) >= 0 ? 0 : sl_fail(error, SL_ENOMEM, "answered all the same");
}

/* At a socket, and at a port. The agent is opened while allocations work. */
static int monitor(sl_error *error) {
    char path[] = "/tmp/starling-faults-XXXXXX", port[32];
    sl_agent *agent = NULL;
    sl_monitor *in_folder = NULL, *at_port = NULL;
    const sl_agent_settings settings = {
        .experiment = experiment, .task = task, .rank = 1, .host = "127.0.0.1"};
    const long after = atomic_exchange(&left, ALWAYS);
    if (mkdtemp(path) == NULL || sl_agent_open(&agent, &settings, error) != 0)
        abort();
    free_roster(port, sizeof port, 1);
    atomic_store(&left, after);
    const sl_monitor_subject of = {agent, experiment, 7, 1, 3, true};
    const sl_monitor_place place = {.at = port, .key = "monitor.listen"};
    int result = sl_monitor_open(&in_folder, &of, path, error);
    THEN(result, sl_monitor_listen(&at_port, &of, &place, error));
    THEN(result, ask(path, error));
    sl_monitor_close(&at_port);
    sl_monitor_close(&in_folder);
    sl_agent_close(&agent);
    if (rmdir(path) != 0) /* a socket is left */
        abort();
    return result;
}

static int find_peers(sl_error *error) {
    sl_launch *launch = NULL;
    sl_roster *roster = NULL;
    const char *host;
    uint16_t port;
    const sl_launch_settings given = {.has_rank = true, .roster = "127.0.0.1:740{rank}"};
    const sl_launch_settings alone = {
        .has_rank = true, .master = "127.0.0.1:20740", .timeout_s = 5};
    int result = sl_launch_find(&launch, &given, 3, error);
    sl_launch_close(&launch);
    THEN(result, sl_launch_find(&launch, &alone, 1, error));
    THEN(result, sl_launch_listen(launch, &host, &port, error));
    THEN(result, sl_launch_meet(launch, 7400, &roster, error));
    sl_roster_close(&roster);
    sl_launch_close(&launch);
    return result;
}

static int simulate(sl_error *error) {
    sl_timeline *timeline = NULL;
    double seconds;
    int result = sl_sim_run(experiment, &task, &(sl_observer){0}, NULL, &timeline, NULL, error);
    THEN(result,
         sl_timeline_seconds(&seconds, timeline, &(sl_platform){.compute_ms = 1}, 0, error));
    sl_timeline_close(&timeline);
    return result;
}

static int record(sl_error *error) {
    char path[] = "/tmp/starling-faults-XXXXXX", command[64];
    sl_folder *folder = NULL;
    sl_record records[3] = {{.rank = 0}, {.rank = 1}, {.rank = 2}};
    float *x = __real_calloc(task.dimension, sizeof *x);
    if (x == NULL || mkdtemp(path) == NULL)
        abort();
    int result = sl_folder_open(&folder, path, experiment, true, error);
    for (uint32_t i = 0; result == 0 && i < 3; i++)
        result = sl_folder_metrics(folder, &records[i], error);
    THEN(result, sl_folder_parameters(folder, 0, 1, x, task.dimension, 1, error));
    THEN(result,
         sl_folder_best(folder, -1, 1, &(sl_evaluation){.loss = 1}, x, task.dimension, error));
    THEN(result,
         sl_folder_remember(folder, 1, &(sl_evaluation){.loss = 1}, x, task.dimension, error));
    THEN(result,
         sl_folder_summary(
             folder,
             &(sl_summary){.driver = "sim", .nodes = 3, .record_count = 3, .records = records},
             error));
    sl_error at_close = {0};
    int closed = sl_folder_close(&folder, &at_close);
    if (result == 0 && closed != 0) {
        result = closed;
        *error = at_close;
    }
    free(x);
    snprintf(command, sizeof command, "rm -rf %s", path);
    if (system(command) != 0)
        abort();
    return result;
}

START_LOOP_TEST(opening_an_experiment, EXPERIMENTS) {
    text = quoted(experiments[_i]);
    sweep("an experiment", open_experiment);
}

START_LOOP_TEST(opening_what_runs_it, 6 * EXPERIMENTS) {
    static const struct {
        const char *name;
        work_function *work;
    } all[] = {{"a learner", open_learner}, {"a node", open_node},    {"peers", find_peers},
               {"a simulation", simulate},  {"a run folder", record}, {"a monitor", monitor}};
    open_all(_i % EXPERIMENTS);
    first[0] = '\0';
    work_function *work = all[_i / EXPERIMENTS].work;
    if (work != record) /* which parse what they write, or compare */
        json_set_alloc_funcs(__wrap_malloc, free);
    sweep(all[_i / EXPERIMENTS].name, work);
    json_set_alloc_funcs(__real_malloc, free);
    close_all();
}

/* ---- compressors ---- */

static sl_compressor_config compressor;

static int pass_on(sl_error *error) {
    enum { D = 5000 };
    static float v[D], acc[D];
    static _Alignas(64) char buffer[8192];
    const sl_message message = {.seed = 1, .exchange = 1};
    const sl_source source = {.vector = v};
    sl_codec *codec = NULL;
    sl_encoder *encoder = NULL;
    sl_decoder *decoder = NULL;
    int result = sl_codec_open(&codec, &compressor, D, 4096, error);
    THEN(result, sl_encoder_open(&encoder, codec, sl_vec_cpu(), error));
    THEN(result, sl_decoder_open(&decoder, codec, sl_vec_cpu(), error));
    int code = result == 0 ? sl_encoder_begin(encoder, &message, &source) : 0;
    for (uint32_t p = 0; result == 0 && code == 0 && p < sl_codec_parts(codec); p++) {
        sl_payload payload;
        code = sl_encoder_part(encoder, p, &source, buffer, &payload);
        if (code == 0 && sl_decoder_check(decoder, &message, p, payload) == 0)
            sl_decoder_add(decoder, &message, p, payload, 0.5f, acc);
    }
    if (code != 0)
        result = sl_fail(error, code, "encoding");
    sl_decoder_close(&decoder);
    sl_encoder_close(&encoder);
    sl_codec_close(&codec);
    return result;
}

START_LOOP_TEST(opening_a_compressor, SL_COMPRESSOR_KINDS) {
    compressor = (sl_compressor_config){.kind = (sl_compressor_kind)_i,
                                        .fraction = 0.1,
                                        .levels = 7,
                                        .probability = 0.3,
                                        .threshold = 0.5,
                                        .bits = 2,
                                        .bin = 50,
                                        .multiplier = 1,
                                        .theta = 1};
    sweep(sl_compressor_name(compressor.kind), pass_on);
}

/* ---- sessions: all peers of a simulation, and an agent that has no neighbours, so that nobody
 * else fails first ---- */

enum { PEERS = 3, D = 40, NUMBERS = 3, STATE_MAX = 16384 };

/* What each rank has saved; and does it go on from there? */
static struct saved {
    float x[D];
    char state[STATE_MAX];
    uint64_t bytes;
} saved[PEERS];
static bool goes_on;

static int start(sl_session *s, float *x, const struct saved *from, sl_error *error) {
    int result = goes_on ? sl_session_load(s, from->state, from->bytes, error) : 0;
    if (goes_on)
        memcpy(x, from->x, sizeof from->x);
    return result != 0 ? result : sl_session_start(s, x, error);
}

static int save(sl_session *s, const float *x, struct saved *to, sl_error *error) {
    memcpy(to->x, x, sizeof to->x);
    to->bytes = STATE_MAX;
    return sl_session_save(s, x, to->state, &to->bytes, error);
}

static int train(sl_session *s, float *x, int rounds, struct saved *state, sl_error *error) {
    float average[D];
    double numbers[NUMBERS] = {1, 2, 3};
    double distance;
    int result = start(s, x, state, error);
    for (int round = 0; round < rounds && result == 0; round++)
        result = sl_session_mix(s, x, error);
    THEN(result, sl_session_sum(s, numbers, NUMBERS, NULL, error));
    THEN(result, sl_session_average(s, x, average, &distance, error));
    THEN(result, sl_session_average(s, x, NULL, NULL, error));
    if (result == 0 && !goes_on)
        result = save(s, x, state, error);
    return result;
}

/* Higher ranks have more rounds: lower ones answer meanwhile. */
static int peer(void *context, const sl_session_options *o, sl_error *error) {
    static const uint64_t shape[] = {4, 10};
    const sl_session_tensor tensor = {"w", shape, 2};
    sl_session_options mine = *o;
    sl_session *s = NULL;
    float x[D] = {1};
    mine.tensors = &tensor;
    mine.tensor_count = 1;
    int result = sl_session_join(&s, context, D, &mine, error);
    THEN(result, train(s, x, 1 + (int)o->rank, &saved[o->rank], error));
    if (result == 0)
        return sl_session_leave(&s, error);
    sl_session_abort(&s, NULL);
    return result;
}

#define RING(keys) "{\"topology\": {\"nodes\": 3, \"family\": \"ring\"}" keys "}"

static const char *const loops[] = {
    RING(""),
    RING(", \"algorithm\": {\"name\": \"choco-sgd\", \"compressor\": {\"name\": \"top-k\", "
         "\"fraction\": 0.1}}"),
    RING(", \"algorithm\": \"sgp\""),
};
static const char *loop;

static int simulate_sessions(sl_error *error) {
    return sl_simulate(loop, PEERS, peer, (void *)(uintptr_t)loop, NULL, error);
}

START_LOOP_TEST(simulated_sessions, sizeof loops / sizeof *loops) {
    loop = loops[_i];
    sweep(loop, simulate_sessions);
    goes_on = true;
    sweep(loop, simulate_sessions);
    goes_on = false;
}

static int train_alone(sl_error *error) {
    char roster[PEERS_MAX * 32];
    sl_session_options options;
    free_roster(roster, sizeof roster, 1);
    sl_session_defaults(&options, sizeof options);
    options.rank = 0;
    options.roster = roster;
    options.same_start = 1;
    return peer((void *)(uintptr_t) "{\"topology\": {\"nodes\": 1, \"family\": \"ring\"}}",
                &options, error);
}

START_TEST(a_session_of_one_agent) {
    sweep("an agent", train_alone);
    goes_on = true;
    sweep("an agent that goes on", train_alone);
    goes_on = false;
}

/* ---- rounds, beside a monitor that nobody asks ---- */

enum { STEADY = 20, ROUNDS = 120, COUNTED = 1 << 30 };

static long allocated; /* while rank 0 had the rounds in between */

static int watched(void *context, const sl_session_options *o, sl_error *error) {
    sl_session *s = NULL;
    float x[D] = {1};
    int result = peer_start(&s, context, D, x, o, error);
    THEN(result, sl_session_serve(s, "127.0.0.1:0", 0, NULL, error));
    for (int round = 0; round < ROUNDS && result == 0; round++) {
        if (o->rank == 0 && round == STEADY)
            atomic_store(&left, COUNTED);
        if (o->rank == 0 && round == ROUNDS - STEADY)
            allocated = COUNTED - atomic_exchange(&left, ALWAYS);
        result = sl_session_mix(s, x, error);
    }
    if (result == 0)
        return sl_session_leave(&s, error);
    sl_session_abort(&s, NULL);
    return result;
}

START_LOOP_TEST(rounds_allocate_nothing, sizeof loops / sizeof *loops) {
    peer_thread threads[PEERS];
    sl_session_options options;
    sl_session_defaults(&options, sizeof options);
    options.same_start = 1;
    run_agents(threads, PEERS, watched, (void *)(uintptr_t)loops[_i], &options);
    for (int i = 0; i < PEERS; i++)
        ck_assert_msg(threads[i].result == 0, "%s", threads[i].error.text);
    ck_assert_msg(allocated == 0, "%s: %ld allocations", loops[_i], allocated);
}

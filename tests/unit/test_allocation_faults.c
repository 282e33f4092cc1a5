/* test_allocation_faults.c - the n-th allocation fails, for every n until what was asked for works:
 * opening and running fail with one error, crash nowhere and, as the leak sanitizer sees, lose
 * nothing.
 *
 * The linker passes the library's calls of malloc and its kin through here (tests/meson.build), and
 * jansson's where nothing is parsed: its parser takes a shortage for a mistake in the text, or
 * passes over it. Those inside other libraries and libc are not touched.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocation_sweep.h"
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

/* ---- topologies ---- */

static const char *const topologies[] = {
    "{\"nodes\": 7, \"family\": \"ring\"}",
    "{\"nodes\": 8, \"family\": \"one-peer-exponential\"}",
    "{\"nodes\": 9, \"family\": \"erdos-renyi\", \"probability\": 0.6, \"seed\": 3}",
    "{\"nodes\": 6, \"family\": \"base-k\", \"peers\": 1}",
    "{\"nodes\": 5, \"edges\": [[0, 1], [1, 2], [2, 3], [3, 4]], \"weights\": \"fmmc\"}",
};
static const char *topology;

static int open_topology(sl_error *error) {
    sl_topology *t = NULL;
    int result = sl_topology_parse(&t, topology, "test", error);
    sl_topology_close(&t);
    return result;
}

START_TEST(opening_a_topology) {
    topology = topologies[_i];
    sweep(topology, open_topology);
}
END_TEST

/* ---- experiments, and what runs them ---- */

static const char *const experiments[] = {
    "{\"rounds\": 3, \"model\": \"softmax\", \"data\": {\"name\": \"digits\", \"train_samples\": "
    "60, \"test_samples\": 20, \"batch\": 4}, \"topology\": {\"nodes\": 3, \"family\": \"ring\"}, "
    "\"record\": {\"parameters_at\": [0, 3]}}",
    "{\"rounds\": 3, \"model\": {\"name\": \"mlp\", \"hidden\": [8]}, \"data\": {\"name\": "
    "\"digits\", \"train_samples\": 60, \"test_samples\": 20, \"batch\": 4}, \"topology\": "
    "{\"nodes\": 3, \"family\": \"ring\"}, \"algorithm\": {\"name\": \"choco-sgd\", "
    "\"compressor\": {\"name\": \"top-k\", \"fraction\": 0.1}}, \"optimizer\": {\"momentum\": "
    "0.9, \"learning_rate\": 0.05}}",
    "{\"rounds\": 3, \"model\": \"softmax\", \"data\": {\"name\": \"digits\", \"train_samples\": "
    "60, \"test_samples\": 20, \"batch\": 4, \"partition\": {\"name\": \"dirichlet\", \"alpha\": "
    "0.5}}, \"topology\": {\"nodes\": 3, \"family\": \"star\"}, \"algorithm\": "
    "{\"name\": \"double-squeeze\", \"compressor\": \"scaled-sign\"}, \"optimizer\": "
    "{\"momentum\": 0, \"learning_rate\": 0.05}}",
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
    ck_assert_msg(
        sl_experiment_parse(&experiment, experiments[index], "test", ".", NULL, 0, &error) == 0,
        "%s", error.text);
    const sl_learner_settings settings = sl_experiment_learner(experiment);
    ck_assert_msg(sl_learner_open(&learner, &settings, &error) == 0, "%s", error.text);
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
    sl_node_settings settings = sl_experiment_node(experiment, &plan, task.dimension, 3);
    settings.rank = 1;
    settings.inbox_parts = 4;
    result = sl_node_open(&node, &settings, error);
    sl_node_close(&node);
    return result;
}

static int open_agent(sl_error *error) {
    sl_agent *agent = NULL;
    const sl_agent_settings settings = {
        .experiment = experiment, .task = task, .rank = 1, .host = "127.0.0.1"};
    int result = sl_agent_open(&agent, &settings, error);
    sl_agent_close(&agent);
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
    int result = sl_monitor_open(&in_folder, agent, 1, 3, path, error);
    if (result == 0)
        result = sl_monitor_listen(&at_port, agent, 1, 3, port, false, error);
    if (result == 0)
        result = ask(path, error);
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
    if (result == 0)
        result = sl_launch_find(&launch, &alone, 1, error);
    if (result == 0)
        result = sl_launch_listen(launch, &host, &port, error);
    if (result == 0)
        result = sl_launch_meet(launch, 7400, &roster, error);
    sl_roster_close(&roster);
    sl_launch_close(&launch);
    return result;
}

static int simulate(sl_error *error) {
    sl_timeline *timeline = NULL;
    double seconds;
    int result = sl_sim_run(experiment, &task, &(sl_observer){0}, NULL, &timeline, NULL, error);
    if (result == 0)
        result = sl_timeline_seconds(&seconds, timeline, &(sl_platform){.compute_ms = 1}, 0, error);
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
    if (result == 0)
        result = sl_folder_parameters(folder, 0, 1, x, task.dimension, 1, error);
    if (result == 0)
        result =
            sl_folder_best(folder, -1, 1, &(sl_evaluation){.loss = 1}, x, task.dimension, error);
    if (result == 0)
        result =
            sl_folder_remember(folder, 1, &(sl_evaluation){.loss = 1}, x, task.dimension, error);
    if (result == 0)
        result = sl_folder_summary(
            folder,
            &(sl_summary){.driver = "sim", .nodes = 3, .record_count = 3, .records = records},
            error);
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

START_TEST(opening_an_experiment) {
    text = experiments[_i];
    sweep("an experiment", open_experiment);
}
END_TEST

START_TEST(opening_what_runs_it) {
    static const struct {
        const char *name;
        work_function *work;
    } all[] = {{"a learner", open_learner}, {"a node", open_node},      {"an agent", open_agent},
               {"peers", find_peers},       {"a simulation", simulate}, {"a run folder", record},
               {"a monitor", monitor}};
    open_all(_i % EXPERIMENTS);
    first[0] = '\0';
    work_function *work = all[_i / EXPERIMENTS].work;
    if (work != record && work != open_agent) /* which parse what they write, or compare */
        json_set_alloc_funcs(__wrap_malloc, free);
    sweep(all[_i / EXPERIMENTS].name, work);
    json_set_alloc_funcs(__real_malloc, free);
    close_all();
}
END_TEST

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
    if (result == 0)
        result = sl_encoder_open(&encoder, codec, sl_vec_cpu(), error);
    if (result == 0)
        result = sl_decoder_open(&decoder, codec, sl_vec_cpu(), error);
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

START_TEST(opening_a_compressor) {
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
END_TEST

int main(void) {
    Suite *suite = suite_create("allocation faults");
    TCase *faults = tcase_create("faults");
    tcase_set_timeout(faults, 240);
    tcase_add_loop_test(faults, opening_a_topology, 0, sizeof topologies / sizeof *topologies);
    tcase_add_loop_test(faults, opening_an_experiment, 0, EXPERIMENTS);
    tcase_add_loop_test(faults, opening_what_runs_it, 0, 7 * EXPERIMENTS);
    tcase_add_loop_test(faults, opening_a_compressor, 0, SL_COMPRESSOR_KINDS);
    suite_add_tcase(suite, faults);
    return run_suite(suite);
}

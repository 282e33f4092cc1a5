/* gossip_agents.c - Starling's gossip round: real agents over libfabric, as peer_mpi.c measures its
 * own.
 *
 *   gossip_agents N D ROUNDS [KEY=VALUE ...]
 *
 * Forks N agents on a ring that average their vectors (learning rate 0): encode, checksum, send,
 * receive, check, combine. The task's gradient is where rounds begin and end: it stamps the end of
 * the last round, waits for all, and stamps the start of the next. KEY=VALUE overrides keys of the
 * experiment: transport.chunk_bytes=1048576, or another algorithm: algorithm.name=local-sgd
 * algorithm.period=1 is an all-reduce. With GOSSIP_NETNS=PREFIX in the environment, agent i moves
 * into network namespace PREFIXi and has address 10.82.0.(i + 1) there (_links.py). What these two
 * compute is checked after the first round. Prints one JSON line (bench.h) and, to stderr, the
 * memory of rank 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "starling/starling.h"

/* ---- processes: stamps of all rounds, in memory that all share, and their end ---- */

enum { FORKED_WARMUP = 3, FORKED_NODES_MAX = 64, FORKED_ROUNDS_MAX = 4096 };

/* Rounds begin with 1; the first FORKED_WARMUP do not count. */
typedef struct forked {
    pthread_barrier_t barrier;
    uint16_t ports[FORKED_NODES_MAX];
    double start[FORKED_ROUNDS_MAX][FORKED_NODES_MAX], end[FORKED_ROUNDS_MAX][FORKED_NODES_MAX];
    size_t wrong[FORKED_NODES_MAX]; /* elements of the first round */
} forked;

static bool forked_fits(int nodes, size_t dimension, size_t rounds) {
    return nodes >= 2 && nodes <= FORKED_NODES_MAX && dimension > 0 && rounds > 0 &&
           rounds + FORKED_WARMUP + 1 < FORKED_ROUNDS_MAX;
}

static forked *forked_open(int nodes) {
    forked *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&f->barrier, &attributes, (unsigned)nodes);
    return f;
}

/* Waits for all; one that fails takes the others, who wait at the barrier, with it. By SIGKILL: one
 * of libfabric's providers catches SIGTERM. */
static bool forked_end_well(const pid_t *children, int nodes) {
    bool well = true;
    for (int i = 0; i < nodes; i++) {
        int status = 1;
        wait(&status);
        for (int j = 0; j < nodes && status != 0 && well; j++)
            kill(children[j], SIGKILL);
        well = well && status == 0;
    }
    return well;
}

/* Waits for all processes, and prints the result line. Returns the exit code. */
static int forked_tell(const forked *f, const pid_t *children, int nodes, size_t dimension,
                       size_t rounds) {
    static double times_ms[FORKED_ROUNDS_MAX];
    size_t wrong = 0;
    if (!forked_end_well(children, nodes))
        return 1;
    for (int i = 0; i < nodes; i++)
        wrong += f->wrong[i];
    if (wrong > 0) {
        fprintf(stderr, "gossip_agents: %zu elements of the first average are wrong\n", wrong);
        return 1;
    }
    for (size_t r = 0; r < rounds; r++) {
        double start = INFINITY, end = 0;
        for (int i = 0; i < nodes; i++) {
            start = fmin(start, f->start[FORKED_WARMUP + 1 + r][i]);
            end = fmax(end, f->end[FORKED_WARMUP + 1 + r][i]);
        }
        times_ms[r] = end - start;
    }
    bench_report("starling", nodes, dimension, times_ms, rounds);
    return 0;
}

/* ---- an agent ---- */

enum { HOST_BYTES = 32 };

/* Nobody else is in such a namespace. */
#define NO_KEY ", \"security\": {\"mode\": \"none\", \"trusted_network\": true}"

typedef struct process {
    forked *shared;
    int nodes;
    size_t dimension;
    const char *algorithm;
} process;

static void initial(void *context, uint32_t rank, float *x) {
    bench_fill(x, ((process *)context)->dimension, (int)rank);
}

/* Elements that the first round did not turn into the average of the neighbourhood, or of all. */
static size_t count_wrong(const process *p, uint32_t rank, const float *x) {
    if (strcmp(p->algorithm, "d-psgd") == 0)
        return bench_wrong(x, p->dimension, (int)rank, p->nodes);
    size_t wrong = 0;
    for (size_t i = 0; i < p->dimension && strcmp(p->algorithm, "local-sgd") == 0; i++)
        wrong += !(fabsf(x[i] - (float)(p->nodes - 1) / 2 - bench_value(0, i)) < 1e-4f);
    return wrong;
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    process *p = context;
    (void)g;
    p->shared->end[round - 1][rank] = bench_now_ms();
    if (round == 2)
        p->shared->wrong[rank] = count_wrong(p, rank, x);
    pthread_barrier_wait(&p->shared->barrier);
    p->shared->start[round][rank] = bench_now_ms();
    return 0;
}

static sl_evaluation evaluate(void *context, const float *x) {
    (void)context;
    (void)x;
    return (sl_evaluation){0};
}

static void die(const sl_error *error) {
    fprintf(stderr, "gossip_agents: %s\n", error->text);
    _exit(1);
}

static void host_of(uint32_t rank, char host[HOST_BYTES]) {
    if (getenv("GOSSIP_NETNS") == NULL)
        snprintf(host, HOST_BYTES, "127.0.0.1");
    else
        snprintf(host, HOST_BYTES, "10.82.0.%u", (rank + 1) & 0xFF);
}

static void enter_namespace(uint32_t rank) {
    const char *prefix = getenv("GOSSIP_NETNS");
    char path[128];
    if (prefix == NULL)
        return;
    snprintf(path, sizeof path, "/var/run/netns/%s%u", prefix, rank);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || setns(descriptor, CLONE_NEWNET) != 0) {
        fprintf(stderr, "gossip_agents: %s: %s\n", path, strerror(errno));
        _exit(1);
    }
    close(descriptor);
}

static sl_roster *meet(process *p, uint32_t rank, uint16_t port) {
    char text[FORKED_NODES_MAX * HOST_BYTES] = "";
    sl_error error;
    sl_roster *roster;
    p->shared->ports[rank] = port;
    pthread_barrier_wait(&p->shared->barrier);
    for (uint32_t i = 0; i < (uint32_t)p->nodes; i++) {
        char host[HOST_BYTES];
        host_of(i, host);
        sprintf(text + strlen(text), "%s:%u\n", host, p->shared->ports[i]);
    }
    if (sl_roster_parse(&roster, text, "roster", &error) != 0)
        die(&error);
    return roster;
}

static void run_agent(process *p, uint32_t rank, uint64_t rounds, char **overrides,
                      int override_count) {
    char json[512];
    snprintf(json, sizeof json,
             "{\"name\": \"gossip\", \"rounds\": %llu, \"topology\": {\"nodes\": %d, \"family\": "
             "\"ring\", \"weights\": "
             "\"metropolis\"}, \"algorithm\": {\"name\": \"d-psgd\"}, \"optimizer\": "
             "{\"learning_rate\": 0}, "
             "\"model\": {\"name\": \"softmax\"}, \"data\": {\"name\": \"digits\"}, \"record\": "
             "{\"every\": %llu}%s}",
             (unsigned long long)rounds, p->nodes, (unsigned long long)rounds,
             getenv("GOSSIP_NETNS") == NULL ? "" : NO_KEY);
    sl_error error;
    sl_experiment *experiment;
    sl_agent *agent;
    if (sl_experiment_parse(&experiment, json, "gossip_agents", ".", (const char *const *)overrides,
                            (size_t)override_count, &error) != 0)
        die(&error);
    p->algorithm = experiment->algorithm.name;
    char host[HOST_BYTES];
    host_of(rank, host);
    enter_namespace(rank);
    sl_agent_settings settings = {.experiment = experiment, .rank = rank, .host = host};
    settings.task = (sl_task){.context = p,
                              .dimension = p->dimension,
                              .rounds = rounds,
                              .initial = initial,
                              .gradient = gradient,
                              .evaluate = evaluate};
    sl_credentials *credentials;
    if (sl_security_load(&credentials, &experiment->security, -1, &error) != 0)
        die(&error);
    settings.credentials = credentials;
    if (sl_agent_open(&agent, &settings, &error) != 0)
        die(&error);
    sl_roster *roster = meet(p, rank, sl_agent_port(agent));
    if (sl_agent_run(agent, roster, &error) != 0)
        die(&error);
    if (rank == 0) {
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        fprintf(stderr,
                "memory of rank 0: vectors %.2f d, receive buffers %.2f d, peak resident %.2f d\n",
                (double)sl_agent_counters_read(agent).vector_bytes / 4 / (double)p->dimension,
                (double)sl_agent_counters_read(agent).receive_buffer_bytes / 4 /
                    (double)p->dimension,
                (double)usage.ru_maxrss * 1024 / 4 / (double)p->dimension);
    }
    sl_agent_close(&agent);
    sl_credentials_close(&credentials);
    sl_roster_close(&roster);
    sl_experiment_close(&experiment);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: gossip_agents N D ROUNDS [KEY=VALUE ...]\n");
        return 2;
    }
    process p = {.nodes = atoi(argv[1]), .dimension = strtoull(argv[2], NULL, 10)};
    const size_t rounds = strtoull(argv[3], NULL, 10);
    if (!forked_fits(p.nodes, p.dimension, rounds)) {
        fprintf(stderr, "gossip_agents: N is 2..%d, D and ROUNDS are positive, ROUNDS below %d\n",
                FORKED_NODES_MAX, FORKED_ROUNDS_MAX - FORKED_WARMUP - 1);
        return 2;
    }
    pid_t agents[FORKED_NODES_MAX];
    p.shared = forked_open(p.nodes);
    for (uint32_t rank = 0; rank < (uint32_t)p.nodes; rank++)
        if ((agents[rank] = fork()) == 0) {
            run_agent(&p, rank, FORKED_WARMUP + rounds + 1, argv + 4, argc - 4);
            _exit(0);
        }
    return forked_tell(p.shared, agents, p.nodes, p.dimension, rounds);
}

/* launcher.c - see launcher.h. */
#include "launch/launcher.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "starling/types.h"

enum {
    MASTER_PORT_USUAL = 29500, /* torch's own */
    DERIVED_PORT_FROM = 16384, /* below those that kernels hand out */
    DERIVED_PORTS = 16000,
    MORE_PORTS = 8, /* tried after the first */
    PORT_MAX = 65535,
};

enum { NAMES = 2, JOB_NAMES = 4 };

/* Names of variables; NULL: there is none. */
typedef struct row {
    const char *name, *proof /* must be set; NULL: `rank` is enough */, *rank;
    const char *sizes[NAMES];   /* the first that is set */
    const char *here;           /* how many of them are on this host */
    const char *local;          /* which of these it is */
    const char *hosts[NAMES];   /* on how many hosts they are: the first that is set */
    const char *job[JOB_NAMES]; /* together they tell this job from others */
    void (*look)(sl_whereabouts *master, sl_environment environment); /* for rank 0's host */
    const char *way; /* of a variable to all processes, for messages */
    bool outer;      /* may lie around another one, and then speaks of what that one runs in */
    bool plain;      /* others that say the same know more */
} row;

/* ---- rank 0's host ---- */

static void add_host(sl_whereabouts *l, const char *text, size_t length) {
    if (l->host_count < SL_MASTER_HOSTS_MAX && length > 0 && length < SL_HOST_MAX) {
        memcpy(l->hosts[l->host_count], text, length);
        l->hosts[l->host_count++][length] = '\0';
    }
}

/* Of the uri "ID;tcp://HOST,HOST:PORT;tcp6://[HOST,HOST]:PORT". */
static void add_uri_hosts(sl_whereabouts *l, const char *uri) {
    const char *begin = strstr(uri, "tcp://");
    const char *ends = ":;";
    if (begin != NULL) {
        begin += strlen("tcp://");
    } else if ((begin = strstr(uri, "tcp6://[")) != NULL) {
        begin += strlen("tcp6://[");
        ends = "];";
    }
    while (begin != NULL && *begin != '\0' && strchr(ends, *begin) == NULL) {
        size_t length = strcspn(begin, ends[0] == ':' ? ",:;" : ",];");
        add_host(l, begin, length);
        begin += length + (begin[length] == ',');
    }
}

/* The first host of a list such as "rack[1-2]n[07,09-12],login": of each bracket the first number.
 */
static void add_first_host(sl_whereabouts *l, const char *list) {
    char host[SL_HOST_MAX];
    size_t length = 0;
    bool in_brackets = false, skips = false;
    for (; *list != '\0' && length < sizeof host && (in_brackets || *list != ','); list++) {
        if (*list == '[')
            in_brackets = true;
        else if (*list == ']')
            in_brackets = skips = false;
        else if (in_brackets && (*list == '-' || *list == ','))
            skips = true;
        else if (!skips)
            host[length++] = *list;
    }
    add_host(l, host, length);
}

static const char *text_or(sl_environment environment, const char *name, const char *otherwise) {
    const char *text = sl_environment_text(environment, name);
    return text != NULL ? text : otherwise;
}

static void look_at_slurm(sl_whereabouts *master, sl_environment environment) {
    add_first_host(master, text_or(environment, "SLURM_STEP_NODELIST",
                                   text_or(environment, "SLURM_NODELIST", "")));
    /* Where srun was called, which in a batch script is the first node: for names of nodes that
     * nobody can look up. */
    const char *called = text_or(environment, "SLURM_LAUNCH_NODE_IPADDR", "");
    add_host(master, called, strlen(called));
}

static void look_at_open_mpi(sl_whereabouts *master, sl_environment environment) {
    add_uri_hosts(master, text_or(environment, "OMPI_MCA_orte_hnp_uri", ""));
    master->of_launcher = true;
}

/* ---- launchers ---- */

/* The innermost first. */
static const row rows[] = {
    {.name = "torchrun",
     .proof = "TORCHELASTIC_RUN_ID",
     .rank = "RANK",
     .sizes = {"WORLD_SIZE"},
     .here = "LOCAL_WORLD_SIZE",
     .local = "LOCAL_RANK",
     .job = {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"}},
    {.name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .sizes = {"OMPI_COMM_WORLD_SIZE"},
     .here = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .local = "OMPI_COMM_WORLD_LOCAL_RANK",
     .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     .look = look_at_open_mpi,
     .way = "mpirun -x MASTER_ADDR=HOST"},
    {.name = "MVAPICH",
     .rank = "MV2_COMM_WORLD_RANK",
     .sizes = {"MV2_COMM_WORLD_SIZE"},
     .here = "MV2_COMM_WORLD_LOCAL_SIZE",
     .local = "MV2_COMM_WORLD_LOCAL_RANK",
     .way = "mpirun_rsh ... MASTER_ADDR=HOST COMMAND"},
    {.name = "MVAPICH",
     .rank = "MVP_COMM_WORLD_RANK",
     .sizes = {"MVP_COMM_WORLD_SIZE"},
     .here = "MVP_COMM_WORLD_LOCAL_SIZE",
     .local = "MVP_COMM_WORLD_LOCAL_RANK",
     .way = "mpiexec -genv MASTER_ADDR HOST"},
    {.name = "PALS",
     .rank = "PALS_RANKID",
     .sizes = {"PALS_SIZE", "PMI_SIZE"},
     .here = "PMI_LOCAL_SIZE",
     .local = "PMI_LOCAL_RANK",
     .job = {"PALS_APID"},
     .way = "mpiexec --env MASTER_ADDR=HOST",
     .plain = true},
    {.name = "LSF",
     .rank = "JSM_NAMESPACE_RANK",
     .sizes = {"JSM_NAMESPACE_SIZE"},
     .here = "JSM_NAMESPACE_LOCAL_SIZE",
     .local = "JSM_NAMESPACE_LOCAL_RANK",
     .job = {"LSB_JOBID"},
     .way = "jsrun -E MASTER_ADDR=HOST"},
    {.name = "MPICH or Intel MPI",
     .rank = "PMI_RANK",
     .sizes = {"PMI_SIZE"},
     .here = "MPI_LOCALNRANKS",
     .local = "MPI_LOCALRANKID",
     .job = {"PMI_JOBID"},
     .way = "mpiexec -genv MASTER_ADDR HOST",
     .plain = true},
    {.name = "Flux",
     .rank = "FLUX_TASK_RANK",
     .sizes = {"FLUX_JOB_SIZE"},
     .local = "FLUX_TASK_LOCAL_ID",
     .hosts = {"FLUX_JOB_NNODES"},
     .job = {"FLUX_JOB_ID"},
     .way = "flux run --env=MASTER_ADDR=HOST",
     .outer = true},
    {.name = "Slurm",
     .proof = "SLURM_STEP_ID",
     .rank = "SLURM_PROCID",
     .sizes = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     .hosts = {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
     .local = "SLURM_LOCALID",
     .job = {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID"},
     .look = look_at_slurm,
     .outer = true},
    {.name = "PMIx", .rank = "PMIX_RANK", .job = {"PMIX_NAMESPACE"}, .plain = true},
    {.name = "Kubernetes", .rank = "JOB_COMPLETION_INDEX", .outer = true},
    {.name = "the environment", .rank = "RANK", .sizes = {"WORLD_SIZE"}, .local = "LOCAL_RANK"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- rank and size ---- */

/* The first that is set; NULL: none. */
static const char *name_that_is_set(const char *const names[NAMES], sl_environment environment) {
    for (size_t i = 0; i < NAMES && names[i] != NULL; i++)
        if (sl_environment_text(environment, names[i]) != NULL)
            return names[i];
    return NULL;
}

static bool is_there(const row *r, sl_environment environment) {
    return sl_environment_text(environment, r->rank) != NULL &&
           (r->proof == NULL || sl_environment_text(environment, r->proof) != NULL);
}

static int read_row(sl_launcher *out, const row *r, sl_environment environment, sl_error *error) {
    uint64_t rank = 0, size = 0;
    int result = 0;
    *out = (sl_launcher){
        .name = r->name, .way = r->way, .size_name = name_that_is_set(r->sizes, environment)};
    if (r->sizes[0] != NULL && out->size_name == NULL)
        return sl_fail(error, SL_EINVAL, "%s=%s (%s), but %s is missing", r->rank,
                       sl_environment_text(environment, r->rank), r->name, r->sizes[0]);
    sl_environment_whole(environment, r->rank, SL_NODES_MAX - 1, &rank, &result, error);
    if (out->size_name != NULL)
        sl_environment_whole(environment, out->size_name, SL_NODES_MAX, &size, &result, error);
    if (result != 0)
        return result;
    out->rank = (uint32_t)rank;
    out->size = (uint32_t)size;
    int length = snprintf(out->seen, sizeof out->seen, "%s=%u", r->rank, out->rank);
    if (out->size_name != NULL)
        snprintf(out->seen + length, sizeof out->seen - (size_t)length, ", %s=%u", out->size_name,
                 out->size);
    if (out->size_name != NULL && rank >= size)
        return sl_fail(error, SL_EINVAL, "%s (%s): a rank must be below the number of processes",
                       out->seen, r->name);
    return 0;
}

static bool agrees(const sl_launcher *a, const sl_launcher *b) {
    return a->rank == b->rank &&
           (a->size_name == NULL || b->size_name == NULL || a->size == b->size);
}

/* Launchers that cannot lie around the chosen one must say the same; torchrun lies in any. */
static int check_agreement(sl_launcher *chosen, size_t after, sl_environment environment,
                           sl_error *error) {
    for (size_t i = after + 1; i < ROWS; i++) {
        sl_launcher other;
        if (rows[after].proof == rows[0].proof || rows[i].outer || !is_there(&rows[i], environment))
            continue;
        int result = read_row(&other, &rows[i], environment, error);
        if (result != 0)
            return result;
        if (!agrees(&other, chosen))
            return sl_fail(error, SL_EINVAL,
                           "%s (%s), but %s (%s): they disagree: unset what is not meant",
                           chosen->seen, chosen->name, other.seen, other.name);
        if (chosen->size_name == NULL && other.size_name != NULL) {
            chosen->size = other.size;
            chosen->size_name = other.size_name;
        }
    }
    return 0;
}

/* ---- where rank 0 is ---- */

void sl_whereabouts_ports(sl_whereabouts *l, uint32_t port) {
    l->ports_from = port + MORE_PORTS <= PORT_MAX ? port : PORT_MAX - MORE_PORTS;
    l->ports_to = l->ports_from + MORE_PORTS;
}

static void derive_ports(sl_launcher *l) {
    uint64_t hash = sl_hash(SL_HASH_START, l->job, strlen(l->job));
    sl_whereabouts_ports(&l->master, DERIVED_PORT_FROM + (uint32_t)(hash % DERIVED_PORTS));
}

/* All processes are on one host if the variable is `all`; NULL: nothing says so. */
static void compare_hosts(sl_launcher *l, sl_environment environment, const char *name,
                          uint64_t all) {
    const char *text = name != NULL ? sl_environment_text(environment, name) : NULL;
    uint64_t value;
    if (text == NULL)
        return;
    l->one_host = sl_whole(text, UINT64_MAX, &value) && value == all;
    l->several_hosts = !l->one_host;
}

/* What tells the job from others: empty where the launcher says nothing of the kind. */
static void name_job(sl_launcher *l, const row *r, sl_environment environment) {
    size_t length = 0;
    for (size_t i = 0; i < JOB_NAMES && r->job[i] != NULL && length < sizeof l->job; i++) {
        const char *text = sl_environment_text(environment, r->job[i]);
        if (text != NULL)
            length += (size_t)snprintf(l->job + length, sizeof l->job - length, "%s%s %.128s",
                                       length > 0 ? " " : "", r->job[i], text);
    }
}

/* Where the processes of the chosen launcher are, and which job they are. */
static void look(sl_launcher *l, const row *r, sl_environment environment) {
    compare_hosts(l, environment, r->here, l->size);
    compare_hosts(l, environment, name_that_is_set(r->hosts, environment), 1);
    const char *local = r->local != NULL ? sl_environment_text(environment, r->local) : NULL;
    uint64_t rank = 0;
    l->has_local_rank = local != NULL && sl_whole(local, l->rank, &rank);
    l->local_rank = (uint32_t)rank;
    name_job(l, r, environment);
    if (r->look != NULL)
        r->look(&l->master, environment);
}

int sl_launcher_find_master(sl_launcher *l, sl_environment environment, sl_error *error) {
    const char *host = sl_environment_text(environment, "MASTER_ADDR");
    uint64_t port = MASTER_PORT_USUAL;
    int result = 0;
    if (host == NULL)
        return 0;
    if (strlen(host) >= SL_HOST_MAX)
        return sl_fail(error, SL_EINVAL, "MASTER_ADDR: a host has at most %d characters",
                       SL_HOST_MAX - 1);
    sl_environment_whole(environment, "MASTER_PORT", PORT_MAX, &port, &result, error);
    if (result == 0 && port == 0)
        result = sl_fail(error, SL_EINVAL, "MASTER_PORT=0: a port from 1 to 65535 is needed");
    sl_whereabouts *master = &l->master;
    *master = (sl_whereabouts){0};
    add_host(master, host, strlen(host));
    sl_whereabouts_ports(master, (uint32_t)port);
    if (sl_environment_text(environment, rows[0].proof) == NULL)
        return result;
    /* Under torchrun this port is, or will be, that of torch's own store. */
    if (master->ports_from == port)
        master->ports_from++;
    if (l->job[0] == '\0') /* of a process that says its rank itself, as one of a group does */
        name_job(l, &rows[0], environment);
    return result;
}

/* Of a launcher of which only rank and size are known, the one around it that says the same. */
static const row *prefer_who_knows_more(sl_launcher *chosen, size_t at,
                                        sl_environment environment) {
    const row *best = &rows[at];
    for (size_t i = at + 1; best->plain && i < ROWS; i++) {
        sl_launcher other;
        if (rows[i].outer && is_there(&rows[i], environment) &&
            read_row(&other, &rows[i], environment, NULL) == 0 && other.size_name != NULL &&
            agrees(&other, chosen)) {
            *chosen = other;
            best = &rows[i];
        }
    }
    return best;
}

int sl_launcher_find(sl_launcher *out, sl_environment environment, sl_error *error) {
    size_t i = 0;
    *out = (sl_launcher){0};
    while (i < ROWS && !is_there(&rows[i], environment))
        i++;
    int result = i < ROWS ? read_row(out, &rows[i], environment, error) : 0;
    if (result == 0 && i < ROWS)
        result = check_agreement(out, i, environment, error);
    if (result != 0)
        return result;
    if (i < ROWS)
        look(out, prefer_who_knows_more(out, i, environment), environment);
    derive_ports(out);
    return sl_launcher_find_master(out, environment, error);
}

const char *sl_launcher_hint(sl_environment environment) {
    if (sl_environment_text(environment, "SLURM_JOB_ID") != NULL &&
        sl_environment_text(environment, "SLURM_STEP_ID") == NULL)
        return "; SLURM_JOB_ID is set, but this is no step: start it with srun";
    if (sl_environment_text(environment, "WORLD_SIZE") != NULL)
        return "; WORLD_SIZE is set, but RANK is missing";
    if (sl_environment_text(environment, "KUBERNETES_SERVICE_HOST") != NULL)
        return "; in Kubernetes a job with completionMode: Indexed sets JOB_COMPLETION_INDEX";
    if (sl_environment_text(environment, "MASTER_ADDR") != NULL)
        return "; MASTER_ADDR is set, but RANK and WORLD_SIZE are missing";
    return "";
}

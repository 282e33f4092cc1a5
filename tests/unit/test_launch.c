/* test_launch.c - rank, size and peers from made-up environments, and the messages of a
 * rendezvous. */
#include "harness.h"
#include "launch/greeting.h"
#include "launch/hostfile.h"
#include "launch/launcher.h"
#include "launch/origin.h"
#include "launch/rendezvous.h"
#include "launch/roster.h"
#include "starling/starling.h"

static sl_error error;
static sl_launch *launch; /* both of most tests */
static sl_roster *roster;

enum { VARIABLES_MAX = 16 };
typedef char *variables[VARIABLES_MAX];

static int find(const variables v, uint32_t nodes, sl_launch_settings settings) {
    settings.environment = v;
    settings.timeout_s = 1;
    sl_launch_close(&launch);
    return sl_launch_find(&launch, &settings, nodes, &error);
}

static void forget(void) {
    sl_launch_close(&launch);
    sl_roster_close(&roster);
}

static int parse(const char *text) {
    sl_roster_close(&roster);
    return sl_roster_parse(&roster, text, "roster", &error);
}

/* ---- what launchers say ---- */

#define TORCHRUN                                                                                   \
    "RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=node-a", "MASTER_PORT=29500",                           \
        "TORCHELASTIC_RUN_ID=none", "LOCAL_WORLD_SIZE=2"
#define SLURM                                                                                      \
    "SLURM_PROCID=2", "SLURM_NTASKS=4", "SLURM_STEP_ID=0", "SLURM_JOB_ID=17", "SLURM_NNODES=2",    \
        "SLURM_STEP_NODELIST=rack[1-2]n[07,09-12],login", "SLURM_LAUNCH_NODE_IPADDR=10.0.0.9"
#define OPEN_MPI                                                                                   \
    "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=2", "PMIX_NAMESPACE=1105657857"
#define ON_ONE_HOST "OMPI_COMM_WORLD_LOCAL_SIZE=4"
#define ON_TWO_HOSTS                                                                               \
    "OMPI_COMM_WORLD_LOCAL_SIZE=2",                                                                \
        "OMPI_MCA_orte_hnp_uri=1105657856.0;tcp://192.0.2.2,10.0.0.1:47001;tcp6://[fd00::2]:50303"
#define KUBERNETES "JOB_COMPLETION_INDEX=2", "KUBERNETES_SERVICE_HOST=10.0.0.1"

#define MPICH "PMI_RANK=2", "PMI_SIZE=4", "PMI_FD=6"
#define PALS "PALS_RANKID=2", "PALS_APID=5", "PMI_RANK=2", "PMI_SIZE=4"
#define FLUX "FLUX_TASK_RANK=2", "FLUX_JOB_SIZE=4", "FLUX_JOB_ID=12"

static const struct {
    variables variables;
    const char *words[3];
} good[] = {
    {{MPICH, "MPI_LOCALNRANKS=4"}, {"PMI_RANK=2, PMI_SIZE=4 (MPICH or Intel MPI)", "127.0.0.1"}},
    {{MPICH, "MPI_LOCALNRANKS=2", "MASTER_ADDR=node-a"}, {"(MPICH or", "node-a ports 29500"}},
    {{"MV2_COMM_WORLD_RANK=2", "MV2_COMM_WORLD_SIZE=4", "MV2_COMM_WORLD_LOCAL_SIZE=4", MPICH},
     {"MV2_COMM_WORLD_RANK=2, MV2_COMM_WORLD_SIZE=4 (MVAPICH)", "127.0.0.1"}},
    {{"MVP_COMM_WORLD_RANK=2", "MVP_COMM_WORLD_SIZE=4", "MASTER_ADDR=a"}, {"(MVAPICH)"}},
    {{PALS, "PMI_LOCAL_SIZE=4"}, {"PALS_RANKID=2, PMI_SIZE=4 (PALS)", "127.0.0.1"}},
    {{PALS, "MASTER_ADDR=node-a"}, {"(PALS)", "node-a"}},
    {{FLUX, "FLUX_JOB_NNODES=1"}, {"FLUX_TASK_RANK=2, FLUX_JOB_SIZE=4 (Flux)", "127.0.0.1"}},
    {{FLUX, "FLUX_JOB_NNODES=2", MPICH, "MASTER_ADDR=node-a"}, {"(Flux)", "node-a"}},
    {{FLUX, PALS, "FLUX_JOB_NNODES=1"}, {"(Flux)", "127.0.0.1"}},
    {{"FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=1", "FLUX_JOB_NNODES=1", MPICH, "MPI_LOCALNRANKS=4"},
     {"(MPICH or"}},
    {{"JSM_NAMESPACE_RANK=2", "JSM_NAMESPACE_SIZE=4", "JSM_NAMESPACE_LOCAL_SIZE=4"}, {"(LSF)"}},
    {{SLURM, MPICH}, {"SLURM_PROCID=2, SLURM_NTASKS=4 (Slurm)", "at rack1n07 or 10.0.0.9 ports "}},
    {{"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_ID=0", "SLURM_NNODES=2", MPICH,
      "MASTER_ADDR=a"},
     {"(MPICH or"}},
    {{TORCHRUN}, {"RANK=2, WORLD_SIZE=4 (torchrun)", "node-a ports 29501 to 29508"}},
    {{TORCHRUN, SLURM}, {"(torchrun)", "node-a"}},
    {{TORCHRUN, "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"}, {"(torchrun)"}},
    {{"RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=node-a"}, {"node-a ports 29500 to 29508"}},
    {{"RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=65535"}, {"a ports 65527 to 65535"}},
    {{SLURM}, {"SLURM_PROCID=2, SLURM_NTASKS=4 (Slurm)", "at rack1n07 or 10.0.0.9 ports "}},
    {{SLURM, "MASTER_ADDR=node-b", "MASTER_PORT=7000"}, {"(Slurm)", "node-b ports 7000 to 7008"}},
    {{SLURM, "PMIX_RANK=2", "RANK=2", "WORLD_SIZE=4"}, {"(Slurm)"}},
    {{"SLURM_PROCID=2", "SLURM_NTASKS=9", "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0",
      "SLURM_STEP_NUM_NODES=1", "SLURM_NNODES=3"},
     {"SLURM_STEP_NUM_TASKS=4", "at 127.0.0.1 ports "}},
    {{OPEN_MPI, ON_ONE_HOST}, {"OMPI_COMM_WORLD_RANK=2, ", "at 127.0.0.1 ports "}},
    {{OPEN_MPI, ON_TWO_HOSTS}, {"(Open MPI)", "at 192.0.2.2 or 10.0.0.1 ports "}},
    {{OPEN_MPI, ON_TWO_HOSTS, "MASTER_ADDR=node-a"}, {"at node-a ports 29500"}},
    {{OPEN_MPI, ON_ONE_HOST, "SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_ID=1"},
     {"(Open MPI)"}},
    {{"PMIX_RANK=2", "PMIX_NAMESPACE=a", "MASTER_ADDR=node-a"}, {"rank 2 of 4 from PMIX_RANK=2 "}},
    {{KUBERNETES, "STARLING_ROSTER=host-{rank}.svc:7000"}, {"(Kubernetes), with a roster"}},
    {{KUBERNETES, "STARLING_MASTER=job-0.job:7000"}, {"(Kubernetes)", "job-0.job ports 7000"}},
    {{KUBERNETES, "RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=job-0.job"}, {"(Kubernetes)"}},
    {{KUBERNETES, OPEN_MPI, ON_ONE_HOST}, {"(Open MPI)"}},
    {{"STARLING_RANK=2", "STARLING_ROSTER=a:1,b:1,c:1,[::1]:1"}, {"from STARLING_RANK=2, with"}},
    {{"STARLING_RANK=2", "STARLING_MASTER=[fd00::2]:7000"}, {"at fd00::2 ports 7000 to 7008"}},
    {{"STARLING_RANK=2", "STARLING_SIZE=4", "MASTER_ADDR=node-a", "OMPI_COMM_WORLD_RANK=0",
      "OMPI_COMM_WORLD_SIZE=9", "SLURM_JOB_ID=3"},
     {"STARLING_RANK=2", "node-a"}},
    {{OPEN_MPI, "STARLING_ROSTER=a:1,b:1,c:1,d:1"}, {"(Open MPI), with a roster"}},
};

/* Which of the agents of its host is it? What is not of its launcher says nothing. */
static const struct {
    variables variables;
    uint32_t place;
} seats[] = {
    {{TORCHRUN, "LOCAL_RANK=1"}, 1},
    {{TORCHRUN, "LOCAL_RANK=0", "SLURM_LOCALID=1"}, 0},
    {{OPEN_MPI, ON_TWO_HOSTS, "OMPI_COMM_WORLD_LOCAL_RANK=1"}, 1},
    {{SLURM, "SLURM_LOCALID=0"}, 0},
    {{SLURM, "LOCAL_RANK=0"}, 2},
    {{"STARLING_RANK=2", "STARLING_MASTER=a:1", "SLURM_LOCALID=0"}, 2},
    {{"STARLING_RANK=2", "STARLING_ROSTER=a:1,b:1,b:2,b:3"}, 1},
    {{"STARLING_RANK=2", "STARLING_ROSTER=a:1,a:2,b:2,b:3"}, 0},
};

FIXTURES(NULL, forget);

START_LOOP_TEST(a_launch_knows_its_place_on_its_host, sizeof seats / sizeof *seats) {
    EXPECT_WELL(find(seats[_i].variables, 4, (sl_launch_settings){0}));
    ck_assert_uint_eq(sl_launch_place(launch), seats[_i].place);
}

START_LOOP_TEST(launchers_say_rank_size_and_where, sizeof good / sizeof *good) {
    EXPECT_WELL(find(good[_i].variables, 4, (sl_launch_settings){0}));
    ck_assert_uint_eq(sl_launch_rank(launch), 2);
    ck_assert_uint_eq(sl_launch_size(launch), 4);
    const char *text = sl_launch_describe(launch);
    for (size_t i = 0; i < 3 && good[_i].words[i] != NULL; i++)
        ck_assert_msg(strstr(text, good[_i].words[i]) != NULL, "%s in %s", good[_i].words[i], text);
    ck_assert_uint_ne(sl_launch_run_id(launch), 0);
}

static const struct {
    variables variables;
    const char *words[4];
} bad[] = {
    {{NULL}, {"nothing says which of 4 peers", "torchrun", "STARLING_RANK", "--rank"}},
    {{"RANK="}, {"nothing says which"}},
    {{"SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_JOB_ID=3"}, {"SLURM_JOB_ID", "srun"}},
    {{"WORLD_SIZE=4", "MASTER_ADDR=a"}, {"WORLD_SIZE is set, but RANK is missing"}},
    {{"MASTER_ADDR=a"}, {"MASTER_ADDR is set, but RANK and WORLD_SIZE are missing"}},
    {{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, {"completionMode: Indexed"}},
    {{"RANK=2", "MASTER_ADDR=a"}, {"RANK=2", "WORLD_SIZE is missing"}},
    {{"RANK=two", "WORLD_SIZE=4"}, {"RANK=two", "a whole number"}},
    {{"RANK=-1", "WORLD_SIZE=4"}, {"RANK=-1", "a whole number"}},
    {{"RANK=2", "WORLD_SIZE=99999999999"}, {"WORLD_SIZE=99999999999"}},
    {{"RANK=4", "WORLD_SIZE=4", "MASTER_ADDR=a"}, {"RANK=4, WORLD_SIZE=4", "must be below"}},
    {{"RANK=2", "WORLD_SIZE=5", "MASTER_ADDR=a"}, {"WORLD_SIZE=5", "4 nodes (topology.nodes)"}},
    {{"JOB_COMPLETION_INDEX=4", "STARLING_ROSTER=h{rank}:1"},
     {"JOB_COMPLETION_INDEX=4", "ranks 0 to 3"}},
    {{"STARLING_RANK=4", "STARLING_MASTER=a:1"}, {"STARLING_RANK=4", "ranks 0 to 3"}},
    {{"STARLING_RANK=2", "STARLING_SIZE=3", "STARLING_MASTER=a:1"}, {"STARLING_SIZE=3", "4 nodes"}},
    {{"STARLING_RANK=2"}, {"STARLING_RANK=2", "where the others are", "STARLING_ROSTER"}},
    {{KUBERNETES}, {"JOB_COMPLETION_INDEX=2 (Kubernetes)", "where the others are", "{rank}"}},
    {{"RANK=2", "WORLD_SIZE=4"}, {"RANK=2, WORLD_SIZE=4", "MASTER_ADDR"}},
    {{"RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=http"}, {"MASTER_PORT=http"}},
    {{"RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=0"}, {"MASTER_PORT=0"}},
    {{"RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=0.0.0.0"}, {"0.0.0.0", "name its host"}},
    {{MPICH}, {"PMI_RANK=2, PMI_SIZE=4 (MPICH", "where the others are", "-genv MASTER_ADDR HOST"}},
    {{PALS, "PMI_LOCAL_SIZE=2"}, {"PALS_RANKID=2", "--env MASTER_ADDR=HOST"}},
    {{FLUX, "FLUX_JOB_NNODES=2"}, {"FLUX_TASK_RANK=2", "flux run --env=MASTER_ADDR=HOST"}},
    {{"PMI_RANK=2"}, {"PMI_RANK=2", "PMI_SIZE is missing"}},
    {{MPICH, "RANK=1", "WORLD_SIZE=4"}, {"PMI_RANK=2", "RANK=1", "disagree"}},
    {{OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE=2"}, {"(Open MPI)", "where the others are"}},
    {{OPEN_MPI, ON_TWO_HOSTS, "MASTER_ADDR=127.0.0.1"}, {"127.0.0.1", "several hosts"}},
    {{OPEN_MPI, ON_TWO_HOSTS, "MASTER_ADDR=localhost"}, {"localhost", "several hosts"}},
    {{OPEN_MPI, "RANK=0", "WORLD_SIZE=1"},
     {"OMPI_COMM_WORLD_RANK=2, OMPI_COMM_WORLD_SIZE=4 (Open MPI)", "RANK=0, WORLD_SIZE=1",
      "disagree"}},
    {{SLURM, "PMIX_RANK=1"}, {"SLURM_PROCID=2", "PMIX_RANK=1", "disagree"}},
    {{SLURM, "RANK=2", "WORLD_SIZE=8"}, {"SLURM_NTASKS=4", "WORLD_SIZE=8", "disagree"}},
    {{KUBERNETES, "RANK=1", "WORLD_SIZE=4"}, {"JOB_COMPLETION_INDEX=2", "RANK=1", "disagree"}},
    {{KUBERNETES, "STARLING_ROSTER=host-{i}.svc:7000"}, {"host-{i}.svc:7000", "{rank}"}},
    {{KUBERNETES, "STARLING_ROSTER=host.svc:7000"}, {"host.svc:7000", "4 ranks", "{rank}"}},
    {{KUBERNETES, "STARLING_ROSTER=host-{rank}.svc"}, {"host-0.svc", "HOST:PORT"}},
    {{KUBERNETES, "STARLING_ROSTER=h-{rank}:1,b:2"}, {"h-{rank}:1,b:2", "one HOST:PORT"}},
    {{KUBERNETES, "STARLING_ROSTER=a:1,b:1,c:1"}, {"3 ranks", "4 nodes"}},
    {{KUBERNETES, "STARLING_ROSTER=a:7,b:7,a:7,d:7"}, {"a:7", "ranks 0 and 2"}},
    {{KUBERNETES, "STARLING_ROSTER=no/such/file"}, {"no/such/file", "No such file"}},
    {{KUBERNETES, "STARLING_ROSTER=h{rank}:1", "STARLING_MASTER=a:1"}, {"h{rank}:1", "both"}},
    {{KUBERNETES, "STARLING_MASTER=a"}, {"STARLING_MASTER", "HOST:PORT"}},
    {{KUBERNETES, "STARLING_MASTER=a:1", "STARLING_LISTEN=b"}, {"STARLING_LISTEN", "HOST:PORT"}},
    {{KUBERNETES, "STARLING_MASTER=a:1", "STARLING_RUN_ID=x"}, {"STARLING_RUN_ID=x"}},
};

START_LOOP_TEST(what_is_wrong_is_named_in_one_line, sizeof bad / sizeof *bad) {
    ck_assert_int_ne(find(bad[_i].variables, 4, (sl_launch_settings){0}), 0);
    for (size_t i = 0; i < 4 && bad[_i].words[i] != NULL; i++)
        ck_assert_msg(strstr(error.text, bad[_i].words[i]) != NULL, "%s in %s", bad[_i].words[i],
                      error.text);
    ck_assert_ptr_null(strchr(error.text, '\n'));
    ck_assert_ptr_null(launch);
}

START_TEST(what_the_caller_says_wins) {
    const variables v = {TORCHRUN, "STARLING_RANK=1", "STARLING_ROSTER=/nowhere",
                         "STARLING_RUN_ID=8"};
    sl_launch_settings s = {.has_rank = true, .rank = 3, .master = "node-c:7000", .run_id = 0};
    EXPECT_WELL(find(v, 4, s));
    ck_assert_uint_eq(sl_launch_rank(launch), 3);
    ck_assert_ptr_nonnull(strstr(sl_launch_describe(launch), "node-c ports 7000"));
    ck_assert_uint_eq(sl_launch_run_id(launch), 8);
    s.roster = "a:1";
    ck_assert_int_eq(find(v, 4, s), SL_EINVAL);
    s = (sl_launch_settings){.has_rank = true, .roster = "a:1,b:2,c:3,d:4", .run_id = 9};
    EXPECT_WELL(find(v, 4, s));
    ck_assert_uint_eq(sl_launch_rank(launch), 0);
    ck_assert_uint_eq(sl_launch_run_id(launch), 9);
}

#define OF_JOB(rank, job)                                                                          \
    "OMPI_COMM_WORLD_RANK=" rank, "OMPI_COMM_WORLD_SIZE=4", "PMIX_NAMESPACE=" job, ON_ONE_HOST
#define OWN .has_rank = true
#define LISTED(list) .has_rank = true, .joiners = 2, .roster = list

/* All of a job, or of a roster without those who join, have one run id, and others another. Under
 * torchrun a group of processes may be one peer, whose rank is no process's. */
static const struct {
    variables variables[2];
    sl_launch_settings settings[2];
    bool is_same;
} runs[] = {
    {{{OF_JOB("2", "17")}, {OF_JOB("1", "17")}}, {{0}, {0}}, true},
    {{{OF_JOB("2", "17")}, {OF_JOB("1", "18")}}, {{0}, {0}}, false},
    {{{TORCHRUN}, {TORCHRUN}}, {{0}, {OWN, .rank = 1}}, true},
    {{{NULL}, {NULL}}, {{LISTED("a:1,b:1,c:1,d:1")}, {LISTED("a:1,b:1,c:1,d:1,e:1")}}, true},
    {{{NULL}, {NULL}}, {{LISTED("a:1,b:1,c:1,d:1")}, {LISTED("a:1,b:1,c:1,d:2")}}, false},
    {{{NULL}, {NULL}}, {{LISTED("a:1,b:1,c:1,d:1")}, {LISTED("b:1,a:1,c:1,d:1")}}, false},
    {{{NULL}, {NULL}},
     {{OWN, .master = "a:1", .run_id = 7}, {OWN, .run_id = 7, .roster = "a:1,b:1,c:1,d:1"}},
     true},
};

START_LOOP_TEST(runs_are_told_apart, sizeof runs / sizeof *runs) {
    uint64_t ids[2];
    for (int i = 0; i < 2; i++) {
        EXPECT_WELL(find(runs[_i].variables[i], 4, runs[_i].settings[i]));
        ids[i] = sl_launch_run_id(launch);
        ck_assert_uint_ne(ids[i], 0);
    }
    ck_assert((ids[0] == ids[1]) == runs[_i].is_same);
}

/* Numbers that are the process's own rank may differ, and nothing else. */
START_TEST(processes_of_one_job_have_one_origin) {
    sl_origin first, second, other;
    sl_origin_find(&first, 0, 0, 5);
    sl_origin_find(&second, 1, 1, 5);
    sl_origin_find(&other, 1, 1, 6);
    ck_assert(sl_origin_agrees(&first, &second));
    ck_assert(!sl_origin_agrees(&first, &other));
    other = first;
    other.command++;
    ck_assert(sl_origin_agrees(&first, &other));
    other.variables++;
    ck_assert(!sl_origin_agrees(&first, &other));
    other.host++; /* where variables are others in any case */
    ck_assert(sl_origin_agrees(&first, &other));
    other.place++;
    ck_assert(!sl_origin_agrees(&first, &other));
    ck_assert_double_ge(sl_origin_age_s(), 0);
    ck_assert_double_le(sl_origin_age_s(), 3600);
}

START_TEST(a_roster_that_is_told_says_of_which_run_it_is) {
    char line[SL_IDENTITY_BYTES];
    uint64_t run = 0;
    ck_assert_int_lt(sl_identity_write(line, UINT64_MAX), SL_IDENTITY_BYTES);
    ck_assert_str_eq(sl_identity_read(line, &run), "");
    ck_assert_uint_eq(run, UINT64_MAX);
    ck_assert_str_eq(sl_identity_read("run 7\na:1\n", &run), "a:1\n");
    for (size_t i = 0; i < 3; i++)
        ck_assert_ptr_null(sl_identity_read((const char *[]){"", "a:1\n", "run 7"}[i], &run));
}

START_TEST(certificates_need_a_roster_with_one_for_each_rank) {
#define PIN " sha256:" P16 P16 P16 P16
#define P16 "0123456789abcdef"
    const sl_launch_settings pinned = {.has_rank = true, .certificates = true};
    sl_launch_settings s = pinned;
    s.roster = "10.0.0.1:1" PIN ",10.0.0.2:1" PIN;
    EXPECT_WELL(find((variables){NULL}, 2, s));
    s.roster = "10.0.0.1:1" PIN ",10.0.0.2:1";
    EXPECT_ERROR(find((variables){NULL}, 2, s), SL_EFILE,
                 "roster:2: rank 1 at 10.0.0.2:1 has no certificate");
    s = pinned;
    s.master = "10.0.0.1:1";
    ck_assert_int_eq(find((variables){NULL}, 2, s), SL_EINVAL);
}

/* A host's own name may be 127.0.1.1 on itself: there all its ranks are, and listen everywhere. */
START_TEST(the_own_host_may_be_loopback) {
    const char *text = "localhost:1\nlocalhost:2\n192.0.2.1:1\n";
    for (uint32_t rank = 0; rank < 3; rank++) {
        ck_assert_int_eq(parse(text), 0);
        sl_roster_be(roster, rank);
        ck_assert_int_eq(sl_roster_resolve(roster, 20, NULL, &error), rank < 2 ? 0 : SL_EFILE);
        ck_assert(rank == 2 || strcmp(sl_roster_everywhere(roster), "0.0.0.0") == 0);
    }
    ck_assert_msg(strstr(error.text, "rank 0 at localhost:1, here 127.0.0.1") != NULL, "%s",
                  error.text);
    ck_assert_int_eq(parse("localhost:1\n[fd00::1]:1\n"), 0);
    sl_roster_be(roster, 0);
    EXPECT_WELL(sl_roster_resolve(roster, 20, NULL, &error));
    ck_assert_str_eq(sl_roster_everywhere(roster), "::");
    ck_assert_int_eq(parse("localhost:1\nlocalhost:2\n"), 0);
    sl_roster_be(roster, 0);
    EXPECT_WELL(sl_roster_resolve(roster, 20, NULL, &error));
    ck_assert_ptr_null(sl_roster_everywhere(roster));
}

/* ---- lists of hosts ---- */

static const struct {
    const char *text;
    uint32_t ranks;
    const char *places; /* "": it is a roster, as it stands */
} hostfiles[] = {
    {"node01 slots=2\nnode02 slots=2\n", 4, "node01:7400 node01:7401 node02:7400 node02:7401"},
    {"# hosts\nnode01 slots = 2 max_slots=8 # two\n\nnode02\r\n", 3,
     "node01:7400 node01:7401 node02:7400"},
    {"node01 slots=8\nnode02 slots=8\n", 2, "node01:7400 node01:7401"},
    {"node01 slots=0\nnode02 slots=2\n", 2, "node02:7400 node02:7401"},
    {"node01\nnode01\nnode02\nnode01\n", 4, "node01:7400 node01:7401 node02:7400 node01:7402"},
    {"node01:2\nnode02:2\n", 4, "node01:7400 node01:7401 node02:7400 node02:7401"},
    {"node01:1\nnode02:1\n", 2, "node01:7400 node02:7400"},
    {"node01:2:mlx5_0\nnode02:1\n", 3, "node01:7400 node01:7401 node02:7400"},
    {"me@node01:2 ifhn=ib0\n", 2, "node01:7400 node01:7401"},
    {"fd00::1 slots=2\n10.0.0.1\n", 3, "[fd00::1]:7400 [fd00::1]:7401 10.0.0.1:7400"},
    {"rack[1-2]n[07,09-10],login", 7,
     "rack1n07:7400 rack1n09:7400 rack1n10:7400 rack2n07:7400 rack2n09:7400 rack2n10:7400 "
     "login:7400"},
    {"node[1-2]:2", 4, "node1:7400 node1:7401 node2:7400 node2:7401"},
    {"node01,node02", 2, "node01:7400 node02:7400"},
    {"h{rank}.{rank}:7{rank}", 11,
     "h0.0:70 h1.1:71 h2.2:72 h3.3:73 h4.4:74 h5.5:75 h6.6:76 h7.7:77 h8.8:78 h9.9:79 h10.10:710"},
    {"node01:7400\nnode02:7400\n", 2, ""},
    {"node01:7400\nnode02:7400\n", 8, ""},
    {"node01:1\nnode02:2\n", 2, ""},
    {"0 node01:7400\n1 node02:7400\n", 2, ""},
    {"[fd00::1]:7400\nnode02:7400\n", 2, ""},
    {"node01:7400\nnode02\n", 2, ""},
    {"node01:http\nnode02\n", 2, ""},
    {"", 2, ""},
};

/* The file, or a list with commas, as a launch finds it. */
static int find_hosts(const char *text, uint32_t ranks) {
    char path[] = "/tmp/starling-hosts-XXXXXX";
    if (strchr(text, ',') != NULL || strchr(text, '\n') == NULL)
        return sl_roster_find(&roster, text, ranks, 0, 7400, &error);
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, strlen(text)), strlen(text));
    close(file);
    const int result = sl_roster_find(&roster, path, ranks, 0, 7400, &error);
    unlink(path);
    return result;
}

START_LOOP_TEST(lists_of_hosts_give_a_rank_to_each_slot, sizeof hostfiles / sizeof *hostfiles) {
    const char *text = hostfiles[_i].text, *places = hostfiles[_i].places;
    sl_hostfile hosts = {0};
    char found[512] = "";
    if (places[0] == '\0') {
        EXPECT_WELL(sl_hostfile_parse(&hosts, text, "hosts", hostfiles[_i].ranks, &error));
        return;
    }
    EXPECT_WELL(find_hosts(text, hostfiles[_i].ranks));
    for (uint32_t i = 0; i < sl_roster_count(roster); i++) {
        const char *host = sl_roster_host(roster, i);
        const size_t at = strlen(found);
        snprintf(found + at, sizeof found - at, strchr(host, ':') != NULL ? "%s[%s]:%u" : "%s%s:%u",
                 i > 0 ? " " : "", host, sl_roster_port(roster, i));
    }
    ck_assert_str_eq(found, places);
}

START_TEST(wrong_lists_of_hosts_are_named) {
    static const refusal wrong[] = {
        {"node01 slots=2\nnode02 slots=1\n", "3 slots, the topology 4 nodes"},
        {"node01 slots=4\nnode02 4\n", ":2: '4' is not slots=N"},
        {"node01 slots=four\n", ":1: 'slots=four' is not slots=N"},
        {"node01 sockets=2\n", ":1: 'sockets=2' is not slots=N"},
        {"node[1-x]\n", "brackets hold numbers and ranges"},
        {"node[4-1]\n", "brackets hold numbers and ranges"},
        {"node[1-4\n", "brackets hold numbers and ranges"},
        {"node[1-4]:7400\n", "STARLING_PORT (--port)"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_lt(find_hosts(wrong[i].text, 4), 0);
        ck_assert_msg(strstr(error.text, wrong[i].said) != NULL, "%s", error.text);
        ck_assert_ptr_null(roster);
    }
    ck_assert_int_lt(sl_roster_find(&roster, "a,a", 2, 0, 65535, &error), 0);
    ck_assert_msg(strstr(error.text, "too many ranks for ports") != NULL, "%s", error.text);
}

START_TEST(loopback_beside_other_hosts_is_refused) {
    ck_assert_int_eq(parse("192.0.2.1:1\n127.0.0.1:1\n"), 0);
    EXPECT_ERROR(sl_roster_resolve(roster, 1, NULL, &error), SL_EFILE,
                 "roster:2: rank 1 at 127.0.0.1:1 is reached from its own host "
                 "only, but rank 0 is at 192.0.2.1:1");
    ck_assert_int_eq(parse("localhost:1\n[fd00::1]:1\n"), 0);
    EXPECT_ERROR(sl_roster_resolve(roster, 20, NULL, &error), SL_EFILE, "localhost:1, here ");
}

/* ---- messages ---- */

/* Release 0.2.0 tells no origin: it is read to its end, to be answered. fuzz_launch.c has what is
 * no greeting. */
START_TEST(a_greeting_of_an_older_protocol_is_read) {
    sl_greeting got, g = {.rank = 1, .size = 2, .port = 1, .origin = {1, 2, 3, 4}};
    uint8_t bytes[SL_GREETING_BYTES_MAX];
    for (int is_old = 0; is_old < 2; is_old++) {
        g.protocol = is_old ? 9 : SL_PROTOCOL_VERSION;
        const size_t count = sl_greeting_encode(&g, bytes);
        ck_assert_uint_eq(count, SL_GREETING_HEADER_BYTES + SL_SUM_BYTES +
                                     (is_old ? 0 : SL_GREETING_ORIGIN_BYTES));
        ck_assert_uint_eq(sl_greeting_decode(&got, bytes, count), count);
        ck_assert(got.protocol == g.protocol &&
                  got.origin.command == (is_old ? 0 : g.origin.command));
    }
}

START_TEST(an_answer_comes_as_it_went) {
    uint8_t bytes[64];
    sl_answer got;
    const sl_answer a = {SL_ANSWER_ROSTER, (const uint8_t *)"a:1\nb:2\n", 8};
    const size_t count = sl_answer_encode(&a, bytes);
    for (size_t n = 0; n < count; n++)
        ck_assert_uint_gt(sl_answer_decode(&got, bytes, n, 8), n);
    ck_assert_uint_eq(sl_answer_decode(&got, bytes, count, 8), count);
    ck_assert(got.type == SL_ANSWER_ROSTER && got.bytes == 8 && memcmp(got.text, a.text, 8) == 0);
    ck_assert_uint_eq(sl_answer_decode(&got, bytes, count, 7), 0);
    for (size_t n = 0; n < count; n++) {
        bytes[n] ^= 0x10;
        ck_assert_uint_ne(sl_answer_decode(&got, bytes, count, 8), count);
        bytes[n] ^= 0x10;
    }
}

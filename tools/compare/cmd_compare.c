/* cmd_compare.c - `starling compare`: several experiments on the same data, side by side, each with
 * one seed or several. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/names.h"
#include "cli/text_table.h"
#include "compare/comparison.h"
#include "compare/seeds.h"
#include "run/agents.h"
#include "run/fleet.h"
#include "run/resume.h"
#include "run/simulation.h"

/* Rounds that are simulated beside a run with agents, to know its messages. */
enum { ROUNDS_SIMULATED = 50 };

static const link_profile default_links[] = {{10000, 0.1}, {5, 20}};

typedef struct bench {
    const options *o;
    seeds seeds; /* count 0: those of the files */
    variants variants;
    sl_learner *learner; /* of the runs with this seed on so many nodes; NULL: none is open */
    uint64_t learner_seed;
    uint32_t learner_nodes;
    sl_task task;
    comparison comparison;
    char folder[SL_PATH_MAX];
} bench;

static const sl_experiment *first_of(const bench *b) {
    return b->variants.items[0].experiment;
}

/* Data, model and rounds are the same for all variants: a learner serves all runs that agree in
 * seed and nodes. */
static int take_learner(bench *b, const sl_experiment *e, sl_error *error) {
    uint32_t nodes = sl_topology_nodes(e->topology);
    if (b->learner != NULL && b->learner_seed == e->seed && b->learner_nodes == nodes)
        return 0;
    sl_learner_close(&b->learner);
    sl_learner_settings settings = sl_experiment_learner(e);
    int result = sl_learner_open(&b->learner, &settings, error);
    if (result != 0)
        return result;
    b->task = sl_learner_task(b->learner);
    b->comparison.shapes = sl_task_shapes(&b->task);
    b->learner_seed = e->seed;
    b->learner_nodes = nodes;
    return 0;
}

/* The run of a contender with the open learner. */
static trial trial_of(const bench *b, const contender *r) {
    return (trial){.experiment = r->variant->experiment,
                   .learner = b->learner,
                   .task = b->task,
                   .plan = r->plan,
                   .nodes = sl_topology_nodes(r->variant->experiment->topology)};
}

/* ---- one run ---- */

static void note_failure(attempt *a, const char *name, collector *here, const sl_error *error) {
    uint64_t kept;
    if (here->folder != NULL)
        sl_folder_rescue(here->folder, -1, &kept, &(sl_error){0});
    a->outcome = error->code == SL_EDIVERGED  ? OUTCOME_DIVERGED
                 : error->code == SL_ESTOPPED ? OUTCOME_STOPPED
                                              : OUTCOME_FAILED;
    a->diverged_in = error->round > 0 ? (uint64_t)error->round : 0;
    if (a->outcome == OUTCOME_DIVERGED)
        printf("  %s\n", error->text);
    else if (a->outcome == OUTCOME_FAILED)
        complain("%s: %s", name, error->text);
}

static void take_results(attempt *a, collector *here) {
    uint32_t nodes = here->trial->nodes;
    a->outcome = OUTCOME_DONE;
    a->milestones = here->milestones;
    a->milestone_count = here->milestone_count;
    here->milestones = NULL;
    a->timeline = here->timeline;
    here->timeline = NULL;
    a->cost = forecast_measured(here->records, nodes, &here->trial->task);
    a->operations = sl_learner_operations(here->trial->learner) *
                    (double)a->milestones[a->milestone_count - 1].round;
    for (uint32_t i = 0; i < nodes; i++) {
        const sl_times *t = &here->records[i].times;
        a->times.gradient += t->gradient / nodes;
        a->times.encode += t->encode / nodes;
        a->times.wait += t->wait / nodes;
        a->times.combine += t->combine / nodes;
    }
}

/* Agents say how long they took, but not to whom they sent how much: their first rounds do,
 * simulated. */
static int simulate_some(const trial *t, sl_timeline **timeline, sl_error *error) {
    sl_task task = t->task;
    if (task.rounds > ROUNDS_SIMULATED)
        task.rounds = ROUNDS_SIMULATED;
    return sl_sim_run(t->experiment, &task, &(sl_observer){0}, NULL, timeline, &stop_requested,
                      error);
}

static int run_on(const bench *b, const trial *t, const char *path, collector *here,
                  sl_error *error) {
    sl_summary summary;
    if (!b->o->agents)
        return simulation_run(here, path, true, &summary, error);
    int code = agents_run(here, path, true, &summary, error);
    return code != 0 ? code : simulate_some(t, &here->timeline, error);
}

/* DIR/NAME, or one of several in it. Its length. */
static int run_path(const bench *b, const char *name, uint64_t seed, char *out, size_t bytes) {
    if (b->seeds.count == 0)
        return snprintf(out, bytes, "%s/%s", b->folder, name);
    return snprintf(out, bytes, "%s/%s/seed-%llu", b->folder, name, (unsigned long long)seed);
}

static void run_attempt(bench *b, contender *r, attempt *a) {
    char path[2 * SL_PATH_MAX];
    collector here = {0};
    resumption begun;
    live_view view;
    sl_error error = {0};
    sl_experiment *e = r->variant->experiment;
    e->seed = a->seed;
    run_path(b, r->variant->name, a->seed, path, sizeof path);
    int code = take_learner(b, e, &error);
    const trial t = trial_of(b, r);
    live_view_open(&view, r->rounds, b->o->wide);
    view.quiet = true;
    if (code == 0)
        code = resume_prepare(&begun, &t, b->o, path, 0, &error);
    if (code == 0)
        code = collector_open(&here, &t, b->o->agents ? "run" : "sim", path, &begun.checkpoints,
                              &view, &error);
    if (code == 0)
        code = run_on(b, &t, path, &here, &error);
    live_view_clear(&view);
    if (code == 0)
        take_results(a, &here);
    else
        note_failure(a, r->variant->name, &here, &error);
    if (code != 0)
        collector_explain(&here, error.text);
    collector_close(&here);
}

/* ---- all of them ---- */

static int check_folders(const bench *b, sl_error *error) {
    char path[2 * SL_PATH_MAX];
    const comparison *c = &b->comparison;
    snprintf(path, sizeof path, "%s/compare.csv", b->folder);
    if (access(path, F_OK) == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: this folder already holds a comparison; choose another with --out",
                       b->folder);
    for (size_t i = 0; i < c->count * c->seeds; i++) {
        const contender *r = &c->items[i / c->seeds];
        int length = run_path(b, r->variant->name, r->attempts[i % c->seeds].seed, path,
                              sizeof path - sizeof "/config.json");
        if (length + (int)sizeof "/config.json" > SL_PATH_MAX)
            return sl_fail(error, SL_EINVAL,
                           "--out: the path is too long for the run folders in it");
        strcpy(path + length, "/config.json");
        if (access(path, F_OK) == 0)
            return sl_fail(error, SL_EFILE,
                           "%.*s: this folder already holds a run; choose another with --out",
                           length, path);
    }
    return 0;
}

/* With which seeds each variant runs. */
static int choose_seeds(const bench *b, sl_error *error) {
    const comparison *c = &b->comparison;
    for (size_t i = 0; i < c->count; i++) {
        const variant *v = c->items[i].variant;
        if (b->seeds.count > 0 && v->experiment->seed != first_of(b)->seed)
            return sl_fail(error, SL_EINVAL,
                           "%s: seed is %llu, but %llu in %s; with --seeds variants must not set "
                           "seeds of their own",
                           v->where, (unsigned long long)v->experiment->seed,
                           (unsigned long long)first_of(b)->seed, c->items[0].variant->where);
        for (size_t s = 0; s < c->seeds; s++)
            c->items[i].attempts[s].seed =
                b->seeds.count > 0 ? b->seeds.items[s] : v->experiment->seed;
    }
    return 0;
}

/* What only model and data tell: rounds, how algorithm, compressor and topology suit each other,
 * and the memory that a run needs. */
static int plan_all(bench *b, sl_error *error) {
    int result = 0;
    for (size_t i = 0; i < b->comparison.count && result == 0; i++) {
        contender *r = &b->comparison.items[i];
        if (contender_skipped(r))
            continue;
        sl_experiment *e = r->variant->experiment;
        e->seed = r->attempts[0].seed;
        result = take_learner(b, e, error);
        r->rounds = b->task.rounds;
        if (result == 0)
            result = sl_algorithm_check_shapes(&e->algorithm, &b->comparison.shapes, error);
        if (result == 0)
            result = sl_experiment_plan(&r->plan, e, &b->task, error);
        if (result != 0) {
            sl_fail_prefix(error, result, "%s", r->variant->where);
        } else {
            const trial t = trial_of(b, r);
            result = b->o->agents ? trial_check_agents(&t, b->o, r->variant->where, error)
                                  : trial_check_memory(&t, r->variant->where, false, error);
        }
    }
    return result;
}

static int check_agents(const bench *b, sl_error *error) {
    for (size_t i = 0; i < b->variants.count && b->o->agents; i++) {
        uint32_t nodes = sl_topology_nodes(b->variants.items[i].experiment->topology);
        if (nodes > CHILDREN_MAX)
            return sl_fail(error, SL_EINVAL,
                           "%s: the topology has %u nodes; --agents starts at most %u processes "
                           "(without it the simulator takes more)",
                           b->variants.items[i].where, nodes, CHILDREN_MAX);
    }
    return 0;
}

/* Everything that can be refused before anything is started. */
static int prepare(bench *b, sl_error *error) {
    comparison *c = &b->comparison;
    int result = variants_load(&b->variants, b->o, error);
    if (result == 0)
        result = check_agents(b, error);
    if (result == 0)
        result = comparison_open(c, &b->variants, b->seeds.count > 0 ? b->seeds.count : 1, error);
    if (result != 0)
        return result;
    c->agents = b->o->agents;
    c->links = b->o->link_count > 0 ? b->o->links : default_links;
    c->link_count =
        b->o->link_count > 0 ? b->o->link_count : sizeof default_links / sizeof *default_links;
    choose_folder(b->o, first_of(b), "-compare", b->folder);
    result = choose_seeds(b, error);
    if (result == 0)
        result = check_folders(b, error);
    if (result == 0)
        result = plan_all(b, error);
    return result != 0 ? result : sl_folder_make(b->folder, error);
}

/* "8", or "8 to 16". */
static const char *name_range(char out[48], uint64_t low, uint64_t high) {
    snprintf(out, 48, low == high ? "%llu" : "%llu to %llu", (unsigned long long)low,
             (unsigned long long)high);
    return out;
}

static void print_begin(const bench *b) {
    const comparison *c = &b->comparison;
    char nodes[48], rounds[48], runs[48] = "", text[384];
    uint64_t least_nodes = UINT64_MAX, most_nodes = 0, least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < c->count; i++) {
        const contender *r = &c->items[i];
        uint64_t n = sl_topology_nodes(r->variant->experiment->topology);
        if (contender_skipped(r))
            continue;
        least_nodes = n < least_nodes ? n : least_nodes;
        most_nodes = n > most_nodes ? n : most_nodes;
        least = r->rounds < least ? r->rounds : least;
        most = r->rounds > most ? r->rounds : most;
    }
    if (c->seeds > 1)
        snprintf(runs, sizeof runs, " and %zu seeds", c->seeds);
    snprintf(text, sizeof text, "%zu variant%s%s on %s %s, %s", c->count, c->count == 1 ? "" : "s",
             runs, name_range(nodes, least_nodes, most_nodes),
             c->agents ? "agents" : "simulated nodes", sl_learner_describe(b->learner));
    print_wrapped("", text, output_width(b->o->wide));
    tell_line("%s rounds each; folder %s", name_range(rounds, least, most), b->folder);
}

/* Seed by seed, so that variants share a learner. */
static void run_all(bench *b) {
    comparison *c = &b->comparison;
    char compressor[64], seed[48] = "";
    print_begin(b);
    for (size_t i = 0; i < c->count * c->seeds && !stop_requested; i++) {
        contender *r = &c->items[i % c->count];
        attempt *a = &r->attempts[i / c->count];
        if (contender_skipped(r))
            continue;
        name_compressor(&r->plan.config.compressor, compressor, sizeof compressor);
        if (c->seeds > 1)
            snprintf(seed, sizeof seed, ", seed %llu", (unsigned long long)a->seed);
        tell_line("%zu/%zu %s: %s, %s%s", i + 1, c->count * c->seeds, r->variant->name,
                  r->plan.config.name, compressor, seed);
        fflush(stdout);
        run_attempt(b, r, a);
    }
}

static size_t count_done(const comparison *c) {
    size_t done = 0;
    for (size_t i = 0; i < c->count; i++)
        done += contender_done(c, &c->items[i]) > 0;
    return done;
}

static int tell(bench *b) {
    comparison *c = &b->comparison;
    char path[SL_PATH_MAX + 16];
    sl_error error = {0};
    snprintf(path, sizeof path, "%s/compare.csv", b->folder);
    int result = comparison_finish(c, b->o, &error);
    if (result == 0) {
        comparison_print(c, b->o->wide);
        result = comparison_write(c, path, &error);
    }
    if (result == 0)
        return count_done(c) > 0 ? TOOL_OK : TOOL_FAILED;
    complain("%s", error.text);
    return TOOL_FAILED;
}

static int compare(bench *b) {
    sl_error error = {0};
    if (prepare(b, &error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    run_all(b);
    int code = !stop_requested || count_done(&b->comparison) > 0 ? tell(b) : TOOL_OK;
    if (stop_requested) {
        complain("stopped on request; what was recorded is in %s", b->folder);
        return TOOL_INTERRUPTED;
    }
    if (code == TOOL_FAILED && count_done(&b->comparison) == 0)
        complain("none of the %zu variants came to its end", b->comparison.count);
    return code;
}

/* ---- the command ---- */

static int take_target(void *request, const command_option *row, const char *text) {
    options *o = request;
    char *end;
    o->target_loss = strtod(text, &end);
    o->has_target_loss = end != text && *end == '\0' && isfinite(o->target_loss);
    if (o->has_target_loss)
        return TOOL_OK;
    complain("--%s %s: expected a number", row->name, text);
    return TOOL_USAGE;
}

static int add_link(void *request, const command_option *row, const char *text) {
    options *o = request;
    if (o->link_count == LINKS_MAX) {
        complain("--%s %s: at most %d links are compared", row->name, text, LINKS_MAX);
        return TOOL_USAGE;
    }
    int code = take_link(&o->links[o->link_count], text);
    o->link_count += code == TOOL_OK;
    return code;
}

static int run(void *request, char *const *operands, size_t count) {
    options *o = request;
    bench b = {.o = o};
    int code = TOOL_OK;
    options_take_files(o, operands, count);
    catch_signals(NULL);
    if (o->seeds != NULL)
        code = seeds_parse(&b.seeds, o->seeds);
    if (code == TOOL_OK)
        code = compare(&b);
    comparison_close(&b.comparison);
    sl_learner_close(&b.learner);
    variants_close(&b.variants);
    return code;
}

static const command_option
    option_seeds = {"seeds", .argument = "LIST",
                    .help = "runs each with every seed, such as 1..5 or 1,2,5; the table gives "
                            "mean ± sample standard deviation",
                    .take = take_text, .offset = offsetof(options, seeds)},
    option_agents = {"agents",
                     .help = "trains with real agents, as `starling run`, not in the simulator",
                     .take = take_switch, .offset = offsetof(options, agents)},
    option_target = {"target-loss", .argument = "X",
                     .otherwise = "the final one of the median variant",
                     .help = "loss of the averaged model whose rounds and megabytes are told",
                     .take = take_target},
    option_link = {"link",
                   .argument = "MBIT:MS",
                   .repeats = true,
                   .otherwise = "10000:0.1 and 5:20",
                   .help = "predicts the time on links of MBIT Mbit/s and MS ms",
                   .take = add_link},
    option_runs = {"out",
                   .argument = "DIR",
                   .otherwise = "runs/NAME-YYYYmmdd-HHMMSS-compare",
                   .help = "where the runs go",
                   .take = options_take_out,
                   .offer = OFFER_FOLDER};

static const command_option *const option_rows[] = {
    &option_seeds, &option_set,  &option_agents, &option_target,
    &option_link,  &option_wide, &option_runs,   NULL,
};

const command compare_command = {
    .name = "compare",
    .summary = "run several algorithms on the same data and print one table",
    .operands = "EXPERIMENT",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .offer = OFFER_FILE,
    .text =
        "Runs several experiments one after the other, prints one table and writes "
        "DIR/compare.csv. They must agree in data, model and rounds, and may differ in the rest. "
        "Each run has its folder DIR/NAME, with --seeds DIR/NAME/seed-SEED. A run that diverges "
        "does not stop the others.\n\n"
        "One file may hold several: with \"variants\": "
        "[{\"name\": \"choco\", \"set\": {\"algorithm\": \"choco-sgd\"}}]. Accuracies that "
        "others published may stand beside them, and are shown.",
    .options = option_rows,
    REQUEST_OPTIONS,
    .run = run,
};

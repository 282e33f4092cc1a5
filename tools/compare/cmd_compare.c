/* cmd_compare.c - `starling compare`: several algorithms on the same data, topology and seed, side
 * by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/names.h"
#include "compare/comparison.h"
#include "run/agents.h"
#include "run/fleet.h"
#include "run/simulation.h"

static const char help[] =
    "usage: starling compare EXPERIMENT... [--set KEY=VALUE ...] [--agents] [--target-loss X]\n"
    "                        [--link MBIT:MS ...] [--out DIR]\n"
    "\n"
    "Runs several experiments that differ in algorithm and optimizer only, one after the other,\n"
    "prints one table and writes DIR/compare.csv; each run has its folder DIR/NAME. A file may\n"
    "hold several: with \"variants\": [{\"name\": \"choco\", \"set\": {\"algorithm\": "
    "\"choco-sgd\"}}].\n"
    "One that diverges is shown as such and does not stop the others.\n"
    "\n"
    "  --set KEY=VALUE  overrides a key of all experiments\n"
    "  --agents         trains with real agents, as `starling run`, not in the simulator\n"
    "  --target-loss X  loss of the averaged model whose rounds and megabytes are told\n"
    "                   (default: the worst final one, which all reach)\n"
    "  --link MBIT:MS   predicts the time on links of MBIT Mbit/s and MS ms; may be repeated\n"
    "                   (default 10000:0.1 and 5:20)\n"
    "  --out DIR        where the runs go (default runs/NAME-YYYYmmdd-HHMMSS-compare)\n"
    "  --help           this text\n";

/* Rounds that are simulated beside a run with agents, to know its messages. */
enum { ROUNDS_SIMULATED = 50 };

static const link_profile default_links[] = {{10000, 0.1}, {5, 20}};

typedef struct bench {
    const options *o;
    variants variants;
    sl_learner *learner; /* of all of them: they share model, data, nodes and seed */
    sl_task task;
    comparison comparison;
    char folder[SL_PATH_MAX];
} bench;

/* ---- one variant ---- */

/* Errors of a node name the round. */
static uint64_t round_in(const char *text) {
    const char *at = strstr(text, "round ");
    return at != NULL ? strtoull(at + strlen("round "), NULL, 10) : 0;
}

static void note_failure(contender *r, collector *here, const sl_error *error) {
    uint64_t kept;
    if (here->folder != NULL)
        sl_folder_rescue(here->folder, -1, &kept, &(sl_error){0});
    r->outcome = error->code == SL_EDIVERGED  ? OUTCOME_DIVERGED
                 : error->code == SL_ESTOPPED ? OUTCOME_STOPPED
                                              : OUTCOME_FAILED;
    r->diverged_in = round_in(error->text);
    if (r->outcome == OUTCOME_DIVERGED)
        printf("  %s\n", error->text);
    else if (r->outcome == OUTCOME_FAILED)
        complain("%s: %s", r->variant->name, error->text);
}

static void take_results(contender *r, collector *here) {
    uint32_t nodes = here->trial->nodes;
    r->outcome = OUTCOME_DONE;
    r->milestones = here->milestones;
    r->milestone_count = here->milestone_count;
    here->milestones = NULL;
    r->timeline = here->timeline;
    here->timeline = NULL;
    r->cost = forecast_measured(here->records, nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        const sl_times *t = &here->records[i].times;
        r->times.gradient += t->gradient / nodes;
        r->times.encode += t->encode / nodes;
        r->times.wait += t->wait / nodes;
        r->times.combine += t->combine / nodes;
    }
}

/* Agents say how long they took, but not to whom they sent how much: their first rounds do,
 * simulated. */
static int simulate_some(const trial *t, sl_timeline **timeline, sl_error *error) {
    sl_task task = t->task;
    if (task.rounds > ROUNDS_SIMULATED)
        task.rounds = ROUNDS_SIMULATED;
    return sl_sim_run(t->experiment, &task, &(sl_observer){0}, timeline, &stop_requested, error);
}

static int run_on(const bench *b, const trial *t, const char *path, collector *here,
                  sl_error *error) {
    sl_summary summary;
    if (!b->o->agents)
        return simulation_run(here, true, &summary, error);
    int code = agents_run(here, path, true, &summary, error);
    return code != 0 ? code : simulate_some(t, &here->timeline, error);
}

static void run_variant(const bench *b, contender *r) {
    char path[SL_PATH_MAX + SL_NAME_MAX];
    collector here = {0};
    live_view view;
    sl_error error = {0};
    trial t = {.experiment = r->variant->experiment,
               .learner = b->learner,
               .task = b->task,
               .plan = r->plan};
    t.nodes = sl_topology_nodes(t.experiment->topology);
    snprintf(path, sizeof path, "%s/%s", b->folder, r->variant->name);
    live_view_open(&view, t.task.rounds);
    view.quiet = true;
    int code = collector_open(&here, &t, b->o->agents ? "run" : "sim", path, &view, &error);
    if (code == 0)
        code = run_on(b, &t, path, &here, &error);
    live_view_clear(&view);
    if (code == 0)
        take_results(r, &here);
    else
        note_failure(r, &here, &error);
    collector_close(&here);
}

/* ---- all of them ---- */

static int check_folders(const bench *b, sl_error *error) {
    char path[2 * SL_PATH_MAX];
    snprintf(path, sizeof path, "%s/compare.csv", b->folder);
    if (access(path, F_OK) == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: this folder already holds a comparison; choose another with --out",
                       b->folder);
    for (size_t i = 0; i < b->variants.count; i++) {
        int length =
            snprintf(path, sizeof path, "%s/%s/config.json", b->folder, b->variants.items[i].name);
        if (length >= SL_PATH_MAX)
            return sl_fail(error, SL_EINVAL,
                           "--out: the path is too long for the run folders in it");
        if (access(path, F_OK) == 0)
            return sl_fail(error, SL_EFILE,
                           "%s/%s: this folder already holds a run; choose another with --out",
                           b->folder, b->variants.items[i].name);
    }
    return 0;
}

/* How algorithm, compressor and topology suit each other, now that the dimension is known. */
static int fit_all(bench *b, sl_error *error) {
    comparison *c = &b->comparison;
    c->items = calloc(b->variants.count, sizeof *c->items);
    if (c->items == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", b->variants.count);
    c->count = b->variants.count;
    int result = 0;
    for (size_t i = 0; i < c->count && result == 0; i++) {
        const sl_experiment *e = b->variants.items[i].experiment;
        c->items[i].variant = &b->variants.items[i];
        result = sl_algorithm_plan(&c->items[i].plan, &e->algorithm, e->topology,
                                  e->optimizer.momentum > 0, b->task.dimension, error);
        if (result != 0)
            sl_fail_prefix(error, result, "%s", b->variants.items[i].where);
    }
    return result;
}

static int check_agents(const bench *b, sl_error *error) {
    uint32_t nodes = sl_topology_nodes(b->variants.items[0].experiment->topology);
    if (!b->o->agents || nodes <= FLEET_MAX)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s: the topology has %u nodes; --agents starts at most %u processes (without "
                   "it the simulator takes more)",
                   b->o->file, nodes, FLEET_MAX);
}

/* Everything that can be refused before anything is started. */
static int prepare(bench *b, sl_error *error) {
    int result = variants_load(&b->variants, b->o, error);
    if (result == 0)
        result = check_agents(b, error);
    if (result == 0)
        result = sl_learner_open(&b->learner, b->variants.items[0].experiment, error);
    if (result != 0)
        return result;
    comparison *c = &b->comparison;
    b->task = sl_learner_task(b->learner);
    c->agents = b->o->agents;
    c->rounds = b->task.rounds;
    c->links = b->o->link_count > 0 ? b->o->links : default_links;
    c->link_count =
        b->o->link_count > 0 ? b->o->link_count : sizeof default_links / sizeof *default_links;
    choose_folder(b->o, b->variants.items[0].experiment, "-compare", b->folder);
    result = check_folders(b, error);
    if (result == 0)
        result = fit_all(b, error);
    return result != 0 ? result : sl_folder_make(b->folder, error);
}

static void run_all(bench *b) {
    comparison *c = &b->comparison;
    const sl_experiment *first = b->variants.items[0].experiment;
    printf("%zu variants on %u %s, %s\n%llu rounds each; folder %s\n", c->count,
           sl_topology_nodes(first->topology), c->agents ? "agents" : "simulated nodes",
           sl_learner_describe(b->learner), (unsigned long long)c->rounds, b->folder);
    for (size_t i = 0; i < c->count && !stop_requested; i++) {
        char compressor[64];
        contender *r = &c->items[i];
        name_compressor(&r->plan.config.compressor, compressor, sizeof compressor);
        printf("%zu/%zu %s: %s, %s\n", i + 1, c->count, r->variant->name, r->plan.config.name,
               compressor);
        fflush(stdout);
        run_variant(b, r);
    }
}

static size_t count_done(const comparison *c) {
    size_t done = 0;
    for (size_t i = 0; i < c->count; i++)
        done += c->items[i].outcome == OUTCOME_DONE;
    return done;
}

static int tell(bench *b) {
    comparison *c = &b->comparison;
    char path[SL_PATH_MAX + 16];
    sl_error error = {0};
    snprintf(path, sizeof path, "%s/compare.csv", b->folder);
    int result = comparison_finish(c, b->o, &error);
    if (result == 0) {
        comparison_print(c);
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

int cmd_compare(int argc, char **argv) {
    options o;
    int code = options_parse(&o, argc, argv, OPTION_SET | OPTION_OUT | OPTION_COMPARE);
    if (code == TOOL_OK && o.help) {
        fputs(help, stdout);
    } else if (code == TOOL_OK) {
        bench b = {.o = &o};
        catch_signals(NULL);
        code = compare(&b);
        comparison_close(&b.comparison);
        sl_learner_close(&b.learner);
        variants_close(&b.variants);
    }
    options_close(&o);
    return code;
}

/* cmd_compare.c - `starling compare`: several experiments side by side, each with one seed or
 * several. */
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare/comparison_table.h"
#include "compare/export.h"
#include "compare/progress.h"
#include "compare/runs.h"

static const link_profile default_links[] = {{10000, 0.1}, {5, 20}};

typedef struct bench {
    const options *o;
    study study;
    comparison comparison;
    runs runs;
    view view;
} bench;

/* ---- settings ---- */

static void take_links(study *s, const link_profile *links, size_t count) {
    memcpy(s->links, links, count * sizeof *links);
    s->link_count = count;
}

/* Nodes that go at their own times have done so on one link: where all say the same one, that. */
static bool take_own_link(study *s) {
    const sl_network_config *first = &s->variants.items[0].experiment->network;
    const link_profile own = {first->bandwidth_mbit, first->latency_ms};
    bool any = false, same = own.bandwidth_mbit > 0;
    for (size_t i = 0; i < s->variants.count; i++) {
        const sl_experiment *e = s->variants.items[i].experiment;
        any = any || sl_experiment_is_asynchronous(e);
        same = same && e->network.bandwidth_mbit == own.bandwidth_mbit &&
               e->network.latency_ms == own.latency_ms;
    }
    if (any && same)
        take_links(s, &own, 1);
    return any && same;
}

static int choose_view(bench *b, sl_error *error) {
    const options *o = b->o;
    const char *first = b->study.variants.items[0].method;
    b->view = (view){.wide = o->wide,
                     .over = o->over_median ? STATISTIC_MEDIAN : STATISTIC_MEAN,
                     .by = metric_find(o->best_by != NULL ? o->best_by : "loss"),
                     .against = o->against != NULL ? o->against : first};
    if (b->view.by == NULL)
        return sl_fail(error, SL_EINVAL,
                       "--best-by %s: is no column; there are accuracy, loss, rounds_to_target, "
                       "mb_to_target and the others of compare.csv",
                       o->best_by);
    if (!best_knows(&b->study, b->view.against))
        return sl_fail(error, SL_EINVAL,
                       "--against %s: there is no variant of this name; the first "
                       "one is \"%s\"",
                       b->view.against, first);
    return 0;
}

/* What was said now; else what the study has said, or the usual. */
static int take_settings(bench *b, sl_error *error) {
    const options *o = b->o;
    study *s = &b->study;
    if (o->link_count > 0)
        take_links(s, o->links, o->link_count);
    else if (s->link_count == 0 && !take_own_link(s))
        take_links(s, default_links, sizeof default_links / sizeof *default_links);
    if (o->has_target_loss) {
        s->has_target = true;
        s->target_loss = o->target_loss;
    }
    return choose_view(b, error);
}

/* ---- the folder ---- */

/* Is it this study, with runs to do? */
static bool goes_on_in(bench *b, const char *folder) {
    study there;
    sl_error error;
    bool same =
        study_read(&there, folder, &error) == 0 && there.variants.count == b->study.variants.count;
    for (size_t i = 0; i < there.variants.count && same; i++) {
        char *x = sl_experiment_json(there.variants.items[i].experiment),
             *y = sl_experiment_json(b->study.variants.items[i].experiment);
        same = x != NULL && y != NULL && strcmp(x, y) == 0;
        free(x);
        free(y);
    }
    same = same && there.agents == b->study.agents && there.seeds.count == b->study.seeds.count &&
           memcmp(there.seeds.items, b->study.seeds.items,
                  there.seeds.count * sizeof *there.seeds.items) == 0;
    const bool goes_on = same && progress_left(&there) > 0;
    study_close(&there);
    return goes_on;
}

/* --out; else that of the same command before, if it did not come to its end; else a new one. */
static void find_folder(bench *b) {
    const sl_experiment *e = b->study.variants.items[0].experiment;
    char pattern[SL_PATH_MAX], fresh[SL_PATH_MAX];
    glob_t found = {0};
    choose_folder(b->o, e, "-compare", fresh);
    snprintf(b->study.folder, sizeof b->study.folder, "%s", fresh);
    if (b->o->out != NULL)
        return;
    choose_pattern(e, "-compare", pattern);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = found.gl_pathc; i-- > 0;)
            if (study_is_there(found.gl_pathv[i]) && goes_on_in(b, found.gl_pathv[i])) {
                snprintf(b->study.folder, sizeof b->study.folder, "%s", found.gl_pathv[i]);
                break;
            }
    globfree(&found);
}

/* ---- running ---- */

/* "8", or "8 to 16". */
static const char *name_range(char out[48], uint64_t low, uint64_t high) {
    snprintf(out, 48, low == high ? "%llu" : "%llu to %llu", (unsigned long long)low,
             (unsigned long long)high);
    return out;
}

static void print_begin(const bench *b, size_t missing) {
    const study *s = &b->study;
    char nodes[48], rounds[48], seed_text[48] = "", text[384];
    uint64_t least_nodes = UINT64_MAX, most_nodes = 0, least = UINT64_MAX, most = 0;
    size_t runs_of_all = 0;
    for (size_t i = 0; i < s->variants.count; i++) {
        const variant *v = &s->variants.items[i];
        const uint64_t n = sl_topology_nodes(v->experiment->topology), r = s->facts[i].task.rounds;
        if (!variant_runs(v))
            continue;
        runs_of_all += study_seeds(s);
        least_nodes = n < least_nodes ? n : least_nodes;
        most_nodes = n > most_nodes ? n : most_nodes;
        least = r < least ? r : least;
        most = r > most ? r : most;
    }
    if (study_seeds(s) > 1)
        snprintf(seed_text, sizeof seed_text, " and %zu seeds", study_seeds(s));
    if (runs_of_all > 0) {
        snprintf(text, sizeof text, "%zu variant%s%s on %s %s, %s%s", s->variants.count,
                 s->variants.count == 1 ? "" : "s", seed_text,
                 name_range(nodes, least_nodes, most_nodes),
                 s->agents ? "agents" : "simulated nodes", sl_learner_describe(b->runs.learner),
                 b->comparison.learners > 1 ? "; others differ in data, model or nodes" : "");
        print_wrapped("", text, output_width(b->o->wide));
        tell_line("%s rounds each; folder %s", name_range(rounds, least, most), s->folder);
    }
    if (missing < runs_of_all)
        tell_line("%zu of %zu runs are there already", runs_of_all - missing, runs_of_all);
}

/* Everything that can be refused before anything is started. */
static int prepare(bench *b, sl_error *error) {
    study *s = &b->study;
    int result = variants_load(&s->variants, b->o, error);
    if (result != 0)
        return result;
    s->agents = b->o->agents;
    if (s->seeds.count == 0)
        s->seeds = s->variants.seeds;
    s->facts = calloc(s->variants.count, sizeof *s->facts);
    if (s->facts == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", s->variants.count);
    b->runs = (runs){.options = b->o,
                     .study = s,
                     .comparison = &b->comparison,
                     .jobs = b->o->jobs > 0 ? b->o->jobs : 1,
                     .lock = -1};
    result = take_settings(b, error);
    if (result == 0)
        result = comparison_open(&b->comparison, s, error);
    if (result == 0)
        result = runs_prepare(&b->runs, error);
    if (result == 0)
        find_folder(b);
    return result;
}

static size_t count_done(const comparison *c) {
    size_t done = 0;
    for (size_t i = 0; i < c->count; i++)
        done += contender_done(c, &c->items[i]) > 0;
    return done;
}

/* ---- telling ---- */

static int tell(bench *b) {
    comparison *c = &b->comparison;
    sl_error error = {0};
    int result = comparison_load(c, &error);
    if (result == 0)
        comparison_print(c, &b->view);
    if (result == 0)
        result = export_all(c, &error);
    if (result == 0)
        result = comparison_write(c, &b->view, &error);
    if (result == 0)
        return count_done(c) > 0 ? TOOL_OK : TOOL_FAILED;
    complain("%s", error.text);
    return TOOL_FAILED;
}

/* What runs have left, whatever they were. */
static int tell_folder(bench *b) {
    sl_error error = {0};
    const options *o = b->o;
    int result =
        o->seeds != NULL || o->override_count > 0 || o->agents || o->out != NULL || o->jobs > 0
            ? sl_fail(&error, SL_EINVAL,
                      "%s: a folder is only looked at; --seeds, --set, --agents, --jobs and "
                      "--out go with the experiment",
                      o->file)
            : study_read(&b->study, o->file, &error);
    if (result == 0)
        result = take_settings(b, &error);
    if (result == 0)
        result = comparison_open(&b->comparison, &b->study, &error);
    if (result != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    if (o->watch)
        progress_watch(&b->study);
    else if (progress_left(&b->study) > 0)
        progress_tell(&b->study);
    const int code = tell(b);
    return code == TOOL_FAILED && count_done(&b->comparison) == 0 ? TOOL_FAILED : code;
}

static int compare(bench *b) {
    sl_error error = {0};
    size_t missing;
    int result = prepare(b, &error);
    if (result == 0)
        result = runs_take_folder(&b->runs, &missing, &error);
    if (result == 0)
        result = study_write(&b->study, &error);
    if (result != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    print_begin(b, missing);
    result = runs_do(&b->runs, missing, &error);
    if (result != 0)
        complain("%s", error.text);
    const int code = tell(b);
    if (stop_requested) {
        complain("stopped on request; what was recorded is in %s, and the same command%s%s goes on",
                 b->study.folder, b->o->out != NULL ? "" : " with --out ",
                 b->o->out != NULL ? "" : b->study.folder);
        return TOOL_INTERRUPTED;
    }
    if (result == 0 && progress_left(&b->study) > 0 && count_done(&b->comparison) > 0)
        complain("%zu runs failed; the same command tries them again", progress_left(&b->study));
    if (count_done(&b->comparison) == 0)
        complain("none of the %zu variants came to its end", b->comparison.count);
    return result != 0 ? TOOL_FAILED : code;
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

static int take_jobs(void *request, const command_option *row, const char *text) {
    options *o = request;
    char *end;
    const long wanted = strtol(text, &end, 10);
    if (end == text || *end != '\0' || wanted < 1 || wanted > JOBS_MAX) {
        complain("--%s %s: expected a number of runs at once, 1 to %d", row->name, text, JOBS_MAX);
        return TOOL_USAGE;
    }
    o->jobs = (size_t)wanted;
    return TOOL_OK;
}

static int take_over(void *request, const command_option *row, const char *text) {
    options *o = request;
    o->over_median = strcmp(text, "median") == 0;
    if (o->over_median || strcmp(text, "mean") == 0)
        return TOOL_OK;
    complain("--%s %s: expected mean or median", row->name, text);
    return TOOL_USAGE;
}

static int run(void *request, char *const *operands, size_t count) {
    options *o = request;
    bench b = {.o = o, .runs = {.lock = -1}};
    int code = TOOL_OK;
    options_take_files(o, operands, count);
    catch_signals(NULL);
    if (o->seeds != NULL)
        code = seeds_parse(&b.study.seeds, o->seeds);
    if (code == TOOL_OK && o->watch && !study_is_there(o->file)) {
        complain("--watch: %s: is no folder of `compare`", o->file);
        code = TOOL_USAGE;
    }
    if (code == TOOL_OK)
        code = count == 1 && study_is_there(o->file) ? tell_folder(&b) : compare(&b);
    runs_close(&b.runs);
    comparison_close(&b.comparison);
    study_close(&b.study);
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
    option_jobs = {"jobs", .argument = "N", .otherwise = "1", .help = "so many runs at once",
                   .take = take_jobs},
    option_over = {"over", .argument = "mean|median", .otherwise = "mean",
                   .help = "tells mean ± sample standard deviation, or median and quartiles",
                   .take = take_over},
    option_best = {"best-by",
                   .argument = "COLUMN",
                   .otherwise = "loss",
                   .help = "of a sweep: chooses the best variant of each method",
                   .take = take_text,
                   .offset = offsetof(options, best_by)},
    option_against = {"against",
                      .argument = "NAME",
                      .otherwise = "the first",
                      .help = "with seeds: tells the differences from this method or variant",
                      .take = take_text,
                      .offset = offsetof(options, against)},
    option_watch = {"watch", .help = "of a folder: tells how far its runs are, until all are over",
                    .take = take_switch, .offset = offsetof(options, watch)},
    option_runs = {"out",
                   .argument = "DIR",
                   .otherwise = "runs/NAME-YYYYmmdd-HHMMSS-compare",
                   .help = "where the runs go; those that are there already are not run again",
                   .take = options_take_out,
                   .offer = OFFER_FOLDER};

static const command_option *const option_rows[] = {
    &option_seeds, &option_set,  &option_agents, &option_jobs,    &option_target,
    &option_link,  &option_over, &option_best,   &option_against, &option_watch,
    &option_wide,  &option_runs, NULL,
};

const command compare_command = {
    .name = "compare",
    .summary = "run several experiments and print one table",
    .operands = "EXPERIMENT",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .offer = OFFER_FILE,
    .text =
        "Runs several experiments, prints one table and writes it into DIR, for people and for "
        "other programs. Each run has its folder DIR/NAME, with seeds DIR/NAME/seed-SEED. A run "
        "that diverges does not stop the others. The same command goes on where it was stopped or "
        "killed. `starling compare DIR` tells what is there at any time.\n\n"
        "One file may hold several: with \"variants\": "
        "[{\"name\": \"choco\", \"set\": {\"algorithm\": \"choco-sgd\"}}], and with \"sweep\": "
        "{\"optimizer.learning_rate\": [0.1, 0.3], \"seed\": [1, 2, 3]}, all choices of these "
        "values. A run folder stands for the run in it.",
    .options = option_rows,
    REQUEST_OPTIONS,
    .run = run,
};

/* cmd_check.c - `starling check`: validates an experiment or a topology and says what it means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/experiment_page.h"
#include "check/variants_page.h"
#include "cli/file_kind.h"
#include "cli/patience.h"
#include "topology/topology_report.h"

/* ---- of a topology ---- */

static int report_topology(const sl_topology *topology, double hopeless, sl_topology_report *report,
                           sl_error *error) {
    int result = sl_topology_analyse(topology, report, patience_watch(), error);
    if (result != 0)
        return result;
    patience_hide();
    topology_report_print(report);
    if (report->gap <= hopeless)
        puts("  warning             nodes never agree by averaging with this W; starling topology "
             "analyse\n                      says why");
    return 0;
}

static int check_topology(const char *path, sl_error *error) {
    sl_topology *topology = NULL;
    sl_topology_report report;
    const sl_topology_opening how = {.watch = patience_watch()};
    int result = sl_topology_load_as(&topology, path, &how, error);
    if (result == 0)
        result = report_topology(topology, 0, &report, error);
    sl_topology_close(&topology);
    return result;
}

/* ---- of an experiment ---- */

static int say_single(page *p, const sl_experiment *e, sl_error *error) {
    trial t = {.experiment = (sl_experiment *)e};
    int result = trial_prepare(&t, false, error);
    if (result == 0)
        result = trial_check_key(e, error);
    if (result == 0) {
        warn_of_keys(e);
        page_begin(p, "%s: %u nodes, %llu rounds; nothing is in the way of it", e->name, t.nodes,
                   (unsigned long long)t.task.rounds);
        result = page_say_experiment(p, &t, error);
    }
    page_end(p, "starling check --resolved prints every key that this experiment reads.");
    sl_sending_close(&t.sending);
    sl_learner_close(&t.learner);
    return result;
}

static int say_experiment(const variants *v, const options *o, sl_error *error) {
    page *p = page_open();
    int result = p != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory");
    if (result == 0 && !v->from_list)
        result = say_single(p, v->items[0].experiment, error);
    else if (result == 0) {
        page_begin(p, "%s: %zu variants; nothing is in the way of them", o->file, v->count);
        result = page_say_variants(p, v, error);
        page_end(p, "starling check --resolved prints every key that they read.");
    }
    patience_hide();
    if (result == 0)
        page_print(p, o->wide);
    page_close(&p);
    return result;
}

/* The keys that have an effect; of several experiments as a list. */
static int print_resolved(const variants *v, sl_error *error) {
    for (size_t i = 0; i < v->count; i++) {
        char *json = sl_experiment_resolved(v->items[i].experiment);
        if (json == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory");
        warn_of_keys(v->items[i].experiment);
        printf("%s%s%s",
               !v->from_list ? ""
               : i == 0      ? "["
                             : ",\n",
               json, v->from_list && i + 1 == v->count ? "]" : "");
        free(json);
    }
    putchar('\n');
    return 0;
}

static int check_experiment(const options *o, sl_error *error) {
    variants v;
    int result = variants_load(&v, o, error);
    if (result == 0)
        result = o->resolved ? print_resolved(&v, error) : say_experiment(&v, o, error);
    variants_close(&v);
    return result;
}

/* ---- of a session ---- */

enum { SESSION_DIMENSION = 1000000 };

/* What its user should know of an algorithm. */
static void print_notes(const sl_algorithm_config *c, bool overlap) {
    static const struct {
        const char *name, *note;
    } notes[] = {
        {"gradient-tracking", "exact only with optimizers that are linear in the gradient"},
        {"exact-diffusion", "exact only with optimizers that are linear in the gradient"},
        {"beer", "exact only with optimizers that are linear in the gradient"},
        {"lead", "exact only with optimizers that are linear in the gradient"},
        {"qgm", "its momentum is of displacements; take an optimizer without momentum"},
        {"decentlam", "its momentum is of displacements; take an optimizer without momentum"},
        {"d-adam", "its steps are Adam's at rate 1; take d-psgd, and AdamW in the loop"},
        {"d-amsgrad", "its steps are Adam's at rate 1; take d-psgd, and AdamW in the loop"},
        {"one-bit-adam", "its steps are Adam's at rate 1; no session has a use for them"},
        {"dgc", "without momentum here: error feedback of displacements"},
        {"gmc", "without momentum here: error feedback of displacements"},
        {"sign-vote", "it steps by 1 in each coordinate, at rate 1; no session has a use for it"},
        {"sgp", "x is the de-biased model; its displacement acts on the numerator"},
    };
    printf("session\n  algorithm           %s\n", c->name);
    printf("  gradient            x before - x after the step, at rate 1\n");
    if (overlap)
        printf("  overlap             x is sent between begin and end, which leaves W x in it\n");
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (strcmp(notes[i].name, c->name) == 0)
            printf("  note                %s\n", notes[i].note);
}

static void print_weights(const sl_experiment *e) {
    char text[SL_PLAN_TEXT_MAX];
    sl_experiment_say_weights(e, text, sizeof text);
    if (text[0] != '\0')
        printf("  topology            %s\n", text);
}

/* As join() warns, which knows how long the vector is: here it is as long as many are. */
static void print_warnings(const sl_experiment *e) {
    const sl_task task = {.dimension = SESSION_DIMENSION, .rounds = UINT64_MAX};
    sl_plan plan;
    sl_warnings w = {.count = 0};
    if (sl_experiment_plan(&plan, e, &task, NULL) == 0)
        sl_experiment_warnings(&w, e, &plan, &task);
    for (size_t i = 0; i < w.count; i++)
        tell_line("  warning             with %d parameters: %s", SESSION_DIMENSION, w.texts[i]);
}

static int check_session(const options *o, sl_error *error) {
    const bool overlap = strcmp(o->session, "overlap") == 0;
    if (!overlap && strcmp(o->session, "mix") != 0)
        return sl_fail(error, SL_EINVAL,
                       "--session %s: is not allowed; it must be \"mix\" or \"overlap\"",
                       o->session);
    const sl_session_reading how = {.overrides = (const char *const *)o->overrides,
                                    .override_count = o->override_count,
                                    .overlap = overlap};
    sl_experiment *e = NULL;
    sl_topology_report report;
    char bound[MEANING_BYTES] = "";
    int result = sl_experiment_load_session(&e, o->file, &how, error);
    if (result == 0 && overlap && strcmp(e->algorithm.name, "d-psgd") != 0)
        result = sl_fail(error, SL_EINVAL, "--session overlap: is for d-psgd only, not for '%s'",
                         e->algorithm.name);
    patience_hide();
    if (result == 0) {
        warn_of_keys(e);
        print_notes(&e->algorithm, overlap);
        print_weights(e);
        print_warnings(e);
        result = report_topology(e->topology, -GAP_ROUNDING, &report, error);
    }
    if (result == 0)
        name_bound(e, overlap, &report, bound, sizeof bound);
    if (bound[0] != '\0')
        printf("  stable for          %s\n", bound);
    sl_experiment_close(&e);
    return result;
}

static int check(const options *o, sl_error *error) {
    if (o->resolved && (o->session != NULL || is_topology_file(o->file)))
        return sl_fail(error, SL_EINVAL,
                       "--resolved: prints the keys of an experiment with a model and data, which "
                       "%s has not; leave it out",
                       o->session != NULL ? "a session's" : o->file);
    if (o->session != NULL)
        return check_session(o, error);
    if (!is_topology_file(o->file))
        return check_experiment(o, error);
    if (o->override_count > 0)
        return sl_fail(error, SL_EINVAL, "--set %s: %s is a topology, which has no keys to set",
                       o->overrides[0], o->file);
    return check_topology(o->file, error);
}

static int run(void *request, char *const *operands, size_t count) {
    options *o = request;
    sl_error error = {0};
    options_take_files(o, operands, count);
    patience *p = patience_begin("checking %s", o->file);
    int result = check(o, &error);
    patience_end(p);
    if (result == 0)
        return TOOL_OK;
    complain("%s", error.text);
    return TOOL_USAGE;
}

static const char *session_forms(size_t index) {
    static const char *const forms[] = {"mix", "overlap", NULL};
    return forms[index];
}

static const command_option option_session = {
    "session",
    .argument = "FORM",
    .help = "the experiment is a session's, of a training loop of your own: mix or overlap",
    .take = take_text,
    .offset = offsetof(options, session),
    .offer = OFFER_WORDS,
    .words = session_forms,
};
static const command_option option_resolved = {
    "resolved",
    .help = "the experiment as JSON, with all defaults, without the keys that it does not read",
    .take = take_switch,
    .offset = offsetof(options, resolved),
};
static const command_option option_all = {
    "all",
    .help = "all there is to say, where it is more than 40 lines",
    .take = take_switch,
    .offset = offsetof(options, wide),
};
static const command_option *const option_rows[] = {&option_resolved, &option_all, &option_set,
                                                    &option_session, NULL};

const command check_command = {
    .name = "check",
    .summary = "validate an experiment or a topology and print what it means",
    OPERAND_FILE("FILE"),
    .text =
        "Validates an experiment or a topology.\n\n"
        "Of an experiment it says what will run, what that means (bytes of a message, step sizes, "
        "how fast the topology mixes), what it needs, and what to watch: warnings, what happens "
        "when a peer is lost, and who can take part. Of a file with variants there is a line for "
        "each.\n\n"
        "Of a topology it prints nodes, edges, degrees, whether it is connected and stochastic "
        "(with the largest |sum - 1|), and how fast it mixes: the eigenvalues lambda_2 and "
        "lambda_n, rho = max(|lambda_2|, |lambda_n|) and the spectral gap 1 - rho.",
    .options = option_rows,
    .sections = {{"keys of an experiment", sl_experiment_keys_help}},
    REQUEST_OPTIONS,
    .run = run,
};

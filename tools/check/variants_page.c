/* variants_page.c - see variants_page.h. */
#include "check/variants_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/budget_page.h"
#include "check/experiment_page.h"
#include "check/scenario.h"
#include "check/times_page.h"
#include "cli/names.h"
#include "cli/patience.h"
#include "compare/comparison.h"

/* Lines that stay, whatever else there is to say; widths of columns. */
enum { STAYING = 12, NAME_MAX_WIDTH = 18, NAMED_MAX = 6, ALGORITHM = 17, COMPRESSOR = 19 };

/* What the heads of the columns are, and what stands below them. */
typedef struct cells {
    const char *name, *algorithm, *compressor, *message, *round, *agent, *loss;
} cells;

typedef struct checked {
    trial trial;
    sl_topology_report report;
} checked;

/* learner: an open one that serves this variant too; NULL: there is none. */
static int open_one(checked *c, const variant *v, sl_learner *learner, sl_error *error) {
    c->trial = (trial){.experiment = v->experiment, .learner = learner};
    int result = trial_prepare(&c->trial, true, error);
    if (result == 0)
        result = sl_topology_analyse(v->experiment->topology, &c->report, patience_watch(), error);
    return result == 0 ? 0 : sl_fail_prefix(error, result, "%s", v->where);
}

static int name_width(const variants *v) {
    size_t width = strlen("variant");
    for (size_t i = 0; i < v->count; i++)
        width = strlen(v->items[i].method) > width ? strlen(v->items[i].method) : width;
    return width < NAME_MAX_WIDTH ? (int)width : NAME_MAX_WIDTH;
}

/* `timed`: there are links, on which a round takes its time. */
static void say_cells(page *p, const cells *c, int width, bool timed, bool is_detail) {
    char round[16] = "";
    if (timed)
        snprintf(round, sizeof round, " %9s", c->round);
    page_line(p, is_detail, "%-*.*s  %-*.*s %-*.*s %10s%s %9s  %s", width, width, c->name,
              ALGORITHM, ALGORITHM, c->algorithm, COMPRESSOR, COMPRESSOR, c->compressor, c->message,
              round, c->agent, c->loss);
}

static void say_line(page *p, const variant *v, const checked *c, int width, bool timed,
                     bool is_detail) {
    const double seconds = round_seconds(&c->trial);
    const bool goes_on = v->experiment->membership.on_loss == SL_ON_LOSS_CONTINUE;
    double share;
    char compressor[64], message[32], round[16] = "", agent[32];
    sl_run_memory m;
    trial_memory(&c->trial, &m);
    name_compressor(&c->trial.plan.config.compressor, compressor, sizeof compressor);
    snprintf(message, sizeof message, "%.0f", message_bytes(&c->trial, &share));
    snprintf(agent, sizeof agent, "%.1f", 1e-6 * (double)m.agent);
    if (!isnan(seconds))
        snprintf(round, sizeof round, "%.4g", 1e3 * seconds);
    say_cells(p,
              &(cells){v->method, c->trial.plan.config.name, compressor, message, round, agent,
                       goes_on ? "goes on" : "ends"},
              width, timed, is_detail);
}

static bool has_same_topology(const checked *a, const checked *b) {
    return sl_topology_hash(a->trial.experiment->topology) ==
           sl_topology_hash(b->trial.experiment->topology);
}

static double bytes_of(const checked *c) {
    double share;
    return message_bytes(&c->trial, &share);
}

/* Does an earlier variant of its method say the same? What is swept mostly changes nothing here. */
static bool is_told(const variants *v, const checked *all, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (strcmp(v->items[i].method, v->items[index].method) == 0 &&
            has_same_topology(&all[i], &all[index]) && bytes_of(&all[i]) == bytes_of(&all[index]))
            return true;
    return false;
}

static void say_lines(page *p, const variants *v, const checked *all) {
    const int width = name_width(v);
    bool timed = false;
    for (size_t i = 0; i < v->count; i++)
        timed = timed || !isnan(round_seconds(&all[i].trial));
    page_heading(p, "what each means");
    say_cells(p, &(cells){"", "", "", "message,", "a round,", "an agent,", "after"}, width, timed,
              false);
    say_cells(p, &(cells){"variant", "algorithm", "compressor", "bytes", "ms", "MB", "a loss"},
              width, timed, false);
    for (size_t i = 0, told = 0; i < v->count; i++)
        if (!is_told(v, all, i))
            say_line(p, &v->items[i], &all[i], width, timed, told++ >= STAYING);
}

/* The first variant with this one's topology. */
static size_t first_with(const checked *all, size_t i) {
    size_t first = 0;
    while (!has_same_topology(&all[first], &all[i]))
        first++;
    return first;
}

/* " (a, b)", or of many " (9 variants)": those with this one's topology; "" where all have it. */
static void name_those_with(const variants *v, const checked *all, size_t i, char *out,
                            size_t bytes) {
    size_t at = 0, count = 0;
    for (size_t j = 0; j < v->count; j++)
        if (first_with(all, j) == i && at < bytes)
            at += (size_t)snprintf(out + at, bytes - at, "%s%s", count++ > 0 ? ", " : " (",
                                   v->items[j].name);
    if (at < bytes)
        snprintf(out + at, bytes - at, ")");
    if (count > NAMED_MAX)
        snprintf(out, bytes, " (%zu variants)", count);
    if (count == v->count)
        out[0] = '\0';
}

/* Each topology once. */
static void say_topologies(page *p, const variants *v, const checked *all) {
    char text[MEANING_BYTES], names[MEANING_BYTES];
    for (size_t i = 0; i < v->count; i++) {
        if (first_with(all, i) < i)
            continue;
        name_topology(all[i].trial.experiment->topology, &all[i].report, text, sizeof text);
        name_those_with(v, all, i, names, sizeof names);
        (i == 0 ? page_say : page_detail)(p, i == 0 ? "topology" : "", "%s, spectral gap %.4g%s",
                                          text, all[i].report.gap, names);
    }
}

static void find_warnings(sl_warnings *w, const trial *t) {
    sl_experiment_warnings(w, t->experiment, &t->plan, &t->task);
}

/* Whom there is a warning of, and then which. */
static void say_warnings(page *p, const variants *v, const checked *all) {
    char names[MEANING_BYTES] = "";
    sl_warnings w;
    size_t at = 0, warned = 0;
    for (size_t i = 0; i < v->count && at < sizeof names; i++) {
        find_warnings(&w, &all[i].trial);
        if (w.count > 0)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", warned++ > 0 ? ", " : "",
                                   v->items[i].name);
    }
    if (warned > 0)
        page_say(p, "warnings", "of %s", names);
    for (size_t i = 0; i < v->count; i++) {
        find_warnings(&w, &all[i].trial);
        for (size_t k = 0; k < w.count; k++)
            page_detail(p, "", "%s: %s", v->items[i].name, w.texts[k]);
    }
}

static void say_losses(page *p, const variants *v) {
    size_t ending = 0;
    for (size_t i = 0; i < v->count; i++)
        ending += v->items[i].experiment->membership.on_loss != SL_ON_LOSS_CONTINUE;
    if (ending > 0)
        page_say(p, "a lost peer",
                 "ends the run of %zu of %zu; of an experiment of its own check says why", ending,
                 v->count);
    else
        page_say(p, "a lost peer", "the others go on without it");
}

static int say_faults(page *p, const variants *v, sl_error *error) {
    int result = 0;
    for (size_t i = 0; i < v->count && result == 0; i++) {
        char heading[VARIANT_NAME_MAX + 16];
        snprintf(heading, sizeof heading, "faults of %s", v->items[i].name);
        page_heading(p, heading);
        result = scenario_say(p, v->items[i].experiment, error);
    }
    page_heading(p, "");
    return result;
}

/* Of the first, and whether it is that of all. */
static void say_learner(page *p, const variants *v, const checked *all) {
    char first[MEANING_BYTES], other[MEANING_BYTES];
    bool differs = false;
    name_optimizer(&v->items[0].experiment->optimizer, first, sizeof first);
    for (size_t i = 1; i < v->count; i++) {
        name_optimizer(&v->items[i].experiment->optimizer, other, sizeof other);
        differs = differs || strcmp(first, other) != 0;
    }
    page_say_learner(p, &all[0].trial, differs ? "optimizers differ" : first);
}

static int say_all(page *p, const variants *v, const checked *all, sl_error *error) {
    page_heading(p, "what will run");
    say_learner(p, v, all);
    say_topologies(p, v, all);
    say_lines(p, v, all);
    page_heading(p, "what to watch");
    say_warnings(p, v, all);
    say_losses(p, v);
    page_say_connections(p, v->items[0].experiment);
    return say_faults(p, v, error);
}

/* Variants of the same data and model share a learner, which the first of them owns. */
static int open_all(checked *all, const comparison *c, sl_error *error) {
    int result = 0;
    for (size_t i = 0; i < c->count && result == 0; i++) {
        size_t first = 0;
        while (c->items[first].learner != c->items[i].learner)
            first++;
        result = open_one(&all[i], c->items[i].variant, all[first].trial.learner, error);
    }
    return result;
}

static void close_all(checked *all, const comparison *c) {
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = i + 1; k < c->count; k++)
            if (all[k].trial.learner == all[i].trial.learner)
                all[k].trial.learner = NULL;
    for (size_t i = 0; i < c->count; i++) {
        sl_sending_close(&all[i].trial.sending);
        sl_learner_close(&all[i].trial.learner);
    }
}

int page_say_variants(page *p, const variants *v, sl_error *error) {
    study s = {.variants = *v, .facts = calloc(v->count, sizeof *s.facts)};
    comparison c = {.count = 0};
    checked *all = calloc(v->count, sizeof *all);
    int result = all != NULL && s.facts != NULL
                     ? comparison_open(&c, &s, error)
                     : sl_fail(error, SL_ENOMEM, "out of memory for %zu variants", v->count);
    if (result == 0)
        result = open_all(all, &c, error);
    if (result == 0)
        result = say_all(p, v, all, error);
    if (all != NULL)
        close_all(all, &c);
    comparison_close(&c);
    free(s.facts);
    free(all);
    return result;
}

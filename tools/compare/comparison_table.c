/* comparison_table.c - the table of `starling compare`, and all of them together; see
 * comparison_table.h. */
#include "compare/comparison_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/names.h"
#include "compare/differing.h"

enum {
    TEXT_BYTES = 96,
    PREDICTED_RANK = 4,
    PAYS_RANK = 6,
    REACH_RANK = 5,
    BREAK_EVEN_DIGITS = 2,
    PAPER_RANK = 5,
    SEED_DIGITS = 20
};

/* Do the variants differ in topology or in seed? Else a column would say nothing. */
typedef struct differences {
    bool topology, seed;
} differences;

static differences find_differences(const comparison *c) {
    differences d = {.seed = false};
    const contender *first = &c->items[0];
    for (size_t i = 1; i < c->count; i++) {
        const contender *r = &c->items[i];
        d.topology = d.topology || sl_topology_hash(r->variant->experiment->topology) !=
                                       sl_topology_hash(first->variant->experiment->topology);
        d.seed = d.seed || r->attempts[0].seed != first->attempts[0].seed;
    }
    return d;
}

/* ---- columns ---- */

/* "10 Gbit/s," and "0.1 ms" */
static void add_link_column(text_table *t, const link_profile *l, int rank, const char *what) {
    char text[TEXT_BYTES], above[2 * TEXT_BYTES], latency[TEXT_BYTES];
    name_bandwidth(text, sizeof text, l->bandwidth_mbit, 4);
    snprintf(above, sizeof above, "%s%s,", what, text);
    snprintf(latency, sizeof latency, "%g ms", l->latency_ms);
    text_table_column(t, ALIGN_RIGHT, rank, above, latency);
}

static void add_columns(text_table *t, const comparison *c, differences d, json_t *keys) {
    const study *s = c->study;
    char latency[TEXT_BYTES];
    text_table_column(t, ALIGN_LEFT, 0, "", "name");
    add_swept_columns(t, keys);
    text_table_column(t, ALIGN_LEFT, 8, "", "algorithm");
    text_table_column(t, ALIGN_LEFT, 8, "", "compressor");
    if (d.topology)
        text_table_column(t, ALIGN_LEFT, 2, "", "topology");
    if (d.seed)
        text_table_column(t, ALIGN_RIGHT, 2, "", "seed");
    if (c->seeds > 1)
        text_table_column(t, ALIGN_RIGHT, 0, "", "n");
    if (s->variants.has_published)
        text_table_column(t, ALIGN_RIGHT, 0, "published", "%");
    for (size_t i = 0; i < metric_count; i++)
        add_metric_column(t, &metrics[i], metrics[i].rank);
    for (size_t l = 0; l < s->link_count; l++)
        add_link_column(t, &s->links[l], PREDICTED_RANK, "");
    for (size_t l = 0; l < s->link_count; l++)
        add_link_column(t, &s->links[l], REACH_RANK, "to target, ");
    for (size_t l = 0; l < s->link_count; l++) {
        snprintf(latency, sizeof latency, c->pay_columns == 1 ? "below" : "below, %g ms",
                 s->links[l].latency_ms);
        if (c->shows_pay[l])
            text_table_column(t, ALIGN_RIGHT, PAYS_RANK, "pays", latency);
    }
}

/* ---- rows ---- */

static void put_statistic(text_table *t, const statistic *s, const view *v, number_style style,
                          size_t all) {
    char text[STATISTIC_BYTES];
    statistic_text(text, s, v->over, style, all);
    text_table_put(t, "%s", text);
}

static void put_published(text_table *t, const published *p) {
    char text[STATISTIC_BYTES];
    const statistic s = {
        .count = isfinite(p->accuracy), .mean = p->accuracy, .deviation = p->deviation};
    statistic_text(text, &s, STATISTIC_MEAN, (number_style){1, 2, ""}, 0);
    text_table_put(t, "%s", text);
}

static void put_pay(text_table *t, const comparison *c, const contender *r, size_t link) {
    pay_kind kind = PAYS_NEVER;
    statistic s = pays_over(c, r, link, &kind);
    char bandwidth[TEXT_BYTES], spread[TEXT_BYTES] = "";
    static const char *const names[] = {
        [PAYS_ALWAYS] = "always", [PAYS_NEVER] = "never", [PAYS_MIXED] = "mixed"};
    if (s.count == 0) {
        text_table_put(t, "-");
    } else if (kind != PAYS_BELOW && kind != PAYS_ABOVE) {
        text_table_put(t, "%s", names[kind]);
    } else {
        name_bandwidth(bandwidth, sizeof bandwidth, s.mean, BREAK_EVEN_DIGITS);
        if (!isnan(s.deviation))
            snprintf(spread, sizeof spread, " ± %.0f %%", 100 * s.deviation / s.mean);
        text_table_put(t, "%s%s%s", kind == PAYS_ABOVE ? "above " : "", bandwidth, spread);
    }
}

static void put_numbers(text_table *t, const comparison *c, const contender *r, const view *v) {
    const number_style seconds = {1, -4, " s"};
    const size_t done = contender_done(c, r), links = c->study->link_count;
    for (size_t i = 0; i < metric_count; i++) {
        const statistic s = metric_over(c, r, &metrics[i]);
        put_statistic(t, &s, v, metrics[i].style, done);
    }
    for (size_t l = 0; l < links; l++) {
        const statistic s = links_over(c, r, predicted_s, l);
        put_statistic(t, &s, v, seconds, done);
    }
    for (size_t l = 0; l < links; l++) {
        const statistic s = links_over(c, r, target_s, l);
        put_statistic(t, &s, v, seconds, done);
    }
    for (size_t l = 0; l < links; l++)
        if (c->shows_pay[l])
            put_pay(t, c, r, l);
}

static void put_row(text_table *t, const comparison *c, const contender *r, const view *v,
                    differences d, json_t *keys) {
    char text[TEXT_BYTES];
    text_table_row(t);
    text_table_put(t, "%s", r->variant->method);
    put_swept(t, r, keys);
    text_table_put(t, "%s", contender_algorithm(r));
    contender_compressor(r, text, sizeof text);
    text_table_put(t, "%s", text);
    contender_topology(r, text, sizeof text);
    if (d.topology)
        text_table_put(t, "%s", text);
    if (d.seed)
        text_table_put(t, "%llu", (unsigned long long)r->attempts[0].seed);
    if (c->seeds > 1)
        text_table_put(t, "%zu", contender_done(c, r));
    if (c->study->variants.has_published)
        put_published(t, &r->variant->published);
    contender_outcome(c, r, text, sizeof text);
    if (contender_done(c, r) == 0)
        text_table_put_rest(t, "%s", text);
    else
        put_numbers(t, c, r, v);
}

text_table *variants_table(const comparison *c, const view *v) {
    const differences d = find_differences(c);
    json_t *keys = swept_keys(c);
    text_table *t = text_table_open();
    if (t != NULL)
        add_columns(t, c, d, keys);
    for (size_t i = 0; i < c->count; i++)
        put_row(t, c, &c->items[i], v, d, keys);
    json_decref(keys);
    return t;
}

/* ---- notes ---- */

static void print_seeds(const comparison *c, const view *v, size_t width) {
    char seeds_of_all[SEEDS_MAX * (SEED_DIGITS + 1)], text[sizeof seeds_of_all + 2 * TEXT_BYTES];
    contender_seeds(c, &c->items[0], seeds_of_all, sizeof seeds_of_all);
    snprintf(text, sizeof text,
             "%s over the seeds %s; n: how many came to their end; (2 of 3): so many of these have "
             "a number",
             v->over == STATISTIC_MEAN ? "mean ± sample standard deviation" : "median [quartiles]",
             seeds_of_all);
    print_wrapped("seeds: ", text, width);
}

/* Compressed variants on one topology have one rival. */
static void print_rival(const comparison *c, size_t width) {
    const contender *rival = NULL;
    bool several = false;
    for (size_t i = 0; i < c->count; i++) {
        const contender *r = c->items[i].rival;
        several = several || (rival != NULL && r != NULL && r != rival);
        rival = r != NULL ? r : rival;
    }
    char text[VARIANT_NAME_MAX + 160];
    snprintf(text, sizeof text,
             "the bandwidth below which a round takes less time than one of %s; from measured "
             "times, so it differs from run to run",
             several ? "the first uncompressed variant on the same topology"
                     : rival->variant->name);
    print_wrapped("pays below: ", text, width);
}

/* What a target that no run has reached is beside what they have. */
static void print_out_of_reach(const comparison *c, size_t width) {
    const metric *rounds = metric_find("rounds_to_target");
    const contender *nearest = NULL;
    double least = INFINITY;
    char text[VARIANT_NAME_MAX + 128];
    for (size_t i = 0; i < c->count; i++) {
        const contender *r = &c->items[i];
        if (metric_over(c, r, rounds).count > 0)
            return;
        for (size_t s = 0; s < c->seeds; s++)
            if (r->attempts[s].ended == RUN_DONE && attempt_end(&r->attempts[s])->loss < least) {
                least = attempt_end(&r->attempts[s])->loss;
                nearest = r;
            }
    }
    if (nearest == NULL)
        return;
    snprintf(text, sizeof text,
             "no run has reached it; the least loss at an end is %.6g, of %s: take a larger "
             "--target-loss, or more rounds",
             least, nearest->variant->name);
    print_wrapped("target: ", text, width);
}

static void print_targets(const comparison *c, size_t width) {
    char text[256];
    size_t known = 0;
    for (size_t i = 0; i < c->held_out; i++)
        if (isfinite(c->targets[i])) {
            snprintf(text, sizeof text,
                     "loss %.6g of the averaged model, looked for in recorded rounds",
                     c->targets[i]);
            known++;
        }
    if (known > 1)
        snprintf(text, sizeof text,
                 "of each set of held-out data its own (compare.csv has them), looked for in "
                 "recorded rounds");
    if (known > 0)
        print_wrapped("target: ", text, width);
    print_out_of_reach(c, width);
    if (c->held_out > 1)
        print_wrapped("data: ",
                      "variants are scored on different held-out data; accuracies and losses mean "
                      "something only among those with the same",
                      width);
}

static void print_notes(const comparison *c, const view *v, size_t width) {
    bool predicted = false;
    putchar('\n');
    print_wrapped("accuracy, loss: ", "of the averaged model on held-out data", width);
    if (c->study->variants.has_published)
        print_wrapped("published: ", "accuracy as others report it, from the file", width);
    print_wrapped("MB: ", "sent by a node, mean over nodes", width);
    print_wrapped("s: ", "of a node in the whole run, mean over nodes", width);
    if (c->seeds > 1)
        print_seeds(c, v, width);
    print_targets(c, width);
    for (size_t i = 0; i < c->count; i++)
        predicted = predicted || links_over(c, &c->items[i], predicted_s, 0).count > 0;
    if (predicted)
        print_wrapped("Gbit/s, Mbit/s: ",
                      "predicted seconds to the end, or to the target, where each node's link has "
                      "this bandwidth and latency",
                      width);
    if (c->pay_columns > 0)
        print_rival(c, width);
}

static void print_best(const comparison *c, const view *v, size_t width) {
    char text[TEXT_BYTES + 128];
    text_table *t = best_table(c, v), *apart = apart_table(c, v);
    if (t != NULL) {
        putchar('\n');
        text_table_print(t, width);
        snprintf(text, sizeof text,
                 "by the %s mean %s over seeds, on the same held-out data that is told here; first "
                 "by n",
                 metric_rises(v->by) ? "highest" : "lowest", v->by->key);
        print_wrapped("best: ", text, width);
    }
    if (apart != NULL) {
        putchar('\n');
        text_table_print(apart, width);
        print_wrapped("minus: ", "differences seed by seed; n: pairs", width);
    }
    text_table_close(&t);
    text_table_close(&apart);
}

void comparison_print(const comparison *c, const view *v) {
    const size_t width = output_width(v->wide);
    text_table *t = variants_table(c, v);
    putchar('\n');
    text_table_print(t, width);
    print_notes(c, v, width);
    print_best(c, v, width);
    comparison_print_rounds(c, width);
    text_table_close(&t);
}

/* ---- files ---- */

static int write_markup(const comparison *c, text_table *const *tables, size_t count,
                        table_markup markup, sl_error *error) {
    char path[SL_PATH_MAX + 32], beside[sizeof path + 8];
    snprintf(path, sizeof path, "%s/compare.%s", c->study->folder,
             markup == MARKUP_LATEX ? "tex" : "md");
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *out = fopen(beside, "w");
    bool good = out != NULL;
    for (size_t i = 0; i < count && good; i++) {
        text_table_write(tables[i], out, markup, PAPER_RANK);
        fputs(tables[i] != NULL && i + 1 < count ? "\n" : "", out);
    }
    good = good && !ferror(out);
    good = out != NULL && fclose(out) == 0 && good && rename(beside, path) == 0;
    return good ? 0 : sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(errno));
}

int comparison_write(const comparison *c, const view *v, sl_error *error) {
    text_table *tables[] = {variants_table(c, v), best_table(c, v), apart_table(c, v)};
    const size_t count = sizeof tables / sizeof *tables;
    int result = write_markup(c, tables, count, MARKUP_MARKDOWN, error);
    if (result == 0)
        result = write_markup(c, tables, count, MARKUP_LATEX, error);
    for (size_t i = 0; i < count; i++)
        text_table_close(&tables[i]);
    return result;
}

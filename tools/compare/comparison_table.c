/* comparison_table.c - the table of `starling compare`; see comparison.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/names.h"
#include "cli/text_table.h"
#include "compare/comparison.h"
#include "compare/seeds.h"

enum { TEXT_BYTES = 96, PREDICTED_RANK = 4, PAYS_RANK = 5, BREAK_EVEN_DIGITS = 2 };

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

static void add_columns(text_table *t, const comparison *c, differences d) {
    char text[TEXT_BYTES], latency[TEXT_BYTES];
    text_table_column(t, ALIGN_LEFT, 0, "", "name");
    text_table_column(t, ALIGN_LEFT, 8, "", "algorithm");
    text_table_column(t, ALIGN_LEFT, 8, "", "compressor");
    if (d.topology)
        text_table_column(t, ALIGN_LEFT, 2, "", "topology");
    if (d.seed)
        text_table_column(t, ALIGN_RIGHT, 2, "", "seed");
    if (c->seeds > 1)
        text_table_column(t, ALIGN_RIGHT, 0, "", "n");
    if (c->has_published)
        text_table_column(t, ALIGN_RIGHT, 0, "published", "%");
    for (size_t i = 0; i < metric_count; i++)
        text_table_column(t, ALIGN_RIGHT, metrics[i].rank, metrics[i].above, metrics[i].head);
    for (size_t l = 0; l < c->link_count; l++) {
        name_bandwidth(text, sizeof text - 1, c->links[l].bandwidth_mbit, 4);
        strcat(text, ",");
        snprintf(latency, sizeof latency, "%g ms", c->links[l].latency_ms);
        text_table_column(t, ALIGN_RIGHT, PREDICTED_RANK, text, latency);
    }
    for (size_t l = 0; l < c->link_count; l++) {
        snprintf(latency, sizeof latency, c->pay_columns == 1 ? "below" : "below, %g ms",
                 c->links[l].latency_ms);
        if (c->shows_pay[l])
            text_table_column(t, ALIGN_RIGHT, PAYS_RANK, "pays", latency);
    }
}

/* "0.541", over several seeds "0.541 ± 0.012". */
static void put_statistic(text_table *t, statistic s, double scale, const char *format,
                          const char *unit) {
    char mean[TEXT_BYTES];
    if (s.count == 0) {
        text_table_put(t, "-");
        return;
    }
    snprintf(mean, sizeof mean, format, scale * s.mean);
    if (isnan(s.deviation))
        text_table_put(t, "%s%s", mean, unit);
    else
        text_table_put(t, "%s ± %.2g%s", mean, scale * s.deviation, unit);
}

static void put_published(text_table *t, const published *p) {
    put_statistic(t, (statistic){isfinite(p->accuracy), p->accuracy, p->deviation}, 1, "%.2f", "");
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

static void put_row(text_table *t, const comparison *c, const contender *r, differences d) {
    char text[TEXT_BYTES];
    size_t done = contender_done(c, r);
    text_table_row(t);
    text_table_put(t, "%s", r->variant->name);
    text_table_put(t, "%s", contender_algorithm(r));
    contender_compressor(r, text, sizeof text);
    text_table_put(t, "%s", text);
    contender_topology(r, text, sizeof text);
    if (d.topology)
        text_table_put(t, "%s", text);
    if (d.seed)
        text_table_put(t, "%llu", (unsigned long long)r->attempts[0].seed);
    if (c->seeds > 1)
        text_table_put(t, "%zu", done);
    if (c->has_published)
        put_published(t, &r->variant->published);
    contender_outcome(c, r, text, sizeof text);
    if (done == 0) {
        text_table_put_rest(t, "%s", text);
        return;
    }
    for (size_t i = 0; i < metric_count; i++)
        put_statistic(t, metric_over(c, r, &metrics[i]), metrics[i].scale, metrics[i].format, "");
    for (size_t l = 0; l < c->link_count; l++)
        put_statistic(t, predicted_over(c, r, l), 1, "%.4g", " s");
    for (size_t l = 0; l < c->link_count; l++)
        if (c->shows_pay[l])
            put_pay(t, c, r, l);
}

static void print_seeds(const comparison *c, size_t width) {
    char seeds_of_all[SEEDS_MAX * 21], text[sizeof seeds_of_all + TEXT_BYTES];
    contender_seeds(c, &c->items[0], seeds_of_all, sizeof seeds_of_all);
    snprintf(text, sizeof text,
             "mean ± sample standard deviation over the seeds %s; n: how many came to their end",
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
    char text[SL_NAME_MAX + 160];
    snprintf(text, sizeof text,
             "the bandwidth below which a round takes less time than one of %s; from measured "
             "times, so it differs from run to run",
             several ? "the first uncompressed variant on the same topology"
                     : rival->variant->name);
    print_wrapped("pays below: ", text, width);
}

static void print_notes(const comparison *c, size_t width) {
    char text[256];
    bool predicted = false;
    putchar('\n');
    print_wrapped("accuracy, loss: ", "of the averaged model on held-out data", width);
    if (c->has_published)
        print_wrapped("published: ", "accuracy as others report it, from the file", width);
    print_wrapped("MB: ", "sent by a node, mean over nodes", width);
    print_wrapped("s: ", "of a node in the whole run, mean over nodes", width);
    if (c->seeds > 1)
        print_seeds(c, width);
    if (c->has_target) {
        snprintf(text, sizeof text,
                 "loss %.6g of the averaged model, looked for in recorded rounds", c->target_loss);
        print_wrapped("target: ", text, width);
    }
    for (size_t i = 0; i < c->count; i++)
        predicted = predicted || predicted_over(c, &c->items[i], 0).count > 0;
    if (predicted)
        print_wrapped("Gbit/s, Mbit/s: ",
                      "predicted seconds to the end where each node's link has this bandwidth and "
                      "latency",
                      width);
    if (c->pay_columns > 0)
        print_rival(c, width);
}

void comparison_print(const comparison *c, bool wide) {
    size_t width = output_width(wide);
    differences d = find_differences(c);
    text_table *t = text_table_open();
    if (t == NULL)
        return;
    add_columns(t, c, d);
    for (size_t i = 0; i < c->count; i++)
        put_row(t, c, &c->items[i], d);
    putchar('\n');
    text_table_print(t, width);
    print_notes(c, width);
    comparison_print_rounds(c, width);
    text_table_close(&t);
}

/* round_table.c - what a round is made of, by the models of time_model.h, and which form of
 * all-reduce is the fastest: what `starling compare` prints below its table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/names.h"
#include "cli/text_table.h"
#include "compare/comparison_table.h"

enum { TEXT_BYTES = 96, BANDWIDTH_DIGITS = 4, PARTS_RANK = 1, PREDICTED_RANK = 2 };

/* "10 Gbit/s, 0.1 ms" */
static void name_link(const link_profile *l, char out[TEXT_BYTES]) {
    char bandwidth[TEXT_BYTES / 2];
    name_bandwidth(bandwidth, sizeof bandwidth, l->bandwidth_mbit, BANDWIDTH_DIGITS);
    snprintf(out, TEXT_BYTES, "%s, %g ms", bandwidth, l->latency_ms);
}

/* The first seed that is done; c->seeds: none is. */
static size_t first_done(const comparison *c, const contender *r) {
    size_t seed = 0;
    while (seed < c->seeds &&
           (r->attempts[seed].ended != RUN_DONE || r->attempts[seed].timeline == NULL))
        seed++;
    return seed;
}

/* ---- models ---- */

static void put_ms(text_table *t, double seconds) {
    if (isfinite(seconds))
        text_table_put(t, "%.4g", 1e3 * seconds);
    else
        text_table_put(t, "-");
}

static void put_model(text_table *t, const comparison *c, const contender *r, size_t link) {
    const exchange_case where = contender_exchange(r, &c->study->links[link]);
    const size_t seed = first_done(c, r);
    time_model m;
    double tau, delta;
    char text[TEXT_BYTES];
    if (seed == c->seeds || !r->planned || time_model_of(&where) == MODEL_NONE ||
        time_model_open(&m, &where, NULL) != 0)
        return;
    contender_costs(c, r, seed, &tau, &delta);
    const bool is_coded = !isnan(m.psi);
    name_link(&c->study->links[link], text);
    text_table_row(t);
    text_table_put(t, "%s", r->variant->name);
    text_table_put(t, "%s", time_model_name(m.kind));
    text_table_put(t, "%s", text);
    put_ms(t, tau);
    put_ms(t, is_coded ? delta : NAN);
    put_ms(t, m.phi);
    put_ms(t, m.psi);
    put_ms(t, time_model_seconds(&m, tau, delta));
    put_ms(t, r->attempts[seed].predicted_s[link] / (double)r->facts->task.rounds);
}

static text_table *open_table(void) {
    text_table *t = text_table_open();
    static const struct {
        text_align align;
        int rank;
        const char *above, *head;
    } columns[] = {
        {ALIGN_LEFT, 0, "", "name"},
        {ALIGN_LEFT, 0, "", "model"},
        {ALIGN_LEFT, 0, "", "link"},
        {ALIGN_RIGHT, PARTS_RANK, "tau", "ms"},
        {ALIGN_RIGHT, PARTS_RANK, "delta", "ms"},
        {ALIGN_RIGHT, PARTS_RANK, "phi", "ms"},
        {ALIGN_RIGHT, PARTS_RANK, "psi", "ms"},
        {ALIGN_RIGHT, 0, "model", "ms"},
        {ALIGN_RIGHT, PREDICTED_RANK, "predicted", "ms"},
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        text_table_column(t, columns[i].align, columns[i].rank, columns[i].above, columns[i].head);
    return t;
}

static bool any_model(const comparison *c, bool used[]) {
    bool any = false;
    for (size_t i = 0; i < c->count; i++) {
        const contender *r = &c->items[i];
        if (!r->planned || contender_done(c, r) == 0)
            continue;
        const exchange_case where = contender_exchange(r, &c->study->links[0]);
        const time_model_kind kind = time_model_of(&where);
        used[kind] = true;
        any = any || kind != MODEL_NONE;
    }
    return any;
}

/* What is swept mostly does not change a round: of equal ones the first stands for all. */
static bool is_told(const comparison *c, size_t index) {
    const contender *r = &c->items[index];
    for (size_t i = 0; i < index; i++) {
        const contender *before = &c->items[i];
        if (contender_done(c, before) > 0 && before->work == r->work &&
            strcmp(before->variant->method, r->variant->method) == 0 &&
            sl_topology_hash(before->variant->experiment->topology) ==
                sl_topology_hash(r->variant->experiment->topology))
            return true;
    }
    return contender_done(c, r) == 0;
}

static void print_models(const comparison *c, size_t width) {
    bool used[MODEL_CD_SGD + 1] = {0};
    text_table *t = any_model(c, used) ? open_table() : NULL;
    char text[512] = "";
    if (t == NULL)
        return;
    for (size_t i = 0; i < c->count; i++)
        for (size_t l = 0; l < c->study->link_count && !is_told(c, i); l++)
            put_model(t, c, &c->items[i], l);
    for (int kind = MODEL_NONE + 1; kind <= MODEL_CD_SGD; kind++)
        if (used[kind]) {
            const size_t length = strlen(text);
            snprintf(text + length, sizeof text - length, "%s%s %s", length > 0 ? "; " : "",
                     time_model_name((time_model_kind)kind),
                     time_model_formula((time_model_kind)kind));
        }
    puts("\ntime of a round");
    text_table_print(t, width);
    print_wrapped("model: ", text, width);
    print_wrapped("tau, delta, phi, psi: ",
                  "a gradient; encoding and combining; an exchange, uncompressed and compressed",
                  width);
    text_table_close(&t);
}

/* ---- forms of all-reduce ---- */

static bool same_links(const sl_number_rows *a, const sl_number_rows *b) {
    return a->rows == b->rows && a->columns == b->columns &&
           memcmp(a->values, b->values, a->rows * a->columns * sizeof *a->values) == 0;
}

static bool same_case(const exchange_case *a, const exchange_case *b) {
    return all_reduce_is_used(a) && all_reduce_is_used(b) &&
           sl_topology_nodes(a->topology) == sl_topology_nodes(b->topology) &&
           a->config->group == b->config->group && a->chunk_bytes == b->chunk_bytes &&
           same_links(a->links, b->links);
}

static bool was_before(const comparison *c, size_t index) {
    const exchange_case here = contender_exchange(&c->items[index], &c->study->links[0]);
    for (size_t i = 0; i < index; i++) {
        const exchange_case before = contender_exchange(&c->items[i], &c->study->links[0]);
        if (!contender_skipped(&c->items[i]) && c->items[i].planned && same_case(&here, &before))
            return true;
    }
    return false;
}

static void print_fastest(const comparison *c, const contender *r, size_t width) {
    char text[1024], link[TEXT_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text, "the fastest form on %u nodes is ",
                                   sl_topology_nodes(r->variant->experiment->topology));
    for (size_t l = 0; l < c->study->link_count && used < sizeof text; l++) {
        const exchange_case where = contender_exchange(r, &c->study->links[l]);
        double seconds[SL_ALL_REDUCE_FORMS];
        size_t fastest;
        if (all_reduce_times(seconds, &fastest, &where, NULL) != 0)
            return;
        name_link(&c->study->links[l], link);
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s%s at %s: %.4g s (%s takes %.4g s)", l > 0 ? "; " : "",
                                 all_reduce_name(fastest), link, seconds[fastest],
                                 all_reduce_name(SL_ALL_REDUCE_RING), seconds[SL_ALL_REDUCE_RING]);
    }
    print_wrapped("all-reduce: ", text, width);
}

void comparison_print_rounds(const comparison *c, size_t width) {
    for (size_t i = 0; i < c->count; i++) {
        const contender *r = &c->items[i];
        if (contender_skipped(r) || !r->planned || was_before(c, i))
            continue;
        const exchange_case where = contender_exchange(r, &c->study->links[0]);
        if (all_reduce_is_used(&where))
            print_fastest(c, r, width);
    }
    print_models(c, width);
}

/* export.c - see export.h. */
#include "compare/export.h"

#include <math.h>
#include <stdio.h>

#include "compare/differing.h"
#include "compare/sheet.h"

enum { TEXT_BYTES = 96, SEED_DIGITS = 20, KEY_BYTES = 96 };

/* ---- what all rows begin with ---- */

/* values: of the keys in which variants differ. */
static void put_names(sheet *s, const contender *r, json_t *values) {
    char text[TEXT_BYTES];
    const char *key;
    json_t *value;
    sheet_text(s, "name", r->variant->name);
    sheet_text(s, "method", r->variant->method);
    sheet_text(s, "algorithm", contender_algorithm(r));
    contender_compressor(r, text, sizeof text);
    sheet_text(s, "compressor", text);
    contender_topology(r, text, sizeof text);
    sheet_text(s, "topology", text);
    sheet_count(s, "nodes", sl_topology_nodes(r->variant->experiment->topology));
    json_object_foreach(values, key, value) sheet_value(s, key, value);
}

/* "predicted_s_5_mbit_20_ms" */
static void link_key(char out[KEY_BYTES], const char *what, const link_profile *l,
                     const char *which) {
    snprintf(out, KEY_BYTES, "%s_%g_mbit_%g_ms%s", what, l->bandwidth_mbit, l->latency_ms, which);
}

static double rounds_of(const contender *r) {
    return r->facts->known ? (double)r->facts->task.rounds : NAN;
}

/* ---- compare: a row a variant ---- */

/* The columns "KEY", "KEY_sd", "KEY_median", "KEY_q1" and "KEY_q3". */
static void put_statistic(sheet *s, const char *key, const statistic *x) {
    const struct {
        const char *which;
        double value;
    } numbers[] = {{"", x->mean},
                   {"_sd", x->deviation},
                   {"_median", x->median},
                   {"_q1", x->low},
                   {"_q3", x->high}};
    char whole[KEY_BYTES];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(whole, sizeof whole, "%s%s", key, numbers[i].which);
        sheet_number(s, whole, numbers[i].value);
    }
}

static void put_pay(sheet *s, const comparison *c, const contender *r, size_t link) {
    static const char *const names[] = {
        [PAYS_ALWAYS] = "always", [PAYS_NEVER] = "never", [PAYS_MIXED] = "mixed"};
    char key[KEY_BYTES], text[TEXT_BYTES];
    pay_kind kind = PAYS_BELOW;
    const statistic x = pays_over(c, r, link, &kind);
    const bool numeric = x.count > 0 && (kind == PAYS_BELOW || kind == PAYS_ABOVE);
    link_key(key, "pays_below_mbit", &c->study->links[link], "");
    snprintf(text, sizeof text, "above %.6g", x.mean);
    if (x.count == 0)
        sheet_number(s, key, NAN);
    else if (kind == PAYS_BELOW)
        sheet_number(s, key, x.mean);
    else
        sheet_text(s, key, kind == PAYS_ABOVE ? text : names[kind]);
    link_key(key, "pays_below_mbit", &c->study->links[link], "_sd");
    sheet_number(s, key, numeric ? x.deviation : NAN);
}

static void put_links(sheet *s, const comparison *c, const contender *r) {
    static const struct {
        const char *what;
        attempt_number of;
    } numbers[] = {{"predicted_s", predicted_s}, {"target_s", target_s}};
    char key[KEY_BYTES];
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        for (size_t l = 0; l < c->study->link_count; l++) {
            const statistic x = links_over(c, r, numbers[n].of, l);
            link_key(key, numbers[n].what, &c->study->links[l], "");
            put_statistic(s, key, &x);
        }
    for (size_t l = 0; l < c->study->link_count; l++)
        put_pay(s, c, r, l);
}

static void put_variant(sheet *s, const comparison *c, const contender *r, json_t *values) {
    char text[TEXT_BYTES], seed_list[SEEDS_MAX * (SEED_DIGITS + 1)];
    const size_t done = contender_done(c, r);
    const statistic reached = metric_over(c, r, metric_find("rounds_to_target"));
    sheet_row(s);
    put_names(s, r, values);
    contender_seeds(c, r, seed_list, sizeof seed_list);
    sheet_text(s, "seeds", seed_list);
    sheet_count(s, "n", done);
    contender_outcome(c, r, text, sizeof text);
    sheet_text(s, "outcome", text);
    sheet_number(s, "rounds", rounds_of(r));
    sheet_number(s, "target_loss", done > 0 ? c->targets[r->held_out] : NAN);
    sheet_count(s, "reached", reached.count);
    if (c->study->variants.has_published) {
        sheet_number(s, "published", r->variant->published.accuracy / 100);
        sheet_number(s, "published_sd", r->variant->published.deviation / 100);
    }
    for (size_t i = 0; i < metric_count; i++) {
        const statistic x = metric_over(c, r, &metrics[i]);
        put_statistic(s, metrics[i].key, &x);
    }
    put_links(s, c, r);
}

/* ---- runs: a row a run ---- */

static void put_run(sheet *s, const comparison *c, const contender *r, const attempt *a,
                    json_t *values) {
    char text[TEXT_BYTES], key[KEY_BYTES];
    const bool is_done = a->ended == RUN_DONE;
    sheet_row(s);
    put_names(s, r, values);
    sheet_count(s, "seed", a->seed);
    attempt_outcome(a, text, sizeof text);
    sheet_text(s, "outcome", text);
    sheet_number(s, "rounds", rounds_of(r));
    for (size_t i = 0; i < metric_count; i++)
        sheet_number(s, metrics[i].key, is_done ? metrics[i].of(c, r, a) : NAN);
    for (size_t l = 0; l < c->study->link_count; l++) {
        link_key(key, "predicted_s", &c->study->links[l], "");
        sheet_number(s, key, is_done ? a->predicted_s[l] : NAN);
        link_key(key, "target_s", &c->study->links[l], "");
        sheet_number(s, key, is_done ? a->target_s[l] : NAN);
    }
}

/* ---- records: a row a recorded round ---- */

static void put_record(sheet *s, const comparison *c, const attempt *a, size_t index) {
    const milestone *m = &a->milestones[index];
    char key[KEY_BYTES];
    sheet_count(s, "round", m->round);
    sheet_number(s, "accuracy", m->accuracy);
    sheet_number(s, "loss", m->loss);
    sheet_number(s, "consensus_distance", m->distance);
    sheet_number(s, "mb", 1e-6 * m->bytes_sent);
    for (size_t l = 0; l < c->study->link_count; l++) {
        link_key(key, "predicted_s", &c->study->links[l], "");
        sheet_number(s, key, a->seconds_at[l] != NULL ? a->seconds_at[l][index] : NAN);
    }
}

static void put_records(sheet *s, const comparison *c, const contender *r, const attempt *a,
                        json_t *values) {
    for (size_t i = 0; i < a->milestone_count; i++) {
        sheet_row(s);
        put_names(s, r, values);
        sheet_count(s, "seed", a->seed);
        put_record(s, c, a, i);
    }
}

int export_all(const comparison *c, sl_error *error) {
    sheet *rows = sheet_open(), *of_runs = sheet_open(), *records = sheet_open();
    json_t *keys = differing_keys(c);
    for (size_t i = 0; i < c->count; i++) {
        const contender *r = &c->items[i];
        json_t *values = contender_values(r, keys);
        put_variant(rows, c, r, values);
        for (size_t k = 0; k < c->seeds && !contender_skipped(r); k++) {
            if (k > 0 && r->variant->run[0] != '\0')
                continue;
            put_run(of_runs, c, r, &r->attempts[k], values);
            put_records(records, c, r, &r->attempts[k], values);
        }
        json_decref(values);
    }
    int result = sheet_write(rows, c->study->folder, "compare", error);
    if (result == 0)
        result = sheet_write(of_runs, c->study->folder, "runs", error);
    if (result == 0)
        result = sheet_write(records, c->study->folder, "records", error);
    json_decref(keys);
    sheet_close(&rows);
    sheet_close(&of_runs);
    sheet_close(&records);
    return result;
}

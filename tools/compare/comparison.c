/* comparison.c - the table and the CSV file of `starling compare`; see comparison.h. */
#include "compare/comparison.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/names.h"

enum { CELL_BYTES = 80, COLUMNS_MAX = 16 + 2 * LINKS_MAX, TEXT_COLUMNS = 3, RULE = '-' };

void comparison_close(comparison *c) {
    for (size_t i = 0; i < c->count; i++) {
        free(c->items[i].milestones);
        sl_timeline_close(&c->items[i].timeline);
    }
    free(c->items);
    *c = (comparison){0};
}

static bool is_done(const contender *r) {
    return r->outcome == OUTCOME_DONE;
}

static const milestone *end_of(const contender *r) {
    return &r->milestones[r->milestone_count - 1];
}

static bool is_compressed(const contender *r) {
    return r->plan.config.compressor.kind != SL_COMPRESSOR_IDENTITY;
}

/* The first recorded round at which the averaged model is as good as the target; NULL: none. */
static const milestone *reached(const comparison *c, const contender *r) {
    for (size_t i = 0; c->has_target && i < r->milestone_count; i++)
        if (r->milestones[i].consensus.mean_model.loss <= c->target_loss)
            return &r->milestones[i];
    return NULL;
}

/* ---- what follows from all of them ---- */

static void choose_target(comparison *c, const options *o) {
    c->has_target = o->has_target_loss;
    c->target_loss = o->has_target_loss ? o->target_loss : -INFINITY;
    for (size_t i = 0; i < c->count && !o->has_target_loss; i++) {
        const contender *r = &c->items[i];
        double loss = is_done(r) ? end_of(r)->consensus.mean_model.loss : NAN;
        if (!isfinite(loss))
            continue;
        c->target_loss = fmax(c->target_loss, loss);
        c->has_target = true;
    }
}

/* All compute the same gradients: what differs between their times is noise. */
static double gradient_ms_of_all(const comparison *c) {
    double sum = 0;
    size_t done = 0;
    for (size_t i = 0; i < c->count; i++)
        if (is_done(&c->items[i])) {
            sum += c->items[i].cost.gradient_ms;
            done++;
        }
    return done > 0 ? sum / (double)done : 0;
}

static sl_platform platform_of(const comparison *c, const contender *r, const link_profile *l) {
    node_cost cost = {gradient_ms_of_all(c), r->cost.coding_ms};
    sl_platform p = forecast_platform(&r->variant->experiment->network, &cost);
    p.bandwidth_mbit = l->bandwidth_mbit;
    p.latency_ms = l->latency_ms;
    return p;
}

static int predict(const comparison *c, contender *r, size_t link, sl_error *error) {
    sl_platform here = platform_of(c, r, &c->links[link]);
    int code = sl_timeline_seconds(&r->predicted_s[link], r->timeline, &here, 0, error);
    r->predicted_s[link] *=
        (double)c->rounds /
        (double)sl_timeline_rounds(r->timeline); /* agents: only a part was simulated */
    if (code != 0 || !is_compressed(r) || c->rival == NULL)
        return code;
    sl_platform rivals = platform_of(c, c->rival, &c->links[link]);
    r->has_pay[link] = true;
    return break_even_find(&r->pays[link], r->timeline, &here, c->rival->timeline, &rivals, error);
}

static bool same_pay(const contender *r, size_t k, size_t l) {
    const break_even *a = &r->pays[k], *b = &r->pays[l];
    if (r->has_pay[k] != r->has_pay[l] || a->kind != b->kind)
        return false;
    return fabs(a->bandwidth_mbit - b->bandwidth_mbit) <= 1e-3 * fabs(a->bandwidth_mbit);
}

/* A break-even depends on the latency, and often not even on that. */
static void choose_pay_columns(comparison *c) {
    bool any = false, agree = true;
    for (size_t i = 0; i < c->count; i++)
        for (size_t l = 0; l < c->link_count; l++) {
            any = any || c->items[i].has_pay[l];
            agree = agree && same_pay(&c->items[i], 0, l);
        }
    for (size_t l = 0; l < c->link_count; l++) {
        c->shows_pay[l] = any && (l == 0 || !agree);
        for (size_t k = 0; k < l; k++)
            c->shows_pay[l] = c->shows_pay[l] && c->links[k].latency_ms != c->links[l].latency_ms;
        c->pay_columns += c->shows_pay[l];
    }
}

int comparison_finish(comparison *c, const options *o, sl_error *error) {
    choose_target(c, o);
    for (size_t i = c->count; i-- > 0;)
        if (is_done(&c->items[i]) && c->items[i].timeline != NULL && !is_compressed(&c->items[i]))
            c->rival = &c->items[i];
    int code = 0;
    for (size_t i = 0; i < c->count; i++)
        for (size_t l = 0; l < c->link_count && code == 0; l++)
            if (is_done(&c->items[i]) && c->items[i].timeline != NULL)
                code = predict(c, &c->items[i], l, error);
    choose_pay_columns(c);
    return code;
}

/* ---- the table ---- */

typedef struct table {
    size_t columns, rows;
    char (*cells)[COLUMNS_MAX][CELL_BYTES]; /* (rows) the first two are the head */
    bool *short_rows; /* (rows) the first cell after the text runs to the end of the line */
    size_t at;        /* the column that is written next */
} table;

static void put(table *t, size_t row, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put(table *t, size_t row, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->cells[row][t->at++], CELL_BYTES, format, arguments);
    va_end(arguments);
}

static void put_link_head(table *t, size_t row, const link_profile *l) {
    char bandwidth[CELL_BYTES / 2];
    name_bandwidth(bandwidth, sizeof bandwidth, l->bandwidth_mbit);
    if (row == 0)
        put(t, row, "%s,", bandwidth);
    else
        put(t, row, "%g ms", l->latency_ms);
}

static void put_pay_head(table *t, size_t row, const comparison *c, size_t link) {
    if (row == 0)
        put(t, row, "pays");
    else if (c->pay_columns == 1)
        put(t, row, "below");
    else
        put(t, row, "below, %g ms", c->links[link].latency_ms);
}

static void put_head(table *t, const comparison *c) {
    static const char *const heads[][2] = {
        {"", "name"},        {"", "algorithm"}, {"", "compressor"},
        {"accuracy", "%"},   {"", "loss"},      {"rounds to", "target"},
        {"MB to", "target"}, {"MB", "total"},   {"consensus", "distance"},
        {"gradient", "s"},   {"encode", "s"},   {"wait", "s"},
        {"combine", "s"}};
    for (size_t row = 0; row < 2; row++) {
        t->at = 0;
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
            put(t, row, "%s", heads[i][row]);
        for (size_t l = 0; l < c->link_count; l++)
            put_link_head(t, row, &c->links[l]);
        for (size_t l = 0; l < c->link_count; l++)
            if (c->shows_pay[l])
                put_pay_head(t, row, c, l);
    }
    t->columns = t->at;
}

static void put_pay(table *t, size_t row, const contender *r, size_t link) {
    const break_even *p = &r->pays[link];
    char bandwidth[CELL_BYTES / 2];
    name_bandwidth(bandwidth, sizeof bandwidth, p->bandwidth_mbit);
    if (!r->has_pay[link])
        put(t, row, "-");
    else if (p->kind == PAYS_ALWAYS || p->kind == PAYS_NEVER)
        put(t, row, p->kind == PAYS_ALWAYS ? "always" : "never");
    else
        put(t, row, "%s%s", p->kind == PAYS_ABOVE ? "above " : "", bandwidth);
}

static void put_measured(table *t, size_t row, const comparison *c, const contender *r) {
    const milestone *end = end_of(r), *target = reached(c, r);
    double accuracy = end->consensus.mean_model.accuracy;
    put(t, row, isnan(accuracy) ? "-" : "%.2f", 100 * accuracy);
    put(t, row, "%.5g", end->consensus.mean_model.loss);
    put(t, row, target ? "%llu" : "-", target ? (unsigned long long)target->round : 0);
    put(t, row, target ? "%.3f" : "-", target ? 1e-6 * target->bytes_per_node : 0);
    put(t, row, "%.3f", 1e-6 * end->bytes_per_node);
    put(t, row, "%.3g", end->consensus.distance);
    put(t, row, "%.3f", r->times.gradient);
    put(t, row, "%.3f", r->times.encode);
    put(t, row, c->agents ? "%.3f" : "-", r->times.wait);
    put(t, row, "%.3f", r->times.combine);
    for (size_t l = 0; l < c->link_count; l++)
        put(t, row, r->timeline ? "%.4g s" : "-", r->predicted_s[l]);
    for (size_t l = 0; l < c->link_count; l++)
        if (c->shows_pay[l])
            put_pay(t, row, r, l);
}

static void name_outcome(const contender *r, char *out, size_t bytes) {
    static const char *const names[] = {"not run", "done", "diverged", "failed", "stopped"};
    if (r->outcome == OUTCOME_DIVERGED && r->diverged_in > 0)
        snprintf(out, bytes, "diverged in round %llu", (unsigned long long)r->diverged_in);
    else
        snprintf(out, bytes, "%s", names[r->outcome]);
}

static void put_row(table *t, size_t row, const comparison *c, const contender *r) {
    char text[CELL_BYTES];
    t->at = 0;
    put(t, row, "%s", r->variant->name);
    put(t, row, "%s", r->plan.config.name);
    name_compressor(&r->plan.config.compressor, text, sizeof text);
    put(t, row, "%s", text);
    t->short_rows[row] = !is_done(r);
    if (is_done(r)) {
        put_measured(t, row, c, r);
        return;
    }
    name_outcome(r, text, sizeof text);
    put(t, row, "%s", text);
}

static size_t width_of(const table *t, size_t column) {
    size_t width = 0;
    for (size_t row = 0; row < t->rows; row++) {
        size_t length = strlen(t->cells[row][column]);
        bool counts = !t->short_rows[row] || column < TEXT_COLUMNS;
        width = counts && length > width ? length : width;
    }
    return width;
}

static void print_rows(const table *t) {
    for (size_t row = 0; row < t->rows; row++) {
        size_t columns = t->short_rows[row] ? TEXT_COLUMNS + 1 : t->columns;
        for (size_t column = 0; column < columns; column++) {
            int width = column == columns - 1 && t->short_rows[row] ? 0 : (int)width_of(t, column);
            printf("%s%*s", column ? "  " : "", column < TEXT_COLUMNS ? -width : width,
                   t->cells[row][column]);
        }
        putchar('\n');
    }
}

static void print_notes(const comparison *c) {
    puts("\naccuracy, loss: of the averaged model on held-out data. MB: sent by a node, mean over "
         "nodes. seconds: of a node in the whole run, mean.");
    if (c->has_target)
        printf("target: loss %.6g of the averaged model, looked for in recorded rounds\n",
               c->target_loss);
    bool predicted = false;
    for (size_t i = 0; i < c->count; i++)
        predicted = predicted || c->items[i].timeline != NULL;
    if (predicted)
        puts("Gbit/s, Mbit/s: predicted seconds to the end where each node's link has this "
             "bandwidth and latency");
    if (c->pay_columns > 0)
        printf("pays below: the bandwidth below which a round takes less time than one of %s\n",
               c->rival->variant->name);
}

void comparison_print(const comparison *c) {
    table t = {.rows = c->count + 2};
    t.cells = calloc(t.rows, sizeof *t.cells);
    t.short_rows = calloc(t.rows, sizeof *t.short_rows);
    if (t.cells != NULL && t.short_rows != NULL) {
        put_head(&t, c);
        for (size_t i = 0; i < c->count; i++)
            put_row(&t, i + 2, c, &c->items[i]);
        putchar('\n');
        print_rows(&t);
        print_notes(c);
    } else {
        complain("out of memory for the table");
    }
    free(t.cells);
    free(t.short_rows);
}

/* ---- the file ---- */

/* As RFC 4180 has it. */
static void write_text(FILE *out, const char *text) {
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

/* Nothing where there is no number. */
static void write_number(FILE *out, double value) {
    if (isfinite(value))
        fprintf(out, ",%.9g", value);
    else
        fputc(',', out);
}

static void write_head(FILE *out, const comparison *c) {
    fputs("name,algorithm,compressor,outcome,rounds,accuracy,loss,target_loss,rounds_to_target,mb_"
          "to_target,mb_total,consensus_distance,"
          "gradient_s,encode_s,wait_s,combine_s",
          out);
    for (size_t l = 0; l < c->link_count; l++)
        fprintf(out, ",predicted_s_%g_mbit_%g_ms", c->links[l].bandwidth_mbit,
                c->links[l].latency_ms);
    for (size_t l = 0; l < c->link_count; l++)
        fprintf(out, ",pays_below_mbit_%g_mbit_%g_ms", c->links[l].bandwidth_mbit,
                c->links[l].latency_ms);
    fputc('\n', out);
}

static void write_pay(FILE *out, const break_even *p) {
    static const char *const texts[] = {[PAYS_ALWAYS] = ",always",
                                        [PAYS_NEVER] = ",never",
                                        [PAYS_BELOW] = ",",
                                        [PAYS_ABOVE] = ",above "};
    fputs(texts[p->kind], out);
    if (p->kind == PAYS_BELOW || p->kind == PAYS_ABOVE)
        fprintf(out, "%.6g", p->bandwidth_mbit);
}

static void write_measured(FILE *out, const comparison *c, const contender *r) {
    const milestone *end = end_of(r), *target = reached(c, r);
    fprintf(out, ",%llu", (unsigned long long)c->rounds);
    write_number(out, end->consensus.mean_model.accuracy);
    write_number(out, end->consensus.mean_model.loss);
    write_number(out, c->target_loss);
    write_number(out, target ? (double)target->round : NAN);
    write_number(out, target ? 1e-6 * target->bytes_per_node : NAN);
    write_number(out, 1e-6 * end->bytes_per_node);
    write_number(out, end->consensus.distance);
    write_number(out, r->times.gradient);
    write_number(out, r->times.encode);
    write_number(out, c->agents ? r->times.wait : NAN);
    write_number(out, r->times.combine);
    for (size_t l = 0; l < c->link_count; l++)
        write_number(out, r->timeline ? r->predicted_s[l] : NAN);
    for (size_t l = 0; l < c->link_count; l++) {
        if (r->has_pay[l])
            write_pay(out, &r->pays[l]);
        else
            fputc(',', out);
    }
}

static void write_result(FILE *out, const comparison *c, const contender *r) {
    enum { MEASURED = 12 };
    char text[CELL_BYTES];
    write_text(out, r->variant->name);
    fputc(',', out);
    write_text(out, r->plan.config.name);
    fputc(',', out);
    name_compressor(&r->plan.config.compressor, text, sizeof text);
    write_text(out, text);
    name_outcome(r, text, sizeof text);
    fprintf(out, ",%s", text);
    if (is_done(r))
        write_measured(out, c, r);
    for (size_t i = 0; i < MEASURED + 2 * c->link_count && !is_done(r); i++)
        fputc(',', out);
    fputc('\n', out);
}

/* Beside its name, and renamed: it is there whole or not at all. */
int comparison_write(const comparison *c, const char *path, sl_error *error) {
    char beside[SL_PATH_MAX + 64];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *out = fopen(beside, "w");
    if (out == NULL)
        return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", beside, strerror(errno));
    write_head(out, c);
    for (size_t i = 0; i < c->count; i++)
        write_result(out, c, &c->items[i]);
    bool good = !ferror(out);
    good = fclose(out) == 0 && good;
    if (good && rename(beside, path) == 0)
        return 0;
    int why = errno;
    unlink(beside);
    return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(why));
}

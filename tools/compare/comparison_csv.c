/* comparison_csv.c - compare.csv; see comparison.h. docs/outputs.md lists its columns. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compare/comparison.h"
#include "compare/seeds.h"

enum { TEXT_BYTES = 96, SEED_DIGITS = 20 };

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

static void write_statistic(FILE *out, statistic s) {
    write_number(out, s.count > 0 ? s.mean : NAN);
    write_number(out, s.deviation);
}

static void write_head(FILE *out, const comparison *c) {
    fputs("name,algorithm,compressor,topology,nodes,seeds,n,outcome,rounds,target_loss", out);
    if (c->has_published)
        fputs(",published,published_sd", out);
    for (size_t i = 0; i < metric_count; i++)
        fprintf(out, ",%s,%s_sd", metrics[i].key, metrics[i].key);
    for (size_t l = 0; l < c->link_count; l++)
        for (int sd = 0; sd < 2; sd++)
            fprintf(out, ",predicted_s_%g_mbit_%g_ms%s", c->links[l].bandwidth_mbit,
                    c->links[l].latency_ms, sd ? "_sd" : "");
    for (size_t l = 0; l < c->link_count; l++)
        for (int sd = 0; sd < 2; sd++)
            fprintf(out, ",pays_below_mbit_%g_mbit_%g_ms%s", c->links[l].bandwidth_mbit,
                    c->links[l].latency_ms, sd ? "_sd" : "");
    fputc('\n', out);
}

static void write_pay(FILE *out, const comparison *c, const contender *r, size_t link) {
    static const char *const texts[] = {[PAYS_ALWAYS] = ",always",
                                        [PAYS_NEVER] = ",never",
                                        [PAYS_BELOW] = ",",
                                        [PAYS_ABOVE] = ",above ",
                                        [PAYS_MIXED] = ",mixed"};
    pay_kind kind = PAYS_BELOW;
    statistic s = pays_over(c, r, link, &kind);
    fputs(texts[kind], out);
    bool numeric = s.count > 0 && (kind == PAYS_BELOW || kind == PAYS_ABOVE);
    if (numeric)
        fprintf(out, "%.6g", s.mean);
    write_number(out, numeric ? s.deviation : NAN);
}

static void write_row(FILE *out, const comparison *c, const contender *r) {
    char text[TEXT_BYTES], seed_list[SEEDS_MAX * (SEED_DIGITS + 1)];
    write_text(out, r->variant->name);
    fputc(',', out);
    write_text(out, contender_algorithm(r));
    fputc(',', out);
    contender_compressor(r, text, sizeof text);
    write_text(out, text);
    contender_topology(r, text, sizeof text);
    contender_seeds(c, r, seed_list, sizeof seed_list);
    size_t done = contender_done(c, r);
    fprintf(out, ",%s,%u,%s,%zu", text, sl_topology_nodes(r->variant->experiment->topology),
            seed_list, done);
    contender_outcome(c, r, text, sizeof text);
    fputc(',', out);
    write_text(out, text);
    fprintf(out, ",%llu", (unsigned long long)r->rounds);
    write_number(out, done > 0 && c->has_target ? c->target_loss : NAN);
    if (c->has_published) {
        write_number(out, r->variant->published.accuracy / 100);
        write_number(out, r->variant->published.deviation / 100);
    }
    for (size_t i = 0; i < metric_count; i++)
        write_statistic(out, metric_over(c, r, &metrics[i]));
    for (size_t l = 0; l < c->link_count; l++)
        write_statistic(out, predicted_over(c, r, l));
    for (size_t l = 0; l < c->link_count; l++)
        write_pay(out, c, r, l);
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
        write_row(out, c, &c->items[i]);
    bool good = !ferror(out);
    good = fclose(out) == 0 && good;
    if (good && rename(beside, path) == 0)
        return 0;
    int why = errno;
    unlink(beside);
    return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(why));
}

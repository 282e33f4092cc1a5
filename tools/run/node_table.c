/* node_table.c - the final table: quality of each model, traffic, and where the time went. */
#include "run/node_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows printed one by one; of larger runs only the first ones, and the spread. */
enum { ROWS_MAX = 32 };

static void print_percent(double fraction) {
    if (isnan(fraction))
        printf("        -");
    else
        printf("%7.2f %%", 100 * fraction);
}

static void print_row(const char *label, const sl_evaluation *e, double sent, double received,
                      const sl_times *t) {
    printf("%-5s", label);
    print_percent(e->accuracy);
    printf(" %10.4g %10.2f %10.2f", e->loss, 1e-6 * sent, 1e-6 * received);
    double other = fmax(0, t->total - t->gradient - t->encode - t->wait - t->combine);
    printf(" %9.3f %8.3f %8.3f %8.3f %9.3f %8.3f %8.3f\n", t->gradient, t->encode, t->wait,
           t->combine, t->exchange, other, t->total);
}

static void print_head(void) {
    printf("      held-out data            megabytes             seconds\n");
    printf("%-5s%9s %10s %10s %10s", "node", "accuracy", "loss", "sent", "received");
    printf(" %9s %8s %8s %8s %9s %8s %8s\n", "gradient", "encode", "wait", "combine", "exchange",
           "other", "total");
}

static void print_mean(const sl_summary *s) {
    sl_evaluation e = {0};
    sl_times t = {0};
    double sent = 0, received = 0, n = (double)s->record_count;
    for (size_t i = 0; i < s->record_count; i++) {
        const sl_record *r = &s->records[i];
        e.accuracy += r->evaluation.accuracy / n;
        e.loss += r->evaluation.loss / n;
        sent += (double)r->bytes_sent / n;
        received += (double)r->bytes_received / n;
        t.gradient += r->times.gradient / n;
        t.encode += r->times.encode / n;
        t.wait += r->times.wait / n;
        t.combine += r->times.combine / n;
        t.exchange += r->times.exchange / n;
        t.total += r->times.total / n;
    }
    print_row("mean", &e, sent, received, &t);
}

static void print_spread(const sl_summary *s) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < s->record_count; i++) {
        low = fmin(low, s->records[i].evaluation.accuracy);
        high = fmax(high, s->records[i].evaluation.accuracy);
    }
    printf("... and %zu more nodes", s->record_count - ROWS_MAX);
    if (low <= high)
        printf("; accuracy from %.2f %% to %.2f %% over all", 100 * low, 100 * high);
    putchar('\n');
}

void node_table_print(const sl_summary *s) {
    putchar('\n');
    print_head();
    for (size_t i = 0; i < s->record_count && i < ROWS_MAX; i++) {
        const sl_record *r = &s->records[i];
        char label[16];
        snprintf(label, sizeof label, "%u", r->rank);
        print_row(label, &r->evaluation, (double)r->bytes_sent, (double)r->bytes_received,
                  &r->times);
    }
    if (s->record_count > ROWS_MAX)
        print_spread(s);
    if (s->record_count > 1)
        print_mean(s);
    putchar('\n');
    if (s->has_consensus) {
        printf("averaged model      loss %.6g", s->consensus.mean_model.loss);
        if (!isnan(s->consensus.mean_model.accuracy))
            printf(", accuracy %.2f %%", 100 * s->consensus.mean_model.accuracy);
        printf("\nconsensus distance  %.6g\n", s->consensus.distance);
    }
    printf("rounds              %llu in %.1f s\n", (unsigned long long)s->rounds, s->seconds);
    if (s->predicted_seconds > 0)
        printf("predicted           %.6g s on the nodes and links of network.*\n",
               s->predicted_seconds);
    if (strcmp(s->driver, "sim") == 0)
        puts("seconds: total is the simulator's for all nodes, other includes the other nodes' "
             "shares");
    else
        puts(
            "seconds: exchange runs beside gradient, encode, wait and combine; other is evaluating "
            "and recording");
}

/* node_table.c - the final table of a run: each model's quality, traffic, and where the time went.
 */
#include "run/node_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/log.h"
#include "cli/text_table.h"

/* Rows of larger runs: the first ones only, and the range. */
enum { ROWS_MAX = 32 };

static void add_columns(text_table *t) {
    static const struct {
        const char *above, *head;
        int rank;
    } columns[] = {
        {"held-out", "accuracy", 0},
        {"held-out", "loss", 1},
        {"MB", "sent", 2},
        {"MB", "received", 7},
        {"s", "gradient", 4},
        {"s", "encode", 6},
        {"s", "wait", 5},
        {"s", "combine", 6},
        {"s", "exchange", 8},
        {"s", "other", 9},
        {"s", "total", 3},
    };
    text_table_column(t, ALIGN_LEFT, 0, "", "node");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        text_table_column(t, ALIGN_RIGHT, columns[i].rank, columns[i].above, columns[i].head);
}

static void put_row(text_table *t, const char *label, const sl_evaluation *e, double sent,
                    double received, const sl_times *s) {
    text_table_row(t);
    text_table_put(t, "%s", label);
    text_table_put(t, isnan(e->accuracy) ? "-" : "%.2f %%", 100 * e->accuracy);
    text_table_put(t, "%.4g", e->loss);
    text_table_put(t, "%.2f", 1e-6 * sent);
    text_table_put(t, "%.2f", 1e-6 * received);
    double other = fmax(0, s->total - s->gradient - s->encode - s->wait - s->combine);
    const double seconds[] = {s->gradient, s->encode, s->wait, s->combine,
                              s->exchange, other,     s->total};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        text_table_put(t, "%.3f", seconds[i]);
}

static bool is_evaluated(const sl_record *r) {
    return !isnan(r->evaluation.loss);
}

/* NULL: it is there. */
static const sl_loss *loss_of(const sl_summary *s, uint32_t rank) {
    for (size_t i = 0; i < s->loss_count; i++)
        if (s->losses[i].rank == rank && s->losses[i].returned == 0)
            return &s->losses[i];
    return NULL;
}

static const char *word_of(const sl_loss *loss) {
    return loss == NULL ? "" : loss->left ? "left" : "lost";
}

static size_t count_evaluated(const sl_summary *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->record_count; i++)
        count += is_evaluated(&s->records[i]);
    return count;
}

static size_t count_left(const sl_summary *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->record_count; i++)
        count += loss_of(s, s->records[i].rank) == NULL;
    return count;
}

/* Of those that are left: the last lines of the lost are of earlier rounds. */
static void put_mean(text_table *t, const sl_summary *s) {
    sl_evaluation e = {0};
    sl_times times = {0};
    double sent = 0, received = 0, n = (double)count_left(s), evaluated = 0;
    for (size_t i = 0; i < s->record_count; i++) {
        const sl_record *r = &s->records[i];
        if (loss_of(s, r->rank) != NULL)
            continue;
        if (is_evaluated(r)) {
            e.accuracy += r->evaluation.accuracy;
            e.loss += r->evaluation.loss;
            evaluated++;
        }
        sent += (double)r->bytes_sent / n;
        received += (double)r->bytes_received / n;
        times.gradient += r->times.gradient / n;
        times.encode += r->times.encode / n;
        times.wait += r->times.wait / n;
        times.combine += r->times.combine / n;
        times.exchange += r->times.exchange / n;
        times.total += r->times.total / n;
    }
    e.accuracy /= evaluated; /* of none: not a number */
    e.loss /= evaluated;
    put_row(t, "mean", &e, sent, received, &times);
}

static void put_spread(text_table *t, const sl_summary *s, size_t shown) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < s->record_count; i++) {
        if (loss_of(s, s->records[i].rank) != NULL)
            continue;
        low = fmin(low, s->records[i].evaluation.accuracy);
        high = fmax(high, s->records[i].evaluation.accuracy);
    }
    text_table_row(t);
    if (low <= high)
        text_table_put_rest(t, "... and %zu more nodes; accuracy %.2f %% to %.2f %%",
                            s->record_count - shown, 100 * low, 100 * high);
    else
        text_table_put_rest(t, "... and %zu more nodes", s->record_count - shown);
}

static void print_nodes(const sl_summary *s, size_t width) {
    text_table *t = text_table_open();
    if (t == NULL)
        return;
    add_columns(t);
    bool all = count_evaluated(s) == 0; /* else only those that are */
    size_t shown = 0;
    for (size_t i = 0; i < s->record_count && shown < ROWS_MAX; i++) {
        const sl_record *r = &s->records[i];
        char label[16];
        if (!all && !is_evaluated(r))
            continue;
        shown++;
        const sl_loss *loss = loss_of(s, r->rank);
        snprintf(label, sizeof label, "%u%s%s", r->rank, loss != NULL ? " " : "", word_of(loss));
        put_row(t, label, &r->evaluation, (double)r->bytes_sent, (double)r->bytes_received,
                &r->times);
    }
    if (s->record_count > shown)
        put_spread(t, s, shown);
    if (s->record_count > 1)
        put_mean(t, s);
    text_table_print(t, width);
    text_table_close(&t);
}

static void print_silent(const sl_summary *s) {
    unsigned long long sent = 0, silent = 0;
    for (size_t i = 0; i < s->record_count; i++) {
        sent += s->records[i].messages_sent;
        silent += s->records[i].messages_silent;
    }
    if (silent > 0)
        printf("silent              %llu of %llu messages\n", silent, sent + silent);
}

static void print_refused(const sl_summary *s) {
    unsigned long long counts[SL_REFUSED_KINDS] = {0}, all = 0;
    for (size_t i = 0; i < s->record_count; i++)
        for (int kind = 0; kind < SL_REFUSED_KINDS; kind++) {
            counts[kind] += s->records[i].refused[kind];
            all += s->records[i].refused[kind];
        }
    if (all > 0)
        printf("refused             %llu connections: %llu said nothing, %llu greeted as no "
               "neighbour does, %llu did not agree\n",
               all, counts[SL_REFUSED_SILENT], counts[SL_REFUSED_GREETING],
               counts[SL_REFUSED_HELLO]);
}

static void print_loss(const sl_loss *loss, const char *what) {
    if (loss->left)
        printf("left                %s %u after round %llu\n", what, loss->rank,
               (unsigned long long)loss->round);
    else
        tell_line("lost                %s %u in round %llu: %s", what, loss->rank,
                  (unsigned long long)loss->round, loss->why);
    if (loss->restarts > 1)
        printf("started again       agent %u, %u times, the last time after %.1f s\n", loss->rank,
               loss->restarts, loss->restarted_s);
    else if (loss->restarts > 0)
        printf("started again       agent %u after %.1f s\n", loss->rank, loss->restarted_s);
    if (loss->returned > 0)
        printf("returned            %s %u in round %llu\n", what, loss->rank,
               (unsigned long long)loss->returned);
}

void node_table_print(const sl_summary *s, bool wide) {
    size_t width = output_width(wide);
    putchar('\n');
    print_nodes(s, width);
    putchar('\n');
    if (s->has_consensus) {
        printf("averaged model      loss %.6g", s->consensus.mean_model.loss);
        if (!isnan(s->consensus.mean_model.accuracy))
            printf(", accuracy %.2f %%", 100 * s->consensus.mean_model.accuracy);
        printf("\nconsensus distance  %.6g\n", s->consensus.distance);
    }
    const sl_record *averaged = sl_summary_averaged(s);
    if (averaged != NULL)
        printf("final average       of models at consensus distance %.6g\n",
               averaged->averaged_distance);
    for (size_t i = 0; i < s->loss_count; i++)
        print_loss(&s->losses[i], strcmp(s->driver, "sim") == 0 ? "node" : "agent");
    print_silent(s);
    print_refused(s);
    printf("rounds              %llu in %.1f s\n", (unsigned long long)s->rounds, s->seconds);
    if (s->predicted_seconds > 0)
        printf("predicted           %.6g s on the nodes and links of network.*\n",
               s->predicted_seconds);
    print_wrapped("seconds: ",
                  strcmp(s->driver, "sim") == 0
                      ? "total is the simulator's for all nodes; other includes the other nodes' "
                        "shares"
                      : "exchange runs beside gradient, encode, wait and combine; other is "
                        "evaluating and recording",
                  width);
}

int node_table_end(const sl_summary *s, bool wide) {
    if (log_is_json())
        log_say(&(log_about){LOG_INFO, LOG_FINISHED, MYSELF, NOBODY, s->rounds},
                "%llu rounds in %.1f s", (unsigned long long)s->rounds, s->seconds);
    else
        node_table_print(s, wide);
    if (s->missing == NULL)
        return TOOL_OK;
    complain(WARNING "%s%s; exit code %d", s->missing,
             s->minority ? "; the model is of few samples, or others have trained elsewhere" : "",
             TOOL_INCOMPLETE);
    return TOOL_INCOMPLETE;
}

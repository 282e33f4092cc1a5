/* metrics.c - see metrics.h. Tables of rows: a name, what it means, and where its number is. */
#include "monitor/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exposition.h"
#include "monitor/process.h"
#include "starling/kernels.h"
#include "starling/spectrum.h"
#include "starling/version.h"

static const double work_max = 1e7; /* for the spectrum */

typedef struct sheet {
    FILE *file;
    const sl_monitor_subject *of;
    sl_agent_progress p;
    double epoch_s;     /* of the agent's clock, in Unix time */
    double contraction; /* of the experiment's topology; NaN: not known */
} sheet;

static void label(const sheet *s, const char *name, const char *value) {
    fprintf(s->file, "%s=\"", name);
    for (; *value != '\0'; value++)
        switch (*value) {
        case '\n':
            fputs("\\n", s->file);
            break;
        case '"':
        case '\\':
            fputc('\\', s->file);
            fputc(*value, s->file);
            break;
        default:
            fputc(*value, s->file);
        }
    fputc('"', s->file);
}

/* ---- what is running ---- */

static void write_info(const sheet *s) {
    const sl_experiment *e = s->of->experiment;
    char number[32];
    sl_exposition_head(s->file, "starling_build_info", "gauge",
                       "1, of this version with these kernels.");
    fputs("starling_build_info{", s->file);
    label(s, "version", sl_version());
    fputc(',', s->file);
    label(s, "kernels", sl_kernels_name());
    fputs("} 1\n", s->file);
    sl_exposition_head(s->file, "starling_run_info", "gauge", "1, of this agent of this run.");
    fputs("starling_run_info{", s->file);
    snprintf(number, sizeof number, "%" PRIu64, s->of->run_id);
    label(s, "run", number);
    fputc(',', s->file);
    label(s, "experiment", e->name);
    fputc(',', s->file);
    label(s, "algorithm", e->algorithm.name);
    snprintf(number, sizeof number, "%u", s->of->rank);
    fputc(',', s->file);
    label(s, "rank", number);
    fputs("} 1\n", s->file);
}

/* ---- the agent ---- */

static double known(double value, bool is_known) {
    return is_known ? value : NAN;
}

static void write_training(const sheet *s) {
    const sl_record *r = &s->p.record;
    const bool trained = r->round.round > 0;
    sl_exposition_number(s->file, "starling_rounds_total", "counter",
                         "Rounds that this agent has ended.", (double)r->round.round);
    sl_exposition_number(s->file, "starling_last_round_timestamp_seconds", "gauge",
                         "When it ended the last one.", known(s->epoch_s + s->p.ended_s, trained));
    sl_exposition_number(s->file, "starling_loss", "gauge", "Loss of the last batch.",
                         known(r->round.loss, trained && s->of->has_loss));
    sl_exposition_number(s->file, "starling_held_out_accuracy_ratio", "gauge",
                         "Accuracy of its model on held-out data, when it was last evaluated.",
                         r->evaluation.accuracy);
    sl_exposition_number(
        s->file, "starling_neighbour_distance", "gauge",
        "How far its published vector was from its neighbours', when that was last measured.",
        s->p.distance);
    sl_exposition_number(s->file, "starling_consensus_distance", "gauge",
                         "How far all models were from their mean, at the end.",
                         known(r->averaged_distance, r->averaged));
    sl_exposition_number(
        s->file, "starling_contraction_ratio", "gauge",
        "What a round has left of neighbour_distance, steps of gradients included, "
        "between the last two measured ones.",
        s->p.contraction);
    sl_exposition_number(s->file, "starling_contraction_predicted_ratio", "gauge",
                         "What a round of averaging alone (a period of a schedule) leaves of all "
                         "models' distance.",
                         known(s->contraction, s->p.members == s->of->nodes));
    sl_exposition_number(s->file, "starling_members", "gauge",
                         "Agents that take part, as far as this one knows.",
                         known(s->p.members, s->p.members > 0));
    sl_exposition_number(s->file, "starling_view", "gauge",
                         "Number of the members' view; 0: of the first.",
                         known(s->p.view, s->p.members > 0));
    sl_exposition_number(s->file, "starling_frames_corrupted_total", "counter",
                         "Frames that could not be read.", (double)s->p.counters.frames_corrupted);
    sl_exposition_number(s->file, "starling_payload_copied_bytes_total", "counter",
                         "Data that was copied, as it could not leave, or be read, where it stood.",
                         (double)s->p.counters.payload_bytes_copied);
    sl_exposition_number(s->file, "starling_checkpoint_last_success_timestamp_seconds", "gauge",
                         "When a checkpoint was last written.",
                         known(s->epoch_s + s->p.saved_s, s->p.saved_s > 0));
}

static void write_phases(const sheet *s) {
    const sl_times *t = &s->p.record.times;
    const struct {
        const char *phase;
        double seconds;
    } rows[] = {{"compute", t->gradient},
                {"encode", t->encode},
                {"exchange", t->exchange},
                {"wait", t->wait},
                {"combine", t->combine}};
    sl_exposition_head(s->file, "starling_phase_seconds_total", "counter",
                       "Time in each phase of its rounds; exchange goes on beside others.");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        fprintf(s->file, "starling_phase_seconds_total{phase=\"%s\"} %.17g\n", rows[i].phase,
                rows[i].seconds);
}

static void write_memory(const sheet *s) {
    sl_exposition_head(s->file, "starling_memory_bytes", "gauge", "Memory by kind.");
    fprintf(s->file,
            "starling_memory_bytes{kind=\"vectors\"} %zu\n"
            "starling_memory_bytes{kind=\"receive_buffers\"} %zu\n",
            s->p.counters.vector_bytes, s->p.counters.receive_buffer_bytes);
}

/* ---- its edges ---- */

/* Rounds that the neighbour is behind. */
static double lag(const sl_agent_progress *p, const sl_agent_edge *e) {
    return known((double)p->exchange - (double)e->exchange, e->agreed);
}

static double up(const sl_agent_progress *p, const sl_agent_edge *e) {
    (void)p;
    return e->agreed;
}

static double sent(const sl_agent_progress *p, const sl_agent_edge *e) {
    (void)p;
    return (double)e->traffic.sent_bytes;
}

static double received(const sl_agent_progress *p, const sl_agent_edge *e) {
    (void)p;
    return (double)e->traffic.received_bytes;
}

static double waited(const sl_agent_progress *p, const sl_agent_edge *e) {
    (void)p;
    return e->traffic.waited_s;
}

static double trip(const sl_agent_progress *p, const sl_agent_edge *e) {
    (void)p;
    return known(e->traffic.round_trip_s, e->agreed && e->traffic.round_trip_s > 0);
}

static double again(const sl_agent_progress *p, const sl_agent_edge *e) {
    (void)p;
    return e->traffic.connections > 0 ? (double)(e->traffic.connections - 1) : 0;
}

static double add(double a, double b) {
    return isnan(a) ? b : a + (isnan(b) ? 0 : b);
}

static const struct edge_row {
    const char *name, *type, *help;
    double (*value)(const sl_agent_progress *p, const sl_agent_edge *e);
    double (*fold)(double a, double b); /* of more than SL_METRICS_EDGES_MAX */
} edge_rows[] = {
    {"starling_edge_up", "gauge", "1: connected to this neighbour, 0: not.", up, add},
    {"starling_edge_round_lag", "gauge", "Rounds that the neighbour is behind this agent.", lag,
     fmax},
    {"starling_edge_sent_bytes_total", "counter", "Bytes of data to it.", sent, add},
    {"starling_edge_received_bytes_total", "counter", "Bytes of data from it.", received, add},
    {"starling_edge_wait_seconds_total", "counter",
     "Time waited for it, perhaps beside others; looked at 20 times a second.", waited, add},
    {"starling_edge_round_trip_seconds", "gauge", "Round trip of its connection's bytes.", trip,
     fmax},
    {"starling_edge_reconnects_total", "counter", "Connections to it after the first.", again, add},
};

/* *any: the row's head is there. */
static void edge_sample(const sheet *s, const struct edge_row *row, const char *peer, double value,
                        bool *any) {
    if (isnan(value))
        return;
    if (!*any)
        sl_exposition_head(s->file, row->name, row->type, row->help);
    *any = true;
    fprintf(s->file, "%s{peer=\"%s\"} %.17g\n", row->name, peer, value);
}

static void write_edge_row(const sheet *s, const struct edge_row *row, const sl_agent_edge *edges,
                           size_t count) {
    char peer[16];
    double all = NAN;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const double value = row->value(&s->p, &edges[i]);
        all = row->fold(all, value);
        snprintf(peer, sizeof peer, "%u", edges[i].rank);
        if (count <= SL_METRICS_EDGES_MAX)
            edge_sample(s, row, peer, value, &any);
    }
    if (count > SL_METRICS_EDGES_MAX)
        edge_sample(s, row, "all", all, &any);
}

/* False: out of memory. */
static bool write_edges(const sheet *s) {
    size_t count = 0, room = SL_METRICS_EDGES_MAX;
    sl_agent_edge *edges = malloc(room * sizeof *edges), edge;
    while (edges != NULL && sl_agent_edge_read(s->of->agent, (uint32_t)count, &edge)) {
        sl_agent_edge *more = count == room ? realloc(edges, 2 * room * sizeof *edges) : edges;
        room *= count == room ? 2 : 1;
        if (more == NULL)
            free(edges);
        else
            more[count++] = edge;
        edges = more;
    }
    if (edges == NULL)
        return false;
    for (size_t i = 0; count > 0 && i < sizeof edge_rows / sizeof *edge_rows; i++)
        write_edge_row(s, &edge_rows[i], edges, count);
    free(edges);
    return true;
}

/* ---- the process, by the names that all exporters use ---- */

static void write_process(const sheet *s) {
    const sl_process_numbers n = sl_process_numbers_read();
    sl_exposition_number(s->file, "process_cpu_seconds_total", "counter",
                         "Processor time, user and system.", n.cpu_seconds);
    sl_exposition_number(s->file, "process_resident_memory_bytes", "gauge", "Resident memory.",
                         n.resident_bytes);
    sl_exposition_number(s->file, "process_virtual_memory_bytes", "gauge", "Virtual memory.",
                         n.virtual_bytes);
    sl_exposition_number(s->file, "process_open_fds", "gauge", "Descriptors in use.",
                         n.open_descriptors);
    sl_exposition_number(s->file, "process_max_fds", "gauge", "Descriptors that it may have.",
                         n.max_descriptors);
    sl_exposition_number(s->file, "process_start_time_seconds", "gauge", "When it began.",
                         n.start_seconds);
}

static double unix_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double sl_metrics_contraction(const sl_topology *topology) {
    sl_spectrum_settings settings;
    sl_spectrum found;
    sl_error error;
    if (sl_spectrum_closed_form(&found, sl_topology_description(topology)))
        return found.rho;
    sl_spectrum_defaults(&settings);
    settings.work_max = work_max;
    return sl_spectrum_compute(&found, topology, &settings, &error) == 0 && found.converged
               ? found.rho
               : NAN;
}

char *sl_metrics_write(const sl_monitor_subject *of, double contraction) {
    char *text = NULL;
    size_t bytes;
    sheet s = {.file = open_memstream(&text, &bytes),
               .of = of,
               .p = sl_agent_progress_read(of->agent),
               .epoch_s = unix_time() - sl_clock_seconds(),
               .contraction = contraction};
    if (s.file == NULL)
        return NULL;
    write_info(&s);
    write_training(&s);
    write_phases(&s);
    write_memory(&s);
    bool well = write_edges(&s);
    write_process(&s);
    well = !ferror(s.file) && well;
    if (fclose(s.file) == 0 && well)
        return text;
    free(text);
    return NULL;
}

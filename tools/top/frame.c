/* frame.c - see frame.h. Where lines are few, panels share them, and show what stands out. */
#include "top/frame.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text_table.h"
#include "top/marks.h"

enum {
    LABEL_COLUMNS = 11,
    VALUE_COLUMNS = 11,
    MARKS_MAX = 400,
    LINE_BYTES = 2048,
    EVENTS_MAX = 20 /* the last ones, where there is no limit of lines */
};

/* What is written, of what. */
typedef struct frame {
    FILE *out;
    const json_t *document;
    const frame_room *room;
    bool *stands_out; /* (nodes): shown */
    size_t node_rows, edge_rows, event_rows;
} frame;

static const json_t *member(const frame *f, const char *name) {
    return json_object_get(f->document, name);
}

static size_t size_of(const frame *f, const char *name) {
    return json_array_size(member(f, name));
}

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text(const json_t *object, const char *name) {
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL ? value : "";
}

/* ---- lines ---- */

static void line(const frame *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(const frame *f, const char *format, ...) {
    char raw[LINE_BYTES], shown[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    sl_text_show(shown, sizeof shown, raw, strlen(raw));
    fprintf(f->out, "%.*s\n", (int)text_bytes(shown, f->room->width), shown);
}

static void heading(const frame *f, const char *name, const char *more) {
    if (f->room->is_bold)
        fputs("\033[1m", f->out);
    line(f, "%s%s%s", name, more[0] != '\0' ? ": " : "", more);
    if (f->room->is_bold)
        fputs("\033[0m", f->out);
}

static size_t marks_in(const frame *f, size_t beside) {
    const size_t width = f->room->width < MARKS_MAX ? f->room->width : MARKS_MAX;
    return width > beside + 1 ? width - beside : 1;
}

/* ---- who waits for whom ---- */

static bool is_well(const json_t *node) {
    static const char *const well[] = {"computes", "exchanges", "connects", "ends", "done", "runs"};
    for (size_t i = 0; i < sizeof well / sizeof *well; i++)
        if (strcmp(text(node, "state"), well[i]) == 0)
            return true;
    return false;
}

/* Where a rank stands among the nodes, which are by rank, all of them or some. */
static size_t place_of(const json_t *nodes, json_int_t rank) {
    size_t i = 0;
    if (json_integer_value(json_object_get(json_array_get(nodes, (size_t)rank), "rank")) == rank)
        return (size_t)rank;
    while (i < json_array_size(nodes) &&
           json_integer_value(json_object_get(json_array_get(nodes, i), "rank")) != rank)
        i++;
    return i;
}

/* Who is not well stands out most, then whom others wait for. */
static void weigh_nodes(const frame *f, unsigned char *weights) {
    const json_t *nodes = member(f, "nodes");
    const size_t count = json_array_size(nodes);
    for (size_t i = 0; i < count; i++) {
        const json_t *node = json_array_get(nodes, i),
                     *awaited = json_object_get(node, "waits_for");
        for (size_t k = 0; k < json_array_size(awaited); k++) {
            const size_t place = place_of(nodes, json_integer_value(json_array_get(awaited, k)));
            if (place < count && weights[place] == 0)
                weights[place] = 1;
        }
        if (!is_well(node))
            weights[i] = 2;
    }
}

/* So many as there are rows for. */
static bool choose_nodes(frame *f) {
    const size_t count = size_of(f, "nodes");
    unsigned char *weights = calloc(count + 1, sizeof *weights);
    size_t left = f->node_rows;
    f->stands_out = calloc(count + 1, sizeof *f->stands_out);
    if (weights != NULL && f->stands_out != NULL) {
        weigh_nodes(f, weights);
        for (int weight = 2; weight >= 0; weight--)
            for (size_t i = 0; i < count && left > 0; i++)
                if (weights[i] == weight) {
                    f->stands_out[i] = true;
                    left--;
                }
    }
    free(weights);
    return f->stands_out != NULL;
}

static void put_number(text_table *t, const char *format, double x)
    __attribute__((format(printf, 2, 0)));
static void put_number(text_table *t, const char *format, double x) {
    if (isnan(x))
        text_table_put(t, "-");
    else
        text_table_put(t, format, x);
}

static void put_ranks(text_table *t, const json_t *ranks) {
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < json_array_size(ranks) && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%" JSON_INTEGER_FORMAT,
                                 i > 0 ? ", " : "", json_integer_value(json_array_get(ranks, i)));
    text_table_put(t, "%s", list);
}

static void put_text(text_table *t, const char *raw) {
    char shown[LINE_BYTES];
    text_table_put(t, "%s", sl_text_show(shown, sizeof shown, raw, strlen(raw)));
}

static void left_out(const frame *f, size_t shown, size_t all) {
    if (shown < all)
        line(f, "... and %zu more", all - shown);
}

static void write_network(const frame *f) {
    const json_t *nodes = member(f, "nodes");
    const size_t count = json_array_size(nodes);
    text_table *t = text_table_open();
    text_table_column(t, ALIGN_RIGHT, 0, "", "rank");
    text_table_column(t, ALIGN_LEFT, 0, "", "does");
    text_table_column(t, ALIGN_RIGHT, 1, "", "round");
    text_table_column(t, ALIGN_RIGHT, 4, "", "since");
    text_table_column(t, ALIGN_RIGHT, 2, "", "loss");
    text_table_column(t, ALIGN_RIGHT, 3, "", "accuracy");
    text_table_column(t, ALIGN_LEFT, 0, "", "waits for");
    heading(f, "network", "");
    for (size_t i = 0; i < count; i++) {
        const json_t *node = json_array_get(nodes, i);
        if (!f->stands_out[i])
            continue;
        text_table_row(t);
        put_number(t, "%.0f", number(node, "rank"));
        put_text(t, text(node, "state"));
        put_number(t, "%.0f", number(node, "round"));
        put_number(t, "%.1f s", number(node, "still_s"));
        put_number(t, "%.4g", number(node, "loss"));
        put_number(t, "%.2f %%", 100 * number(node, "accuracy"));
        put_ranks(t, json_object_get(node, "waits_for"));
    }
    text_table_draw(t, f->out, f->room->width);
    text_table_close(&t);
    left_out(f, f->node_rows, count);
}

/* ---- curves ---- */

typedef struct curve {
    const char *name, *label, *with, *format; /* with: drawn on the scale of both */
    double times;
} curve;
static const curve curves[] = {
    {"loss", "loss", NULL, "%.4g", 1},
    {"accuracy", "accuracy", NULL, "%.2f %%", 100},
    {"distance", "distance", "predicted", "%.4g", 1},
    {"predicted", "predicted", "distance", "%.4g", 1},
    {"apart", "apart", NULL, "%.4g", 1},
    {"bytes", "sent", NULL, "%.2f MB", 1e-6},
};
enum { CURVES = sizeof curves / sizeof *curves };

static double last_of(const json_t *numbers) {
    for (size_t i = json_array_size(numbers); i > 0; i--)
        if (json_is_number(json_array_get(numbers, i - 1)))
            return json_number_value(json_array_get(numbers, i - 1));
    return NAN;
}

static bool is_known(const frame *f, const curve *c) {
    return !isnan(last_of(json_object_get(member(f, "curves"), c->name)));
}

static size_t count_curves(const frame *f) {
    size_t count = 0;
    for (int i = 0; i < CURVES; i++)
        count += is_known(f, &curves[i]);
    return count;
}

static void write_curve(const frame *f, const curve *c) {
    const json_t *all = member(f, "curves"), *numbers = json_object_get(all, c->name);
    const scale s = scale_of(numbers, c->with != NULL ? json_object_get(all, c->with) : NULL);
    char value[32];
    snprintf(value, sizeof value, c->format, c->times * last_of(numbers));
    fprintf(f->out, "%-*.*s%*s  ", LABEL_COLUMNS - 1, LABEL_COLUMNS - 1, c->label, VALUE_COLUMNS,
            value);
    put_curve(f->out, numbers, &s, marks_in(f, LABEL_COLUMNS + VALUE_COLUMNS + 1),
              f->room->is_unicode);
    fputc('\n', f->out);
}

static void write_curves(const frame *f) {
    heading(f, "curves",
            member(f, "curves") == NULL ? "in the run folder only"
            : count_curves(f) == 0      ? "nothing is recorded yet"
                                        : "");
    for (int i = 0; i < CURVES; i++)
        if (is_known(f, &curves[i]))
            write_curve(f, &curves[i]);
}

/* ---- rank by time ---- */

static double end_of(const json_t *strips) {
    double end_s = 0;
    for (size_t i = 0; i < json_array_size(strips); i++)
        end_s = fmax(end_s, last_of(json_object_get(json_array_get(strips, i), "until")));
    return end_s;
}

static void write_strip(const frame *f) {
    const json_t *strips = member(f, "strip");
    const double end_s = end_of(strips);
    char more[128];
    snprintf(more, sizeof more, "0 to %.0f s: %s", end_s, STRIP_MARKS);
    heading(f, "rank and time",
            strips == NULL ? "in the run folder only"
            : end_s == 0   ? "nothing is recorded yet"
                           : more);
    for (size_t i = 0; i < json_array_size(strips) && end_s > 0; i++) {
        const json_t *strip = json_array_get(strips, i);
        if (i < size_of(f, "nodes") && !f->stands_out[i])
            continue;
        fprintf(f->out, "%4.0f  ", number(strip, "rank"));
        put_strip(f->out, strip, end_s, marks_in(f, 6));
        fputc('\n', f->out);
    }
}

/* ---- edges ---- */

typedef struct row {
    const json_t *link;
    double weight;
} row;

/* Those that are waited for most come first; then those that lag. */
static int by_wait(const void *a, const void *b) {
    const json_t *one = ((const row *)a)->link, *two = ((const row *)b)->link;
    const double waits = fmax(0, number(one, "wait_share")),
                 theirs = fmax(0, number(two, "wait_share")), lags = fmax(0, number(one, "lag")),
                 their_lags = fmax(0, number(two, "lag"));
    if (waits != theirs)
        return waits < theirs ? 1 : -1;
    return (lags < their_lags) - (lags > their_lags);
}

/* NULL: out of memory. */
static row *sort_links(const frame *f) {
    const json_t *links = member(f, "links");
    const size_t count = json_array_size(links);
    row *rows = calloc(count + 1, sizeof *rows);
    for (size_t i = 0; i < count && rows != NULL; i++)
        rows[i] = (row){json_array_get(links, i),
                        number(json_array_get(member(f, "edges"), i), "weight")};
    if (rows != NULL && count > 0)
        qsort(rows, count, sizeof *rows, by_wait);
    return rows;
}

static void put_edge(text_table *t, const json_t *link, double weight) {
    text_table_row(t);
    text_table_put(t, "%.0f > %.0f", number(link, "from"), number(link, "to"));
    put_number(t, "%.0f", number(link, "lag"));
    put_number(t, "%.0f %%", 100 * number(link, "wait_share"));
    put_number(t, "%.2f", number(link, "mb_s"));
    put_number(t, "%.2f ms", 1000 * number(link, "round_trip_s"));
    put_number(t, "%.3g", weight);
    put_number(t, "%.0f", number(link, "reconnects"));
    put_text(t, text(link, "protection"));
}

static void write_edges(const frame *f) {
    static const struct {
        const char *name;
        int rank;
    } heads[] = {{"edge", 0},       {"lag", 2},    {"waits", 1}, {"MB/s", 3},
                 {"round trip", 4}, {"weight", 6}, {"again", 5}, {"protection", 7}};
    enum { HEADS = sizeof heads / sizeof *heads };
    const size_t count = size_of(f, "links");
    row *rows = sort_links(f);
    text_table *t = text_table_open();
    for (size_t i = 0; i < HEADS; i++)
        text_table_column(t, i + 1 == HEADS ? ALIGN_FILL : ALIGN_RIGHT, heads[i].rank, "",
                          heads[i].name);
    for (size_t i = 0; i < f->edge_rows && i < count && rows != NULL; i++)
        put_edge(t, rows[i].link, rows[i].weight);
    heading(f, "edges", "");
    text_table_draw(t, f->out, f->room->width);
    left_out(f, f->edge_rows, count);
    text_table_close(&t);
    free(rows);
}

/* ---- events ---- */

static void write_event(const frame *f, const json_t *event) {
    const double nodes = number(event, "nodes"), node = number(event, "node");
    char who[48] = "";
    if (nodes > 1)
        snprintf(who, sizeof who, "%.0f agents: ", nodes);
    else if (!isnan(node))
        snprintf(who, sizeof who, "agent %.0f: ", node);
    line(f, "%9.1f s  %s%s", number(event, "time"), who, text(event, "text"));
}

static void write_events(const frame *f) {
    const json_t *events = member(f, "events");
    const size_t count = json_array_size(events);
    heading(f, "events", events == NULL ? "in the run folder only" : "");
    for (size_t i = count - (f->event_rows < count ? f->event_rows : count); i < count; i++)
        write_event(f, json_array_get(events, i));
}

/* ---- all of it ---- */

/* "digits, d-psgd: round 813 of 1875; 3 of 4 nodes; running" */
static void write_first(const frame *f) {
    const json_t *run = member(f, "run"), *nodes = member(f, "nodes");
    double round = 0;
    char rounds[64] = "";
    for (size_t i = 0; i < json_array_size(nodes); i++)
        round = fmax(round, number(json_array_get(nodes, i), "round"));
    if (number(run, "rounds") > 0)
        snprintf(rounds, sizeof rounds, " of %.0f", number(run, "rounds"));
    line(f, "%s, %s: round %.0f%s; %.0f of %.0f nodes; %s%s%s", text(run, "name"),
         text(run, "algorithm"), round, rounds, number(run, "members"), number(run, "nodes"),
         text(run, "outcome"), text(run, "why")[0] != '\0' ? ": " : "", text(run, "why"));
}

static void write_notes(const frame *f) {
    const json_t *notes = json_object_get(member(f, "run"), "notes");
    for (size_t i = 0; i < json_array_size(notes); i++)
        line(f, "note: %s", json_string_value(json_array_get(notes, i)));
}

/* Each panel asks for its rows, and gives what it does not need to the others. */
static void share_lines(frame *f) {
    enum { HEADINGS = 5, TABLE_HEADS = 2, MORE = 2, PANELS = 4 };
    const size_t notes = json_array_size(json_object_get(member(f, "run"), "notes"));
    const size_t fixed = 1 + notes + HEADINGS + TABLE_HEADS + MORE + count_curves(f);
    size_t wants[PANELS] = {size_of(f, "nodes"), size_of(f, "strip"), size_of(f, "links"),
                            size_of(f, "events")},
           gets[PANELS] = {0};
    size_t left = f->room->height > fixed ? f->room->height - fixed : PANELS;
    for (bool gave = true; gave && left > 0;) {
        gave = false;
        for (int i = 0; i < PANELS && left > 0; i++)
            if (gets[i] < wants[i]) {
                gets[i]++;
                left--;
                gave = true;
            }
    }
    f->node_rows = wants[1] > 0 && gets[1] < gets[0] ? gets[1] : gets[0];
    f->edge_rows = gets[2];
    f->event_rows = f->room->height == SIZE_MAX && gets[3] > EVENTS_MAX ? EVENTS_MAX : gets[3];
}

void frame_write(FILE *out, const json_t *document, const frame_room *room) {
    frame f = {.out = out, .document = document, .room = room};
    share_lines(&f);
    if (!choose_nodes(&f))
        return;
    write_first(&f);
    write_notes(&f);
    write_network(&f);
    write_curves(&f);
    write_strip(&f);
    write_edges(&f);
    write_events(&f);
    free(f.stands_out);
}

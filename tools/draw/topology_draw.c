/* topology_draw.c - `starling topology draw`: a topology as one picture: its graph, its
 * eigenvalues, and how fast it agrees. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/file_kind.h"
#include "cli/patience.h"
#include "cli/tool.h"
#include "draw/picture.h"
#include "draw/topology_draw.h"

enum {
    TITLE_SIZE = 22,
    WIDTH = 1000,
    HEIGHT = 600,
    MARGIN = 30,
    GRAPH = 470,
    TOP = 84,
    RIGHT = 560
};

#define WIDE_LETTER 0.65 /* of a title, in sizes of its font */

/* ---- words ---- */

static void add(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t room, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
}

static void add_value(char *text, size_t room, const char *key, json_t *value) {
    add(text, room, ", %s", key);
    for (size_t i = 0; i < json_array_size(value); i++)
        add(text, room, "%s%lld",
            i == 0                      ? " "
            : strcmp(key, "sides") == 0 ? " × "
                                        : ", ",
            (long long)json_integer_value(json_array_get(value, i)));
    if (json_is_number(value))
        add(text, room, " %g", json_number_value(value));
    if (json_is_string(value))
        add(text, room, " %s", json_string_value(value));
}

/* "torus, sides 4 x 4": the parameters by the names that they have in a topology file. */
static void name_family(char *text, size_t room, const sl_topology *t, json_t *file) {
    static const char *const not_parameters[] = {"nodes", "family", "weights", "hash",
                                                 "provenance"};
    const sl_topology_spec *d = sl_topology_description(t);
    const char *key;
    json_t *value;
    text[0] = '\0';
    if (d->family == SL_FAMILY_EDGES) {
        add(text, room, sl_topology_period(t) > 1 ? "schedule of %u rounds" : "listed edges",
            sl_topology_period(t));
        return;
    }
    add(text, room, "%s", sl_family_describe(d->family)->name);
    json_t *expanded =
        json_object_get(file, "provenance"); /* of edges that a family's file lists */
    json_object_foreach(expanded != NULL ? expanded : file, key, value) {
        bool is_parameter = true;
        for (size_t i = 0; i < sizeof not_parameters / sizeof *not_parameters; i++)
            is_parameter = is_parameter && strcmp(key, not_parameters[i]) != 0;
        if (is_parameter)
            add_value(text, room, key, value);
    }
}

/* "16 nodes, 32 edges, degree 4, diameter 4, metropolis weights, symmetric" */
static void describe(char *text, size_t room, const picture *f) {
    const sl_topology_spec *d = sl_topology_description(f->topology);
    const sl_structure *r = &f->structure;
    const sl_stochasticity *s = &f->stochastic;
    text[0] = '\0';
    uint32_t nodes = sl_topology_nodes(f->topology), period = sl_topology_period(f->topology);
    add(text, room, "%u node%s · %llu edge%s", nodes, nodes == 1 ? "" : "s",
        (unsigned long long)r->edges, r->edges == 1 ? "" : "s");
    if (period > 1)
        add(text, room, " in %u rounds", period);
    add(text, room, " · degree %u", r->degree_min);
    if (r->degree_max > r->degree_min)
        add(text, room, " to %u", r->degree_max);
    if (r->diameter.low == r->diameter.high)
        add(text, room, " · diameter %llu", (unsigned long long)r->diameter.low);
    add(text, room, " · %s weights",
        d->weighting == SL_WEIGHTING_EXPLICIT ? "own" : sl_weighting_name(d->weighting, d->lazy));
    add(text, room, " · %s",
        s->row && s->column ? s->symmetric     ? "symmetric"
                              : s->nonnegative ? "doubly stochastic"
                                               : "rows and columns sum to 1"
        : s->row            ? "rows sum to 1"
                            : "columns sum to 1");
}

/* ---- the page ---- */

static void tile(svg *s, double x, const char *label, const char *value) {
    svg_text(s, (svg_point){x, TOP + 4}, &(svg_font){.size = SMALL_SIZE, .colour = MUTED}, "%s",
             label);
    svg_text(s, (svg_point){x, TOP + 27}, &(svg_font){.size = 18, .colour = INK, .bold = true},
             "%s", value);
}

static void tiles(svg *s, const picture *f) {
    double step = (WIDTH - MARGIN - RIGHT) / 4.0;
    bool schedule = sl_topology_period(f->topology) > 1;
    char value[SVG_NUMBER_MAX];
    svg_number(value, f->rho_round);
    tile(s, RIGHT, schedule ? "ρ per round" : "ρ", value);
    svg_number(value, schedule ? 1 - f->rho_round : f->spectrum.gap);
    tile(s, RIGHT + step, schedule ? "gap per round" : "gap 1 − ρ", value);
    if (f->exact_after > 0)
        snprintf(value, sizeof value, "%u, exact", f->exact_after);
    else if (isfinite(f->rounds))
        svg_number(value, ceil(f->rounds));
    else
        snprintf(value, sizeof value, "never");
    tile(s, RIGHT + 2 * step, "rounds to 10^{−6}", value);
    svg_number(value, f->traffic.sent_mean);
    tile(s, RIGHT + 3 * step, "models sent", value);
}

static int draw(const picture *f, const char *path, sl_error *error) {
    char name[256], facts[512];
    svg *s;
    bool listed = sl_topology_description(f->topology)->family ==
                  SL_FAMILY_EDGES; /* nothing to name, and perhaps much to write */
    char *text = listed ? NULL : sl_topology_json(f->topology);
    json_t *file = text != NULL ? json_loads(text, 0, NULL) : NULL;
    name_family(name, sizeof name, f->topology, file);
    describe(facts, sizeof facts, f);
    json_decref(file);
    free(text);
    int result = svg_open(&s, path, WIDTH, HEIGHT, name, facts, error);
    if (result != 0)
        return result;
    double fitting = (WIDTH - 2 * MARGIN) / (WIDE_LETTER * (double)strlen(name));
    svg_text(s, (svg_point){MARGIN, 38},
             &(svg_font){.size = fmin(TITLE_SIZE, fitting), .colour = INK, .bold = true}, "%s",
             name);
    svg_text(s, (svg_point){MARGIN, 60}, &(svg_font){.size = HEADING_SIZE, .colour = MUTED}, "%s",
             facts);
    panel_graph(s, f, (box){MARGIN, TOP, GRAPH, GRAPH});
    panel_graph_legend(s, f, (svg_point){MARGIN + GRAPH / 2.0, HEIGHT - 22});
    tiles(s, f);
    panel_spectrum(s, f, (box){RIGHT, 142, WIDTH - MARGIN - RIGHT, 158});
    panel_curve(s, f, (box){RIGHT, 326, WIDTH - MARGIN - RIGHT, HEIGHT - 326 - 14});
    return svg_close(&s, error);
}

static int draw_topology(const sl_topology *t, const char *path, sl_error *error) {
    picture f;
    int result = picture_gather(&f, t, error);
    if (result != 0)
        return result;
    result = draw(&f, path, error);
    picture_free(&f);
    return result;
}

/* A topology file, or an experiment's topology. */
static int draw_file(const char *file, const char *path) {
    sl_topology *t = NULL;
    sl_experiment *experiment = NULL;
    sl_error error = {0};
    patience *p = patience_begin("drawing %s", file);
    int result = is_topology_file(file) ? sl_topology_load(&t, file, &error)
                                        : sl_experiment_load_watched(&experiment, file, NULL, 0,
                                                                     patience_watch(), &error),
        code = TOOL_USAGE;
    if (result == 0) {
        result = draw_topology(experiment != NULL ? experiment->topology : t, path, &error);
        code = TOOL_FAILED;
    }
    patience_end(p);
    sl_topology_close(&t);
    sl_experiment_close(&experiment);
    if (result == 0)
        return TOOL_OK;
    complain("%s", error.text);
    return code;
}

typedef struct request {
    const char *out;
} request;

static int run(void *asked, char *const *operands, size_t count) {
    const request *r = asked;
    (void)count;
    if (r->out == NULL) {
        complain("topology draw needs -o PICTURE.svg (starling topology draw --help)");
        return TOOL_USAGE;
    }
    const char *ending = strrchr(r->out, '.');
    bool device = strncmp(r->out, "/dev/", 5) == 0;
    if (device || (ending != NULL && strcmp(ending, ".svg") == 0))
        return draw_file(operands[0], r->out);
    complain("topology draw: -o %s: pictures are SVG; the name must end in .svg", r->out);
    return TOOL_USAGE;
}

static const command_option option_picture = {
    "output",
    .letter = 'o',
    .argument = "PICTURE.svg",
    .needed = true,
    .help = "where it goes; an existing file is replaced",
    .take = take_text,
    .offset = offsetof(request, out),
    .offer = OFFER_FILE,
};
static const command_option *const option_rows[] = {&option_picture, NULL};

const command topology_draw_command = {
    .name = "topology draw",
    .summary = "draw the graph, its spectrum, and how fast it agrees",
    OPERAND_FILE("FILE"),
    .text = "Draws a topology, or that of an experiment: the graph, the eigenvalues with the "
            "spectral gap, and how fast nodes that average numbers agree. Lines are as wide as "
            "their weights; arrows show directed edges; a schedule is drawn round by round. Above "
            "500 nodes the picture shows the pattern of the matrix.",
    .options = option_rows,
    .request_bytes = sizeof(request),
    .run = run,
};

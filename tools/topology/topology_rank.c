/* topology_rank.c - `starling topology rank`: which topology agrees soonest on a cluster. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/patience.h"
#include "cli/text_table.h"
#include "starling/rank.h"
#include "topology/topology.h"

typedef struct request {
    sl_rank_settings settings;
    uint64_t parameters, top, degree_max;
    const char *links, *compute; /* compute: milliseconds, one for all nodes or one for each */
    link_profile link;
    bool linked, json, wide;
} request;

/* Bytes of a parameter in a dense message. */
enum { PARAMETER_BYTES = 4 };

static int take_nodes(void *asked, const command_option *row, const char *text) {
    uint64_t nodes = 0;
    const command_option whole = {row->name, .min = 2, .max = SL_RANK_NODES_MAX};
    int code = take_whole(&nodes, &whole, text);
    ((request *)asked)->settings.nodes = (uint32_t)nodes;
    return code;
}

static int take_one_link(void *asked, const command_option *row, const char *text) {
    (void)row;
    request *r = asked;
    r->linked = true;
    return take_link(&r->link, text);
}

static int take_parallel(void *asked, const command_option *row, const char *text) {
    (void)row;
    (void)text;
    ((request *)asked)->settings.port = SL_PORT_PARALLEL;
    return TOOL_OK;
}

/* ---- the table ---- */

static const char *weights_of(const sl_candidate *c) {
    return c->weighting == SL_WEIGHTING_EXPLICIT ? "its own"
                                                 : sl_weighting_name(c->weighting, false);
}

/* "-" if unknown. */
static void put_number(text_table *t, int digits, double value) {
    if (isnan(value))
        text_table_put(t, "-");
    else
        text_table_put(t, "%.*g", digits, value);
}

static void add_columns(text_table *t, double epsilon) {
    char text[32];
    snprintf(text, sizeof text, "%g", epsilon);
    text_table_column(t, ALIGN_RIGHT, 0, "", "");
    text_table_column(t, ALIGN_LEFT, 0, "", "topology");
    text_table_column(t, ALIGN_LEFT, 2, "", "weights");
    text_table_column(t, ALIGN_RIGHT, 0, "", "rounds");
    text_table_column(t, ALIGN_RIGHT, 3, "MB a", "round");
    text_table_column(t, ALIGN_RIGHT, 4, "s a", "round");
    text_table_column(t, ALIGN_RIGHT, 0, "s to", text);
    text_table_column(t, ALIGN_RIGHT, 6, "", "gap");
    text_table_column(t, ALIGN_RIGHT, 5, "", "degree");
    text_table_column(t, ALIGN_FILL, 1, "", "why");
}

static void put_candidate(text_table *t, size_t place, const sl_candidate *c) {
    text_table_row(t);
    text_table_put(t, "%zu.", place + 1);
    text_table_put(t, "%s", c->name);
    text_table_put(t, "%s", weights_of(c));
    put_number(t, 6, c->rounds);
    put_number(t, 4, 1e-6 * c->bytes);
    put_number(t, 4, c->round_seconds);
    put_number(t, 4, c->seconds);
    put_number(t, 4, c->gap);
    text_table_put(t, "%u", c->degree_max);
    text_table_put(t, "%s", c->why);
}

/* Those that do not fit what was asked for, a line each. */
static void print_left_out(const sl_ranking *ranking, size_t width) {
    const sl_left_out *left_out;
    const size_t count = sl_ranking_left_out(ranking, &left_out);
    text_table *t = count > 0 ? text_table_open() : NULL;
    if (t == NULL)
        return;
    text_table_column(t, ALIGN_LEFT, 0, "", "left out");
    text_table_column(t, ALIGN_FILL, 0, "", "since");
    for (size_t i = 0; i < count; i++) {
        text_table_row(t);
        text_table_put(t, "%s", left_out[i].name);
        text_table_put(t, "%s", left_out[i].why);
    }
    putchar('\n');
    text_table_print(t, width);
    text_table_close(&t);
}

static void print_ranking(const sl_ranking *ranking, size_t count, const request *r) {
    const char *const *notes;
    size_t note_count = sl_ranking_notes(ranking, &notes), width = output_width(r->wide);
    text_table *t = text_table_open();
    if (t == NULL)
        return;
    add_columns(t, r->settings.epsilon);
    for (size_t i = 0; i < count; i++)
        put_candidate(t, i, sl_ranking_at(ranking, i));
    text_table_print(t, width);
    text_table_close(&t);
    print_left_out(ranking, width);
    putchar('\n');
    for (size_t i = 0; i < note_count; i++)
        print_wrapped("- ", notes[i], width);
}

/* ---- JSON ---- */

/* null if unknown or infinite. */
static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *candidate_json(const sl_candidate *c) {
    char *text = sl_topology_json(c->topology);
    json_t *topology = text != NULL ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return json_pack("{ss ss so sf sf so so so si sb ss so}", "name", c->name, "weights",
                     weights_of(c), "rounds", number(c->rounds), "bytes", c->bytes, "round_seconds",
                     c->round_seconds, "seconds", number(c->seconds), "gap", number(c->gap),
                     "exact_after", c->exact_after > 0 ? json_integer(c->exact_after) : json_null(),
                     "degree_max", (int)c->degree_max, "relabelled", c->relabelled, "why", c->why,
                     "topology", topology != NULL ? topology : json_null());
}

static json_t *left_out_json(const sl_ranking *ranking) {
    const sl_left_out *left_out;
    const size_t count = sl_ranking_left_out(ranking, &left_out);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, json_pack("{ss ss}", "name", left_out[i].name, "why", left_out[i].why));
    return list;
}

static int print_json(const sl_ranking *ranking, size_t count, const request *r) {
    const char *const *notes;
    size_t note_count = sl_ranking_notes(ranking, &notes);
    json_t *candidates = json_array(), *why = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(candidates, candidate_json(sl_ranking_at(ranking, i)));
    for (size_t i = 0; i < note_count; i++)
        json_array_append_new(why, json_string(notes[i]));
    json_t *root =
        json_pack("{si sI sf so so so}", "nodes", (int)r->settings.nodes, "parameters",
                  (json_int_t)r->parameters, "epsilon", r->settings.epsilon, "candidates",
                  candidates, "left_out", left_out_json(ranking), "notes", why);
    int failed =
        root == NULL || json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) != 0;
    putchar('\n');
    json_decref(root);
    return failed ? TOOL_FAILED : TOOL_OK;
}

/* ---- all together ---- */

static int open_links(sl_links **out, const request *r, sl_error *error) {
    if (r->links != NULL) {
        int result = sl_links_load(out, r->links, error);
        if (result == 0 && sl_links_nodes(*out) != r->settings.nodes)
            result =
                sl_fail(error, SL_EINVAL, "%s: has %u nodes, and --nodes is %u; they must be equal",
                        r->links, sl_links_nodes(*out), r->settings.nodes);
        return result;
    }
    return sl_links_uniform(out, r->settings.nodes,
                            (sl_link){r->link.bandwidth_mbit, r->link.latency_ms}, error);
}

static int open_ranking(sl_ranking **out, const sl_rank_settings *from, sl_error *error) {
    patience *p = patience_begin("ranking topologies of %u nodes", from->nodes);
    sl_rank_settings settings = *from;
    settings.watch = patience_watch();
    int result = sl_ranking_open(out, &settings, error);
    patience_end(p);
    return result;
}

static const double compute_ms_max = 1e9;

/* (nodes) seconds. */
static int read_compute(double **out, const request *r, sl_error *error) {
    const uint32_t nodes = r->settings.nodes;
    const char *at = r->compute;
    char *after;
    double *seconds = calloc(nodes, sizeof *seconds);
    uint32_t count = 0;
    *out = seconds;
    if (seconds == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    for (; *at != '\0'; at = *after == ',' && after[1] != '\0' ? after + 1 : after) {
        const double ms = strtod(at, &after);
        if (after == at || !(ms >= 0 && ms <= compute_ms_max) || (*after != ',' && *after != '\0'))
            return sl_fail(error, SL_EINVAL,
                           "--compute: '%s' is not milliseconds from 0 to 1e9, one number, or one "
                           "for each node: 50,50,200",
                           at);
        if (count < nodes)
            seconds[count] = 1e-3 * ms;
        count++;
    }
    for (uint32_t i = 1; i < nodes && count == 1; i++)
        seconds[i] = seconds[0];
    return count == 1 || count == nodes
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "--compute: %u numbers for %u nodes; give one for each, "
                         "or one for all",
                         count, nodes);
}

static int rank(request *r) {
    sl_links *links = NULL;
    sl_ranking *ranking = NULL;
    double *compute = NULL;
    sl_error error = {0};
    int result = open_links(&links, r, &error), code = TOOL_OK;
    if (result == 0)
        result = read_compute(&compute, r, &error);
    r->settings.links = links;
    r->settings.compute_s = compute;
    if (result == 0)
        result = open_ranking(&ranking, &r->settings, &error);
    if (result != 0) {
        complain("%s", error.text);
        code = TOOL_USAGE;
    } else {
        size_t count =
            sl_ranking_count(ranking) < r->top ? sl_ranking_count(ranking) : (size_t)r->top;
        if (r->json)
            code = print_json(ranking, count, r);
        else
            print_ranking(ranking, count, r);
    }
    sl_ranking_close(&ranking);
    sl_links_close(&links);
    free(compute);
    return code;
}

/* ---- the command ---- */

static void set_defaults(void *asked) {
    request *r = asked;
    r->parameters = 1000000;
    r->top = UINT32_MAX;
    r->compute = "0";
    r->link = (link_profile){.bandwidth_mbit = 10000, .latency_ms = 0.1};
    sl_rank_defaults(&r->settings);
}

static int run(void *asked, char *const *operands, size_t count) {
    request *r = asked;
    (void)operands;
    (void)count;
    r->settings.degree_max = (uint32_t)r->degree_max;
    r->settings.message_bytes = PARAMETER_BYTES * (double)r->parameters;
    if (r->settings.nodes > 0 && (r->links == NULL || !r->linked))
        return rank(r);
    complain("topology rank takes --nodes N, and one of --links and --link at most (starling "
             "topology rank --help)");
    return TOOL_USAGE;
}

static const command_option
    option_nodes = {"nodes", .argument = "N", .needed = true, .help = "how many nodes, 2 to 100000",
                    .take = take_nodes},
    option_links = {"links",
                    .argument = "FILE",
                    .help = "bandwidth and latency of each pair of nodes; also tries to number "
                            "the nodes along fast links",
                    .take = take_text,
                    .offset = offsetof(request, links),
                    .offer = OFFER_FILE},
    option_link = {"link", .argument = "MBIT:MS", .otherwise = "10000:0.1",
                   .help = "all links alike: bandwidth in Mbit/s and latency in ms",
                   .take = take_one_link},
    option_compute = {"compute",
                      .argument = "MS[,MS...]",
                      .otherwise = "0",
                      .help = "milliseconds that a gradient takes: of all nodes, or of each; a "
                              "round lasts as long as its slowest node computes and exchanges",
                      .take = take_text,
                      .offset = offsetof(request, compute)},
    option_parameters = {"parameters",
                         .argument = "D",
                         .otherwise = "1000000",
                         .help = "of the model, 4 bytes each",
                         .take = take_whole,
                         .offset = offsetof(request, parameters),
                         .min = 1,
                         .max = 1000000000000000},
    option_epsilon = {"epsilon",
                      .argument = "E",
                      .otherwise = "0.001",
                      .help = "distance to agreement to be reached, as a fraction of the first",
                      .take = take_fraction,
                      .offset = offsetof(request, settings.epsilon)},
    option_parallel = {"parallel",
                       .help = "each edge has a port of its own; otherwise all that a node sends, "
                               "and all that it receives, shares one",
                       .take = take_parallel},
    option_max_degree = {"max-degree",
                         .argument = "N",
                         .help = "only where a node sends N messages a round, or fewer",
                         .take = take_whole,
                         .offset = offsetof(request, degree_max),
                         .min = 1,
                         .max = SL_RANK_NODES_MAX},
    option_undirected = {"undirected", .help = "only where every edge leads both ways",
                         .take = take_switch, .offset = offsetof(request, settings.undirected)},
    option_fixed = {"fixed",
                    .help = "only one symmetric W for all rounds, no schedules: choco-sgd, beer "
                            "and lead need it",
                    .take = take_switch, .offset = offsetof(request, settings.fixed)},
    option_seed = {"seed",
                   .argument = "S",
                   .otherwise = "1",
                   .help = "of random graphs",
                   .take = take_whole,
                   .offset = offsetof(request, settings.seed),
                   .max = INT64_MAX},
    option_top = {"top",
                  .argument = "K",
                  .help = "only the best K",
                  .take = take_whole,
                  .offset = offsetof(request, top),
                  .min = 1,
                  .max = UINT32_MAX},
    option_json = {"json",
                   .help = "for programs, with the topology of each candidate as a topology file "
                           "has it",
                   .take = take_switch, .offset = offsetof(request, json)},
    option_own_wide = OPTION_WIDE(request);

static const command_option *const option_rows[] = {
    &option_nodes,   &option_links,    &option_link,       &option_compute,    &option_parameters,
    &option_epsilon, &option_parallel, &option_max_degree, &option_undirected, &option_fixed,
    &option_seed,    &option_top,      &option_json,       &option_own_wide,   NULL,
};

const command topology_rank_command = {
    .name = "topology rank",
    .summary = "which topology agrees soonest on a cluster",
    .text = "Opens every family that fits N nodes, with suitable parameters and the weights that "
            "agree soonest, and ranks them by the time that gossip averaging takes until the "
            "distance to agreement has shrunk to E, from the worst start: rounds times the time "
            "of a round.",
    .options = option_rows,
    .request_bytes = sizeof(request),
    .set_defaults = set_defaults,
    .run = run,
};

/* topology_rank.c - `starling topology rank`: which topology agrees soonest on a given cluster. */
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text_table.h"
#include "starling/rank.h"
#include "topology/topology.h"

static const char help[] =
    "usage: starling topology rank --nodes N [--links FILE | --link MBIT:MS] [--parameters D] "
    "[--epsilon E] [--parallel] [--seed S] [--top K] [--wide] [--json]\n"
    "\n"
    "Opens every family that fits N nodes, with suitable parameters and the weights that agree "
    "soonest, and ranks them by the time that gossip averaging takes\n"
    "until the distance to agreement has shrunk to E, from the worst start: rounds times the time "
    "of a round (computing not counted).\n"
    "\n"
    "  --nodes N        2 to 10000\n"
    "  --links FILE     bandwidth and latency of each pair of nodes; also tries to number the "
    "nodes along fast links\n"
    "  --link MBIT:MS   all links alike: bandwidth in Mbit/s and latency in ms (default "
    "10000:0.1)\n"
    "  --parameters D   of the model, 4 bytes each (default 1000000)\n"
    "  --epsilon E      above 0 and below 1 (default 0.001)\n"
    "  --parallel       each edge has a port of its own; otherwise all that a node sends, and all "
    "that it receives, shares one\n"
    "  --seed S         of random graphs (default 1)\n"
    "  --top K          only the best K\n"
    "  --wide           all columns, however wide the terminal\n"
    "  --json           for programs, with the topology of each candidate as a topology file has "
    "it\n"
    "  -h, --help       this text\n";

typedef struct request {
    sl_rank_settings settings;
    uint64_t parameters, top;
    const char *links;
    link_profile link;
    bool linked, json, wide, help;
} request;

/* Bytes of a parameter in a dense message. */
enum { PARAMETER_BYTES = 4 };

static int take_epsilon(double *out, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0 && value < 1)) {
        complain("--epsilon %s: expected a number above 0 and below 1", text);
        return TOOL_USAGE;
    }
    *out = value;
    return TOOL_OK;
}

static int take_nodes(request *r, const char *text) {
    uint64_t nodes;
    if (take_whole(&nodes, "nodes", text, 2, SL_RANK_NODES_MAX) != TOOL_OK)
        return TOOL_USAGE;
    r->settings.nodes = (uint32_t)nodes;
    return TOOL_OK;
}

static int take_option(request *r, int which) {
    switch (which) {
    case 'n':
        return take_nodes(r, optarg);
    case 'l':
        r->links = optarg;
        return TOOL_OK;
    case 'L':
        r->linked = true;
        return take_link(&r->link, optarg);
    case 'p':
        return take_whole(&r->parameters, "parameters", optarg, 1, 1000000000000000);
    case 'e':
        return take_epsilon(&r->settings.epsilon, optarg);
    case 'P':
        r->settings.port = SL_PORT_PARALLEL;
        return TOOL_OK;
    case 's':
        return take_whole(&r->settings.seed, "seed", optarg, 0, INT64_MAX);
    case 't':
        return take_whole(&r->top, "top", optarg, 1, UINT32_MAX);
    case 'j':
        r->json = true;
        return TOOL_OK;
    case 'w':
        r->wide = true;
        return TOOL_OK;
    case 'h':
        r->help = true;
        return TOOL_OK;
    default: /* getopt has written the line */
        return TOOL_USAGE;
    }
}

static int take_arguments(request *r, int argc, char **argv) {
    static const struct option known[] = {
        {"nodes", required_argument, NULL, 'n'},   {"links", required_argument, NULL, 'l'},
        {"link", required_argument, NULL, 'L'},    {"parameters", required_argument, NULL, 'p'},
        {"epsilon", required_argument, NULL, 'e'}, {"parallel", no_argument, NULL, 'P'},
        {"seed", required_argument, NULL, 's'},    {"top", required_argument, NULL, 't'},
        {"json", no_argument, NULL, 'j'},          {"wide", no_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},          {0}};
    *r = (request){.parameters = 1000000,
                   .top = UINT32_MAX,
                   .link = {.bandwidth_mbit = 10000, .latency_ms = 0.1}};
    sl_rank_defaults(&r->settings);
    argv[0] = (char *)"starling"; /* what getopt puts before its error lines */
    int which;
    while ((which = getopt_long(argc, argv, "h", known, NULL)) != -1)
        if (take_option(r, which) != TOOL_OK)
            return TOOL_USAGE;
    if (r->help)
        return TOOL_OK;
    if (argc != optind || r->settings.nodes == 0 || (r->links != NULL && r->linked)) {
        complain("topology rank takes --nodes N, no file, and one of --links and --link at most "
                 "(starling topology rank --help)");
        return TOOL_USAGE;
    }
    r->settings.message_bytes = PARAMETER_BYTES * (double)r->parameters;
    return TOOL_OK;
}

/* ---- the table ---- */

static const char *weights_of(const sl_candidate *c) {
    return c->weighting == SL_WEIGHTING_EXPLICIT ? "its own"
                                                 : sl_weighting_name(c->weighting, false);
}

/* "-" where it is not known. */
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
    putchar('\n');
    for (size_t i = 0; i < note_count; i++)
        print_wrapped("- ", notes[i], width);
}

/* ---- JSON ---- */

/* JSON has no word for what is not known or never comes: null. */
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

static int print_json(const sl_ranking *ranking, size_t count, const request *r) {
    const char *const *notes;
    size_t note_count = sl_ranking_notes(ranking, &notes);
    json_t *candidates = json_array(), *why = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(candidates, candidate_json(sl_ranking_at(ranking, i)));
    for (size_t i = 0; i < note_count; i++)
        json_array_append_new(why, json_string(notes[i]));
    json_t *root = json_pack("{si sI sf so so}", "nodes", (int)r->settings.nodes, "parameters",
                             (json_int_t)r->parameters, "epsilon", r->settings.epsilon,
                             "candidates", candidates, "notes", why);
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

static int rank(request *r) {
    sl_links *links = NULL;
    sl_ranking *ranking = NULL;
    sl_error error = {0};
    int result = open_links(&links, r, &error), code = TOOL_OK;
    r->settings.links = links;
    if (result == 0)
        result = sl_ranking_open(&ranking, &r->settings, &error);
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
    return code;
}

int topology_rank(int argc, char **argv) {
    request r;
    int code = take_arguments(&r, argc, argv);
    if (code == TOOL_OK && r.help)
        fputs(help, stdout);
    else if (code == TOOL_OK)
        code = rank(&r);
    return code;
}

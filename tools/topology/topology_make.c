/* topology_make.c - `starling topology make`: writes the topology file of a family, or of a graph
 * that another program wrote.
 *
 * The arguments, or the graph, become the JSON object of such a file, and the library reads it. So
 * names, limits and defaults stand in one place. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/patience.h"
#include "foreign/graph_file.h"
#include "starling/text.h"
#include "topology/topology.h"

typedef struct request {
    json_t *description;
    const char *out;  /* NULL: standard output */
    const char *from; /* a file of another program; NULL: a family */
    bool expand, directed;
} request;

/* A number, a list of numbers, or else a name. */
static json_t *value_of(const char *text) {
    char *typed = sl_text_typed(text), *list = NULL;
    if (strchr(text, ',') != NULL && text[0] != '[' && typed != NULL &&
        asprintf(&list, "[%s]", typed) < 0)
        list = NULL;
    json_t *value = typed != NULL ? json_loads(list ? list : typed, JSON_DECODE_ANY, NULL) : NULL;
    free(typed);
    free(list);
    return value ? value : json_string(text);
}

static int take_parameter(void *asked, const char *name, const char *text) {
    request *r = asked;
    char key[32];
    snprintf(key, sizeof key, "%s", name);
    for (char *c = key; *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c;
    if (json_object_get(r->description, key) != NULL) {
        complain("topology make: --%s is given twice", name);
        return TOOL_USAGE;
    }
    json_t *value = strcmp(key, "weights") == 0 ? json_string(text) : value_of(text);
    if (json_object_set_new(r->description, key, value) == 0)
        return TOOL_OK;
    complain("topology make: --%s %s: cannot be understood", name, text);
    return TOOL_USAGE;
}

/* An option that has a row of its own. */
static int take_described(void *asked, const command_option *row, const char *text) {
    return take_parameter(asked, row->name, text);
}

static int describe_family(char **json, const request *r, sl_error *error) {
    *json = json_dumps(r->description, 0);
    return *json != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory");
}

static int describe_file(char **json, const request *r, sl_error *error) {
    const char *weights = json_string_value(json_object_get(r->description, "weights")),
               *links = json_string_value(json_object_get(r->description, "links"));
    graph_file graph;
    int result = graph_file_read(&graph, r->from, r->directed, error);
    if (result == 0 && (result = graph_file_json(json, &graph, weights, links, error)) != 0)
        sl_fail_prefix(error, result, "%s", r->from);
    graph_file_close(&graph);
    return result;
}

/* Edges' weights may have been written as W[from][to]; then all columns sum to 1 in place of rows.
 */
static void note_columns(const request *r, const sl_topology *topology) {
    const sl_stochasticity s = sl_topology_stochasticity(topology);
    if (r->from != NULL && !s.row && json_object_get(r->description, "weights") == NULL)
        complain("%s: columns of W sum to 1 and rows do not, which suits push-sum only; the weight "
                 "of an edge, or the entry of a matrix, is what the receiver gives the sender",
                 r->from);
}

static void note_mended(const char *where, const sl_topology *topology) {
    char text[256];
    if (sl_topology_mended(text, sizeof text, topology))
        complain("%s: %s", where, text);
}

static int make(char **out, const request *r, sl_error *error) {
    const char *where = r->from != NULL ? r->from : "topology make";
    char *json = NULL;
    sl_topology_spec spec;
    sl_topology *topology = NULL;
    const sl_topology_opening how = {.watch = patience_watch()};
    int result =
        r->from != NULL ? describe_file(&json, r, error) : describe_family(&json, r, error);
    if (result == 0)
        result = sl_topology_spec_parse(&spec, json, where, error);
    bool described = result == 0 && spec.nodes > SL_NODES_MAX && !r->expand;
    if (result == 0 && !described)
        result = sl_topology_parse_as(&topology, json, where, &how, error);
    free(json);
    if (result != 0)
        return result;
    if (!described) {
        note_columns(r, topology);
        note_mended(where, topology);
        if (r->expand && sl_topology_is_endless(topology))
            complain("%s: this schedule never repeats; its first %u rounds are listed", where,
                     sl_topology_period(topology));
    }
    *out = described   ? sl_topology_spec_json(&spec)
           : r->expand ? sl_topology_json_expanded(topology)
                       : sl_topology_json(topology);
    sl_topology_close(&topology);
    return *out ? 0 : sl_fail(error, SL_ENOMEM, "out of memory");
}

static int write_text(const char *path, const char *text) {
    FILE *to = path ? fopen(path, "w") : stdout;
    bool written = to != NULL && fprintf(to, "%s\n", text) > 0 && fflush(to) == 0;
    int problem = errno;
    if (path != NULL && to != NULL && fclose(to) != 0 && written) {
        written = false;
        problem = errno;
    }
    if (written)
        return TOOL_OK;
    complain("%s: %s", path ? path : "standard output", strerror(problem));
    return TOOL_FAILED;
}

static int make_and_write(const request *r) {
    sl_error error = {0};
    char *text = NULL;
    int code = TOOL_USAGE;
    patience *p = patience_begin("making the topology");
    const int result = make(&text, r, &error);
    patience_end(p);
    if (result == 0)
        code = write_text(r->out, text);
    else
        complain("%s", error.text);
    free(text);
    return code;
}

/* ---- the command ---- */

static char *weights_help(void) {
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    for (int i = 0; to != NULL && i < SL_WEIGHTINGS; i++)
        fprintf(to, "  %s  %s\n", sl_weighting_name((sl_weighting)i, false),
                sl_weighting_meaning((sl_weighting)i));
    if (to != NULL)
        fclose(to);
    return text;
}

static const char *weights_word(size_t index) {
    return index < SL_WEIGHTINGS ? sl_weighting_name((sl_weighting)index, false) : NULL;
}

static const char *family_word(size_t index) {
    int family = SL_FAMILY_EDGES + 1 + (int)index;
    return family < SL_FAMILIES ? sl_family_describe((sl_family)family)->name : NULL;
}

static void set_defaults(void *asked) {
    ((request *)asked)->description = json_object();
}

static void close_request(void *asked) {
    json_decref(((request *)asked)->description);
}

/* A file says everything but weights and links. */
static int refuse_parameters(const request *r) {
    const char *key;
    json_t *value;
    json_object_foreach(r->description, key, value) {
        if (strcmp(key, "weights") == 0 || strcmp(key, "links") == 0)
            continue;
        complain("topology make: --%s has no meaning for a file; the file says what the graph is",
                 key);
        return TOOL_USAGE;
    }
    return TOOL_OK;
}

static int run(void *asked, char *const *operands, size_t count) {
    request *r = asked;
    if (r->from != NULL && count == 0)
        return refuse_parameters(r) == TOOL_OK ? make_and_write(r) : TOOL_USAGE;
    if (r->from != NULL)
        complain("topology make: a family, %s, or a file, --from %s: one of both", operands[0],
                 r->from);
    else if (r->directed)
        complain("topology make: --directed is for --from; a family has its own directions");
    else if (count == 0)
        complain("topology make: which family? (starling topology make --help lists them; --from "
                 "FILE reads a graph of another program)");
    if (r->from != NULL || r->directed || count == 0)
        return TOOL_USAGE;
    json_object_set_new(r->description, "family", json_string(operands[0]));
    return make_and_write(r);
}

static const command_option
    option_nodes = {"nodes", .argument = "N", .help = "how many nodes a family has",
                    .take = take_described},
    option_from = {"from",
                   .argument = "FILE",
                   .help = "a graph of another program, in place of FAMILY: networkx's node-link "
                           "JSON, GraphML, GML, an edge list, Matrix Market, .npy or a matrix as "
                           "text, as its content shows",
                   .take = take_text,
                   .offset = offsetof(request, from),
                   .offer = OFFER_FILE},
    option_directed = {"directed", .help = "edges of an edge list lead one way",
                       .take = take_switch, .offset = offsetof(request, directed)},
    option_weights = {"weights",
                      .argument = "SCHEME",
                      .otherwise = "the family's or file's own",
                      .help = "the weights",
                      .take = take_described,
                      .offer = OFFER_WORDS,
                      .words = weights_word},
    option_links = {"links", .argument = "FILE",
                    .help = "bandwidths between nodes, from which --weights bandwidth follow; they "
                            "are copied into the topology file",
                    .take = take_described, .offer = OFFER_FILE},
    option_expand = {"expand",
                     .help = "list all edges with their weights instead of naming the family",
                     .take = take_switch, .offset = offsetof(request, expand)},
    option_file = {"out",
                   .letter = 'o',
                   .argument = "FILE",
                   .otherwise = "standard output",
                   .help = "where to",
                   .take = take_text,
                   .offset = offsetof(request, out),
                   .offer = OFFER_FILE};

static const command_option *const option_rows[] = {
    &option_nodes, &option_from,   &option_directed, &option_weights,
    &option_links, &option_expand, &option_file,     NULL,
};

const command topology_make_command = {
    .name = "topology make",
    .summary = "write the topology file of a family, or of a graph in a file",
    .operands = "FAMILY",
    .operands_max = 1,
    .offer = OFFER_WORDS,
    .words = family_word,
    .text = "Draws the graph, checks it and writes its topology file. Lists are written with "
            "commas, as in --sides 4,4. Above 1000000 nodes the graph is described without being "
            "drawn. With --from it reads the graph that another program wrote; numbers at its "
            "edges are weights if they leave each node one for itself, else --weights names "
            "others.",
    .options = option_rows,
    .other_options = "--PARAMETER VALUE",
    .sections = {{"families", sl_families_help},
                 {"weights, each also as lazy-..., half of it and half of the identity",
                  weights_help}},
    .request_bytes = sizeof(request),
    .set_defaults = set_defaults,
    .close = close_request,
    .take_other = take_parameter,
    .run = run,
};

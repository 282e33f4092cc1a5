/* topology_analyse.c - `starling topology analyse`: what is known of a topology, and whether it
 * meets conditions. */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/file_kind.h"
#include "cli/patience.h"
#include "run/forecast.h"
#include "topology/findings.h"
#include "topology/topology.h"
#include "topology/topology_report.h"

enum { REQUIREMENTS_MAX = 32 };
#define PARAMETERS_MAX 1000000000000000

typedef struct request {
    const char *file, *links, *without;
    const char *requirements[REQUIREMENTS_MAX];
    size_t requirement_count;
    uint64_t parameters;
    double epsilon;
    bool json, spectrum, wide;
} request;

static int take_requirement(void *asked, const command_option *row, const char *text) {
    (void)row;
    request *r = asked;
    sl_error error = {0};
    if (r->requirement_count == REQUIREMENTS_MAX)
        sl_fail(&error, SL_EINVAL, "--require %s: at most %d conditions", text, REQUIREMENTS_MAX);
    else if (requirement_parse(text, &error) == 0)
        r->requirements[r->requirement_count++] = text;
    if (error.code == 0)
        return TOOL_OK;
    complain("%s", error.text);
    return TOOL_USAGE;
}

/* ---- what is asked of which topology ---- */

typedef struct subject {
    sl_topology_spec spec;
    const sl_topology *topology; /* NULL: too large to be built */
    sl_topology *opened;         /* what it is, if not an experiment's */
    sl_experiment *experiment;   /* owned; NULL: a topology file */
    sl_links *links;             /* owned; NULL: no times */
    char note[NOTE_BYTES];       /* how it came about; "": as the file says */
} subject;

static void subject_close(subject *s) {
    sl_topology_close(&s->opened);
    sl_experiment_close(&s->experiment);
    sl_links_close(&s->links);
}

/* Reads the description of a topology that is too large to build. Errors in the file are left to
 * the full reader. */
static bool is_too_large(const char *path, sl_topology_spec *spec) {
    json_t *root = glance_at_file(path, 0);
    char *text = json_integer_value(json_object_get(root, "nodes")) > SL_NODES_MAX
                     ? json_dumps(root, 0)
                     : NULL;
    bool large = text != NULL && sl_topology_spec_parse(spec, text, path, NULL) == 0;
    free(text);
    json_decref(root);
    return large;
}

static int open_topology(subject *s, const char *path, sl_error *error) {
    const sl_topology_opening how = {.in_parts = true, .watch = patience_watch()};
    if (is_too_large(path, &s->spec))
        return 0;
    int result = sl_topology_load_as(&s->opened, path, &how, error);
    s->topology = s->opened;
    return result;
}

static int open_experiment(subject *s, const char *path, sl_error *error) {
    int result = sl_experiment_load_watched(&s->experiment, path, NULL, 0, patience_watch(), error);
    if (result == 0)
        s->topology = s->experiment->topology;
    return result;
}

/* ---- without some nodes ---- */

/* Strikes the nodes of "3,5" from members (nodes). */
static int strike(bool *is_member, uint32_t nodes, const char *text, sl_error *error) {
    for (const char *at = text;; at++) {
        char *end;
        const unsigned long long node = strtoull(at, &end, 10);
        if (!isdigit((unsigned char)*at) || (*end != '\0' && *end != ',') || node >= nodes ||
            !is_member[node])
            return sl_fail(error, SL_EINVAL,
                           "--without %s: expected different nodes from 0 to %u, such as 0,%u",
                           text, nodes - 1, nodes - 1);
        is_member[node] = false;
        if (*end == '\0')
            return 0;
        at = end;
    }
}

static void note_regrouping(subject *s, const char *without, uint32_t left,
                            const sl_regrouping *how) {
    const sl_topology_spec *spec = sl_topology_description(s->topology);
    int used = snprintf(s->note, sizeof s->note,
                        "Without %.200s, as a run goes on after their loss: ", without);
    if (how->is_family)
        snprintf(s->note + used, sizeof s->note - (size_t)used,
                 "family %s again, of the %u that are left.",
                 sl_family_describe(spec->family)->name, left);
    else
        snprintf(s->note + used, sizeof s->note - (size_t)used,
                 "the graph of the %u that are left, numbered anew in their order%s.", left,
                 how->bridges > 0 ? ", joined by new edges, since it would have been in parts"
                                  : "");
}

static int leave_out(subject *s, const char *without, sl_error *error) {
    const uint32_t nodes = s->topology != NULL ? sl_topology_nodes(s->topology) : 0;
    bool *is_member = malloc(nodes + 1);
    uint32_t *members = malloc((nodes + 1) * sizeof *members), count = 0;
    sl_topology *among = NULL;
    sl_regrouping how;
    int result = !is_member || !members
                     ? sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", nodes)
                 : nodes == 0 ? sl_fail(error, SL_EINVAL, "--without: the graph is too large")
                              : 0;
    if (result == 0) {
        memset(is_member, true, nodes);
        result = strike(is_member, nodes, without, error);
    }
    for (uint32_t i = 0; result == 0 && i < nodes; i++)
        if (is_member[i])
            members[count++] = i;
    if (result == 0)
        result = count == 0
                     ? sl_fail(error, SL_EINVAL, "--without %s: no node would be left", without)
                     : sl_topology_among(&among, &how, s->topology, members, count, error);
    if (result == 0) {
        note_regrouping(s, without, count, &how);
        sl_topology_close(&s->opened);
        s->topology = s->opened = among;
    }
    free(is_member);
    free(members);
    return result;
}

/* ---- links ---- */

static int open_own_links(subject *s, sl_error *error) {
    if (s->experiment == NULL || !forecast_is_wanted(&s->experiment->network))
        return 0;
    const sl_network_config *network = &s->experiment->network;
    const sl_link link = {network->bandwidth_mbit, network->latency_ms};
    return sl_links_uniform(&s->links, sl_topology_nodes(s->topology), link, error);
}

static int open_links(subject *s, const request *r, sl_error *error) {
    if (r->links == NULL)
        return open_own_links(s, error);
    int result = sl_links_load(&s->links, r->links, error);
    uint32_t nodes = s->topology ? sl_topology_nodes(s->topology) : s->spec.nodes;
    if (result != 0 || sl_links_nodes(s->links) == nodes)
        return result;
    return sl_fail(error, SL_EINVAL, "%s: nodes: %u, but the topology %s has %u", r->links,
                   sl_links_nodes(s->links), r->file, nodes);
}

static int open_subject(subject *s, const request *r, sl_error *error) {
    int result = is_topology_file(r->file) ? open_topology(s, r->file, error)
                                           : open_experiment(s, r->file, error);
    if (result == 0 && r->without != NULL && (result = leave_out(s, r->without, error)) != 0)
        sl_fail_prefix(error, result, "%s", r->file);
    return result == 0 ? open_links(s, r, error) : result;
}

/* ---- the verdict ---- */

static int judge(const findings *f, const sl_topology *topology, const request *r) {
    int code = TOOL_OK;
    sl_error error = {0};
    char text[NOTE_BYTES];
    if (!f->structure.connected) {
        sl_topology_say_parts(text, sizeof text, topology);
        complain("%s: the graph is not connected: %s", r->file, text);
        code = TOOL_FAILED;
    }
    for (size_t i = 0; i < r->requirement_count; i++) {
        if (requirement_check(f, r->requirements[i], text, &error) == 1)
            continue;
        complain("%s: --require %s: %s", r->file, r->requirements[i], text);
        code = TOOL_FAILED;
    }
    return code;
}

static int analyse(const request *r) {
    subject s = {0};
    findings f = {0};
    sl_error error = {0};
    patience *p = patience_begin("analysing %s", r->file);
    int result = open_subject(&s, r, &error), code = TOOL_USAGE;
    inquiry asked = {.topology = s.topology,
                     .spec = &s.spec,
                     .note = s.note,
                     .links = s.links,
                     .parameters = r->parameters,
                     .epsilon = r->epsilon,
                     .eigenvalues = r->spectrum};
    if (result == 0 && (result = findings_open(&f, &asked, &error)) != 0)
        sl_fail_prefix(&error, result, "%s", r->file);
    patience_end(p);
    if (result == 0 && r->json)
        result = findings_print_json(&f, &error);
    else if (result == 0)
        findings_print(&f, r->wide);
    if (result == 0)
        code = judge(&f, s.topology, r);
    else
        complain("%s", error.text);
    findings_close(&f);
    subject_close(&s);
    return code;
}

/* ---- the command ---- */

static void set_defaults(void *asked) {
    request *r = asked;
    r->parameters = 1000000;
    r->epsilon = 1e-3;
}

static int run(void *asked, char *const *operands, size_t count) {
    request *r = asked;
    (void)count;
    r->file = operands[0];
    return analyse(r);
}

static const command_option
    option_json = {"json", .help = "all of it as JSON, numbers with 17 digits", .take = take_switch,
                   .offset = offsetof(request, json)},
    option_require = {"require",
                      .argument = "CONDITION",
                      .repeats = true,
                      .help = "exit code 1 unless it holds",
                      .take = take_requirement,
                      .offer = OFFER_WORDS,
                      .words = requirement_name},
    option_parameters = {"parameters",
                         .argument = "D",
                         .otherwise = "1000000",
                         .help = "of the model, for the cost",
                         .take = take_whole,
                         .offset = offsetof(request, parameters),
                         .min = 1,
                         .max = PARAMETERS_MAX},
    option_without = {"without", .argument = "NODES",
                      .help = "what is left once these are lost, such as 3,5: as a run goes on "
                              "without them",
                      .take = take_text, .offset = offsetof(request, without)},
    option_links = {"links",
                    .argument = "FILE",
                    .otherwise = "an experiment's network.*",
                    .help = "bandwidth and latency between nodes, for times",
                    .take = take_text,
                    .offset = offsetof(request, links),
                    .offer = OFFER_FILE},
    option_epsilon = {"epsilon",
                      .argument = "E",
                      .otherwise = "0.001",
                      .help = "consensus error to be reached, as a fraction of the first",
                      .take = take_fraction,
                      .offset = offsetof(request, epsilon)},
    option_spectrum = {"spectrum", .help = "all eigenvalues", .take = take_switch,
                       .offset = offsetof(request, spectrum)},
    option_own_wide = OPTION_WIDE(request);

static const command_option *const option_rows[] = {
    &option_json,    &option_require,  &option_parameters, &option_links, &option_without,
    &option_epsilon, &option_spectrum, &option_own_wide,   NULL,
};

const command topology_analyse_command = {
    .name = "topology analyse",
    .summary = "say what it is, how fast it agrees and what a round costs",
    OPERAND_FILE("FILE"),
    .text = "Says of a topology, or that of an experiment, what kind of matrix W is, how the graph "
            "hangs together, how fast averaging with it agrees, and what a round costs. Families "
            "for which formulas are known may have up to 1000000000 nodes.",
    .options = option_rows,
    .sections = {{"conditions", requirements_help}},
    .request_bytes = sizeof(request),
    .set_defaults = set_defaults,
    .run = run,
};

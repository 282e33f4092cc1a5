/* topology_analyse.c - `starling topology analyse`: everything that is known of a topology, and
 * whether it is good enough. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/file_kind.h"
#include "run/forecast.h"
#include "topology/findings.h"
#include "topology/topology.h"
#include "topology/topology_report.h"

static const char help[] =
    "usage: starling topology analyse FILE [--json] [--require CONDITION ...] [--parameters D] "
    "[--links FILE] [--epsilon E] [--spectrum] [--wide]\n"
    "\n"
    "Says of the topology in FILE, a topology or an experiment, what kind of matrix W is, how the "
    "graph hangs together, how fast averaging with it agrees, and\n"
    "what a round costs. Families for which formulas are known may have up to 1000000000 nodes.\n"
    "\n"
    "  --json               all of it as JSON, numbers with 17 digits\n"
    "  --require CONDITION  exit code 1 unless it holds; may be repeated\n"
    "  --parameters D       of the model, for the cost (default 1000000)\n"
    "  --links FILE         bandwidth and latency between nodes, for times (default: an "
    "experiment's network.*)\n"
    "  --epsilon E          consensus error to be reached, as a fraction of the first (default "
    "0.001)\n"
    "  --spectrum           all eigenvalues\n"
    "  --wide               tables with all columns, however wide the terminal\n"
    "  --help               this text\n"
    "\n"
    "conditions:\n";

enum { REQUIREMENTS_MAX = 32 };
#define PARAMETERS_MAX 1000000000000000

typedef struct request {
    const char *file, *links;
    const char *requirements[REQUIREMENTS_MAX];
    size_t requirement_count;
    uint64_t parameters;
    double epsilon;
    bool json, spectrum, wide, help;
} request;

static int take_number(double *out, const char *name, const char *text, double min, double max) {
    char *end;
    double value = strtod(text, &end);
    if (end != text && *end == '\0' && value >= min && value <= max) {
        *out = value;
        return TOOL_OK;
    }
    complain("--%s %s: expected a number from %g to %g", name, text, min, max);
    return TOOL_USAGE;
}

static int take_requirement(request *r, const char *text) {
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

static int take_option(request *r, int which) {
    switch (which) {
    case 'j':
        r->json = true;
        return TOOL_OK;
    case 'r':
        return take_requirement(r, optarg);
    case 'p':
        return take_whole(&r->parameters, "parameters", optarg, 1, PARAMETERS_MAX);
    case 'l':
        r->links = optarg;
        return TOOL_OK;
    case 'e':
        return take_number(&r->epsilon, "epsilon", optarg, 1e-300, 0.999999);
    case 's':
        r->spectrum = true;
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
    static const struct option accepted[] = {{"json", no_argument, NULL, 'j'},
                                             {"require", required_argument, NULL, 'r'},
                                             {"parameters", required_argument, NULL, 'p'},
                                             {"links", required_argument, NULL, 'l'},
                                             {"epsilon", required_argument, NULL, 'e'},
                                             {"spectrum", no_argument, NULL, 's'},
                                             {"wide", no_argument, NULL, 'w'},
                                             {"help", no_argument, NULL, 'h'},
                                             {0}};
    *r = (request){.parameters = 1000000, .epsilon = 1e-3};
    argv[0] = (char *)"starling"; /* what getopt puts before its error lines */
    int which;
    while ((which = getopt_long(argc, argv, "h", accepted, NULL)) != -1)
        if (take_option(r, which) != TOOL_OK)
            return TOOL_USAGE;
    if (!r->help && argc - optind != 1) {
        complain(
            "topology analyse takes exactly one file, %d given (starling topology analyse --help)",
            argc - optind);
        return TOOL_USAGE;
    }
    r->file = argv[optind];
    return TOOL_OK;
}

/* ---- what is asked of which topology ---- */

typedef struct subject {
    sl_topology_spec spec;
    sl_topology *topology;     /* owned; NULL: too large to be built */
    sl_experiment *experiment; /* owned; NULL: a topology file */
    sl_links *links;           /* owned; NULL: no times */
} subject;

static void subject_close(subject *s) {
    if (s->experiment == NULL)
        sl_topology_close(&s->topology);
    sl_experiment_close(&s->experiment);
    sl_links_close(&s->links);
}

/* Described, and not more, when it is too large. What is wrong with a file is told by whoever reads
 * it in full. */
static bool is_too_large(const char *path, sl_topology_spec *spec) {
    json_t *root = json_load_file(path, 0, NULL);
    char *text = json_integer_value(json_object_get(root, "nodes")) > SL_NODES_MAX
                     ? json_dumps(root, 0)
                     : NULL;
    bool large = text != NULL && sl_topology_spec_parse(spec, text, path, NULL) == 0;
    free(text);
    json_decref(root);
    return large;
}

static int open_topology(subject *s, const char *path, sl_error *error) {
    if (is_too_large(path, &s->spec))
        return 0;
    return sl_topology_inspect(&s->topology, path, error);
}

static int open_experiment(subject *s, const char *path, sl_error *error) {
    int result = sl_experiment_load(&s->experiment, path, NULL, 0, error);
    if (result != 0)
        return result;
    const sl_network_config *network = &s->experiment->network;
    s->topology = s->experiment->topology;
    sl_link link = {network->bandwidth_mbit, network->latency_ms};
    return forecast_is_wanted(network)
               ? sl_links_uniform(&s->links, sl_topology_nodes(s->topology), link, error)
               : 0;
}

static int open_links(subject *s, const request *r, sl_error *error) {
    if (r->links == NULL)
        return 0;
    sl_links_close(&s->links);
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
    return result == 0 ? open_links(s, r, error) : result;
}

/* ---- the verdict ---- */

static int judge(const findings *f, const request *r) {
    int code = TOOL_OK;
    sl_error error = {0};
    char text[NOTE_BYTES];
    if (!f->structure.connected) {
        complain("%s: the graph is not connected: %u parts", r->file, f->structure.components);
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
    int result = open_subject(&s, r, &error), code = TOOL_USAGE;
    inquiry asked = {.topology = s.topology,
                     .spec = &s.spec,
                     .links = s.links,
                     .parameters = r->parameters,
                     .epsilon = r->epsilon,
                     .eigenvalues = r->spectrum};
    if (result == 0 && (result = findings_open(&f, &asked, &error)) != 0)
        sl_fail_prefix(&error, result, "%s", r->file);
    if (result == 0 && r->json)
        result = findings_print_json(&f, &error);
    else if (result == 0)
        findings_print(&f, r->wide);
    if (result == 0)
        code = judge(&f, r);
    else
        complain("%s", error.text);
    findings_close(&f);
    subject_close(&s);
    return code;
}

int topology_analyse(int argc, char **argv) {
    request r;
    int code = take_arguments(&r, argc, argv);
    if (code == TOOL_OK && r.help) {
        fputs(help, stdout);
        requirements_help(stdout);
    } else if (code == TOOL_OK) {
        code = analyse(&r);
    }
    return code;
}

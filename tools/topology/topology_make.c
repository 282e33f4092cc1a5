/* topology_make.c - `starling topology make`: a family's topology file.
 *
 * The arguments become the JSON object that a file would hold, and the library reads that: names,
 * limits and defaults stand in one place.
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/topology.h"

static const char help[] =
    "usage: starling topology make FAMILY --nodes N [--PARAMETER VALUE ...] [--weights SCHEME "
    "[--links FILE]] [--expand] [-o FILE]\n"
    "\n"
    "Draws the graph, checks it and writes its topology file. Lists are written with commas, as in "
    "--sides 4,4. Above 1000000 nodes the graph\n"
    "is described without being drawn.\n"
    "\n"
    "  --nodes N         how many nodes\n"
    "  --weights SCHEME  the weights (default: the family's own)\n"
    "  --links FILE      bandwidths between nodes, from which --weights bandwidth follow; they are "
    "copied into the topology file\n"
    "  --expand          list all edges with their weights instead of naming the family\n"
    "  -o, --out FILE    where to (default: standard output)\n"
    "  --help            this text and all families\n"
    "\n"
    "families:\n";

typedef struct request {
    json_t *description;
    const char *out; /* NULL: standard output */
    bool expand, help;
} request;

/* A number or a list where it is one, and a name otherwise. */
static json_t *value_of(const char *text) {
    char *list = NULL;
    if (strchr(text, ',') != NULL && text[0] != '[' && asprintf(&list, "[%s]", text) < 0)
        list = NULL;
    json_t *value = json_loads(list ? list : text, JSON_DECODE_ANY, NULL);
    free(list);
    return value ? value : json_string(text);
}

static int take_parameter(request *r, const char *name, const char *text) {
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

static int take_family(request *r, const char *name) {
    if (json_object_get(r->description, "family") != NULL) {
        complain("topology make: takes one family; '%s' is another", name);
        return TOOL_USAGE;
    }
    json_object_set_new(r->description, "family", json_string(name));
    return TOOL_OK;
}

/* Values are numbers, lists and names; none looks like an option. */
static bool has_value(int i, int argc, char **argv) {
    return i + 1 < argc && (argv[i + 1][0] != '-' || isdigit((unsigned char)argv[i + 1][1]) ||
                            strcmp(argv[i + 1], "-") == 0);
}

static int take_arguments(request *r, int argc, char **argv) {
    int code = TOOL_OK;
    for (int i = 1; i < argc && code == TOOL_OK; i++) {
        const char *name = argv[i];
        bool is_out = strcmp(name, "-o") == 0 || strcmp(name, "--out") == 0;
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
            r->help = true;
        } else if (strcmp(name, "--expand") == 0) {
            r->expand = true;
        } else if (name[0] != '-') {
            code = take_family(r, name);
        } else if (!is_out && strncmp(name, "--", 2) != 0) {
            complain("topology make: %s: unknown option (starling topology make --help)", name);
            code = TOOL_USAGE;
        } else if (!has_value(i, argc, argv)) {
            complain("topology make: %s: a value is missing", name);
            code = TOOL_USAGE;
        } else if (is_out) {
            r->out = argv[++i];
        } else {
            code = take_parameter(r, name + 2, argv[++i]);
        }
    }
    if (code == TOOL_OK && !r->help && json_object_get(r->description, "family") == NULL) {
        complain("topology make: which family? (starling topology make --help lists them)");
        code = TOOL_USAGE;
    }
    return code;
}

static int make(char **out, const request *r, sl_error *error) {
    char *json = json_dumps(r->description, 0);
    sl_topology_spec spec;
    sl_topology *topology = NULL;
    int result = json == NULL ? sl_fail(error, SL_ENOMEM, "out of memory")
                              : sl_topology_spec_parse(&spec, json, "topology make", error);
    bool described = result == 0 && spec.nodes > SL_NODES_MAX && !r->expand;
    if (result == 0 && !described)
        result = sl_topology_parse(&topology, json, "topology make", error);
    free(json);
    if (result != 0)
        return result;
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

static void print_help(void) {
    char *families = sl_families_help();
    fputs(help, stdout);
    if (families != NULL)
        fputs(families, stdout);
    free(families);
    printf("\nweights, each also as lazy-..., which is half of it and half of the identity:\n");
    for (int i = 0; i < SL_WEIGHTINGS; i++)
        printf("  %-22s %s\n", sl_weighting_name((sl_weighting)i, false),
               sl_weighting_meaning((sl_weighting)i));
}

int topology_make(int argc, char **argv) {
    request r = {.description = json_object()};
    sl_error error = {0};
    char *text = NULL;
    int code = take_arguments(&r, argc, argv);
    if (code == TOOL_OK && r.help) {
        print_help();
    } else if (code == TOOL_OK && make(&text, &r, &error) != 0) {
        complain("%s", error.text);
        code = TOOL_USAGE;
    } else if (code == TOOL_OK) {
        code = write_text(r.out, text);
    }
    free(text);
    json_decref(r.description);
    return code;
}

/* file_kind.c - see file_kind.h. */
#include "cli/file_kind.h"

#include <stdlib.h>

#include "starling/foreign.h"
#include "starling/text.h"

#define FILE_BYTES_MAX (256 << 20)

json_t *glance_at_file(const char *path, size_t flags) {
    char *text;
    if (sl_text_read(&text, path, FILE_BYTES_MAX, NULL) != 0)
        return NULL;
    json_t *root = json_loads(text, flags, NULL);
    free(text);
    return root;
}

/* W as numpy.save writes it. */
static bool is_npy_file(const char *path) {
    char *bytes;
    size_t size;
    if (sl_file_read(&bytes, &size, path, FILE_BYTES_MAX, NULL) != 0)
        return false;
    const bool is_npy = sl_graph_recognise(bytes, size) == SL_GRAPH_NPY;
    free(bytes);
    return is_npy;
}

bool is_topology_file(const char *path) {
    json_t *root = glance_at_file(path, 0);
    static const char *const experiments[] = {"topology", "algorithm", "optimizer", "model",
                                              "data",     "rounds",    "epochs"};
    static const char *const topologies[] = {"nodes",    "family", "edges",
                                             "schedule", "W",      "weights"};
    bool result = is_npy_file(path);
    for (size_t i = 0; i < sizeof topologies / sizeof *topologies; i++)
        result = result || json_object_get(root, topologies[i]) != NULL;
    for (size_t i = 0; i < sizeof experiments / sizeof *experiments; i++)
        result = result && json_object_get(root, experiments[i]) == NULL;
    json_decref(root);
    return result;
}

int refuse_topology_file(const char *path, sl_error *error) {
    if (!is_topology_file(path))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s: is a topology, not an experiment (starling topology analyse %s)", path,
                   path);
}

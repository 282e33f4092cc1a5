/* file_kind.c - see file_kind.h. */
#include "cli/file_kind.h"

#include <stdlib.h>

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

bool is_topology_file(const char *path) {
    json_t *root = glance_at_file(path, 0);
    static const char *const experiments[] = {"topology", "algorithm", "optimizer", "model",
                                              "data",     "rounds",    "epochs"};
    static const char *const topologies[] = {"nodes", "family", "edges", "schedule", "weights"};
    bool result = false;
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

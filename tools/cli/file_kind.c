/* file_kind.c - see file_kind.h. */
#include "cli/file_kind.h"

#include <jansson.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX (256 << 20)

bool is_topology_file(const char *path) {
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > FILE_BYTES_MAX)
        return false;
    json_t *root = json_load_file(path, 0, NULL);
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

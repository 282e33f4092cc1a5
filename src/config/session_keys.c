/* session_keys.c - what an experiment says that a session has no use for; see keys.h.
 *
 * A session's loop has its model, its data and its optimizer. The experiment says the rest:
 * algorithm, compressor, topology, transport.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "config/tree.h"

static const char *const unused[] = {"model.",
                                     "data.",
                                     "network.",
                                     "loss_limit",
                                     "optimizer.",
                                     "record.evaluate",
                                     "rounds",
                                     "epochs",
                                     "final_average",
                                     "record.parameters_at",
                                     "record.models",
                                     "record.safetensors",
                                     "record.tensorboard",
                                     "checkpoint.",
                                     "monitor."};
enum { UNUSED = sizeof unused / sizeof *unused };

static bool sends_in_order(json_t *root) {
    const char *way = json_string_value(sl_tree_get(root, "transport.overlap"));
    return way != NULL && strcmp(way, "none") != 0;
}

/* For times, sizes of messages, or their order. */
static bool uses_network(json_t *root, const sl_session_reading *how) {
    return how->simulates || sends_in_order(root) ||
           sl_tree_get(root, "algorithm.budget") != NULL ||
           sl_tree_get(root, "transport.buckets") != NULL;
}

static bool is_used(const char *path, json_t *root, const sl_session_reading *how) {
    return (how->records && strncmp(path, "record.", strlen("record.")) == 0) ||
           (uses_network(root, how) && strncmp(path, "network.", strlen("network.")) == 0);
}

static bool is_unused(const char *path, json_t *root, const sl_session_reading *how) {
    for (size_t i = 0; i < UNUSED && !is_used(path, root, how); i++)
        if (strncmp(path, unused[i], strlen(unused[i])) == 0)
            return true;
    return false;
}

/* rounds is no limit, and may be there for other uses of the file. */
static bool is_silent(const char *path) {
    return strcmp(path, "rounds") == 0 || strcmp(path, "epochs") == 0;
}

/* The user's optimizer has these: the node would add its own. */
static int refuse_optimizer(json_t *root, sl_error *error) {
    static const char *const refused[] = {"optimizer.momentum", "optimizer.weight_decay"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (json_number_value(sl_tree_get(root, refused[i])) != 0)
            return sl_fail(error, SL_EINVAL,
                           "%s: %g is not allowed in a session, whose own loop has the optimizer; "
                           "leave it out, or set it to 0",
                           refused[i], json_number_value(sl_tree_get(root, refused[i])));
    const char *device = json_string_value(sl_tree_get(root, "device"));
    if (device == NULL || strcmp(device, "auto") != 0)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "device: \"auto\" is not allowed in a session; it must say where the caller has "
                   "its parameters: \"cpu\", or a GPU, such as \"cuda:0\"");
}

static int warn_of_dropped(json_t *root, const sl_session_reading *how, char **warnings,
                           sl_error *error) {
    size_t bytes;
    FILE *out = open_memstream(warnings, &bytes);
    if (out == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    const bool quiet = sl_keys_are_all(root);
    sl_key_list keys;
    sl_experiment_keys(&keys);
    for (size_t i = 0; i < keys.count && !quiet; i++) {
        const char *path = keys.items[i]->path;
        if (is_unused(path, root, how) && !is_silent(path) && sl_tree_get(root, path) != NULL)
            fprintf(out, "warning: %s has no effect in a session\n", path);
    }
    return fclose(out) == 0 ? 0 : sl_fail(error, SL_ENOMEM, "out of memory");
}

/* Begin and end lie around forward and backward. */
static int check_overlaps(json_t *root, const sl_session_reading *how, sl_error *error) {
    return !how->overlap || !sends_in_order(root)
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "transport.overlap: options.overlap hides the exchange beside forward and "
                         "backward already; set one of them");
}

int sl_session_keys_drop(json_t *root, const sl_session_reading *how, char **warnings,
                         sl_error *error) {
    int result = refuse_optimizer(root, error);
    if (result == 0)
        result = check_overlaps(root, how, error);
    if (result == 0)
        result = warn_of_dropped(root, how, warnings, error);
    if (result != 0)
        return result;
    static const char *const groups[] = {"model",      "data",    "optimizer",
                                         "loss_limit", "rounds",  "epochs",
                                         "checkpoint", "monitor", "final_average"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        json_object_del(root, groups[i]);
    json_t *record = json_object_get(root, "record"), *topology = json_object_get(root, "topology");
    if (!uses_network(root, how))
        json_object_del(root, "network");
    if (!how->records) {
        json_object_del(record, "evaluate");
        json_object_del(record, "parameters_at");
        json_object_del(record, "safetensors");
    }
    const bool has_nodes = !json_is_object(topology) || json_object_get(topology, "nodes") != NULL;
    if (!has_nodes && how->nodes == 0)
        return sl_fail(error, SL_EINVAL,
                       "nothing says how many peers there are: start them with torchrun, mpirun, "
                       "srun or another launcher, or pass rank= and size= (in C options.rank and "
                       "options.nodes), or say \"nodes\" in the topology");
    if (!has_nodes)
        json_object_set_new(topology, "nodes", json_integer(how->nodes));
    if (sl_tree_set(root, "rounds", json_integer(1)) != 0 ||
        sl_tree_set(root, "optimizer.learning_rate", json_integer(1)) != 0)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    return 0;
}

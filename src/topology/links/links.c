/* links.c - the links of a cluster: a default, and exceptions sorted by pair. See starling/links.h.
 */
#include "topology/links/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "starling/graph.h"
#include "starling/text.h"
#include "topology/links/fields.h"

enum { FILE_BYTES_MAX = 256 << 20 };

typedef struct listed {
    uint32_t low, high; /* low < high */
    sl_link link;
} listed;

struct sl_links {
    uint32_t nodes;
    sl_link otherwise;
    size_t count;
    listed *all;   /* (count) sorted by (low, high) */
    double *ports; /* (nodes) in 10^6 bit/s; NULL: all as `otherwise` says */
};

static int by_pair(const void *x, const void *y) {
    const listed *a = x, *b = y;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return a->high < b->high ? -1 : a->high > b->high;
}

/* ---- reading ---- */

static int read_end(json_t *value, uint32_t nodes, uint32_t *out, sl_error *error) {
    json_int_t node = json_integer_value(value);
    if (!json_is_integer(value) || node < 0 || node >= nodes)
        return sl_fail(error, SL_EINVAL, "both ends must be nodes from 0 to %u", nodes - 1);
    *out = (uint32_t)node;
    return 0;
}

static int read_link(json_t *entry, const sl_links *links, listed *out, sl_error *error) {
    size_t size = json_array_size(entry);
    if (!json_is_array(entry) || size < 3 || size > 4)
        return sl_fail(error, SL_EINVAL,
                       "must be [i, j, bandwidth_mbit] or [i, j, bandwidth_mbit, latency_ms]");
    uint32_t i = 0, j = 0;
    int result = read_end(json_array_get(entry, 0), links->nodes, &i, error);
    if (result == 0)
        result = read_end(json_array_get(entry, 1), links->nodes, &j, error);
    if (result == 0 && i == j)
        result =
            sl_fail(error, SL_EINVAL, "is from node %u to itself; a link is between two nodes", i);
    if (result != 0)
        return result;
    *out = (listed){i < j ? i : j, i < j ? j : i, links->otherwise};
    json_t *numbers = json_pack("{sO}", "bandwidth_mbit", json_array_get(entry, 2));
    if (size == 4)
        json_object_set(numbers, "latency_ms", json_array_get(entry, 3));
    result = sl_field_number(numbers, "bandwidth_mbit", 0, SL_LINK_BANDWIDTH_MBIT_MAX,
                             &out->link.bandwidth_mbit, error);
    if (result == 0)
        result = sl_field_number(numbers, "latency_ms", 0, SL_LINK_LATENCY_MS_MAX,
                                 &out->link.latency_ms, error);
    json_decref(numbers);
    return result;
}

static int read_listed(sl_links *links, json_t *list, sl_error *error) {
    if (list == NULL)
        return 0;
    if (!json_is_array(list))
        return sl_fail(error, SL_EINVAL,
                       "links: must be a list of [i, j, bandwidth_mbit] or [i, j, bandwidth_mbit, "
                       "latency_ms]");
    links->count = json_array_size(list);
    links->all = calloc(links->count + 1, sizeof *links->all);
    if (links->all == NULL)
        return sl_fail(error, SL_ENOMEM, "links: out of memory for %zu links", links->count);
    for (size_t k = 0; k < links->count; k++)
        if (read_link(json_array_get(list, k), links, &links->all[k], error) != 0)
            return sl_fail_prefix(error, SL_EINVAL, "links[%zu]", k);
    qsort(links->all, links->count, sizeof *links->all, by_pair);
    for (size_t k = 1; k < links->count; k++)
        if (by_pair(&links->all[k - 1], &links->all[k]) == 0)
            return sl_fail(error, SL_EINVAL,
                           "links: the link between %u and %u is listed twice; it is the same in "
                           "both directions",
                           links->all[k].low, links->all[k].high);
    return 0;
}

static double faster(double a, double b) {
    return a == 0 || b == 0 ? 0 : a > b ? a : b;
}

static int open_ports(sl_links *links, sl_error *error) {
    if (links->count == 0)
        return 0;
    links->ports = malloc(links->nodes * sizeof *links->ports);
    if (links->ports == NULL)
        return sl_fail(error, SL_ENOMEM, "links: out of memory for %u nodes", links->nodes);
    for (uint32_t i = 0; i < links->nodes; i++)
        links->ports[i] = links->otherwise.bandwidth_mbit;
    for (size_t k = 0; k < links->count; k++) {
        const listed *l = &links->all[k];
        links->ports[l->low] = faster(links->ports[l->low], l->link.bandwidth_mbit);
        links->ports[l->high] = faster(links->ports[l->high], l->link.bandwidth_mbit);
    }
    return 0;
}

static int read_root(sl_links *links, json_t *root, sl_error *error) {
    static const char *const known[] = {"nodes", "bandwidth_mbit", "latency_ms", "links",
                                        "comment"};
    if (!json_is_object(root))
        return sl_fail(error, SL_EINVAL,
                       "must be an object such as {\"nodes\": 4, \"bandwidth_mbit\": 1000, "
                       "\"links\": [[0, 1, 100]]}");
    json_int_t nodes = 0;
    int result = sl_fields_known(root, known, sizeof known / sizeof *known, error);
    if (result == 0 && json_object_get(root, "nodes") == NULL)
        result = sl_fail(error, SL_EINVAL, "nodes: missing; it must be an integer from 1 to %u",
                         SL_NODES_MAX);
    if (result == 0)
        result = sl_field_integer(root, "nodes", 1, SL_NODES_MAX, &nodes, error);
    if (result == 0)
        result = sl_field_number(root, "bandwidth_mbit", 0, SL_LINK_BANDWIDTH_MBIT_MAX,
                                 &links->otherwise.bandwidth_mbit, error);
    if (result == 0)
        result = sl_field_number(root, "latency_ms", 0, SL_LINK_LATENCY_MS_MAX,
                                 &links->otherwise.latency_ms, error);
    links->nodes = (uint32_t)nodes;
    if (result == 0)
        result = read_listed(links, json_object_get(root, "links"), error);
    return result != 0 ? result : open_ports(links, error);
}

int sl_links_read(sl_links **out, json_t *root, sl_error *error) {
    sl_links *links = calloc(1, sizeof *links);
    if (links == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for links");
    int result = read_root(links, root, error);
    if (result != 0)
        sl_links_close(&links);
    else
        *out = links;
    return result;
}

int sl_links_parse(sl_links **out, const char *json, const char *where, sl_error *error) {
    json_t *root;
    int result = sl_json_parse(&root, json, strlen(json), 0, where, SL_EINVAL, error);
    if (result != 0)
        return result;
    result = sl_links_read(out, root, error);
    if (result != 0)
        sl_fail_prefix(error, result, "%s", where);
    json_decref(root);
    return result;
}

int sl_links_load(sl_links **out, const char *path, sl_error *error) {
    char *text;
    int result = sl_text_read(&text, path, FILE_BYTES_MAX, error);
    if (result != 0)
        return result;
    result = sl_links_parse(out, text, path, error);
    free(text);
    return result;
}

int sl_links_uniform(sl_links **out, uint32_t nodes, sl_link link, sl_error *error) {
    sl_links *links = calloc(1, sizeof *links);
    if (links == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for links");
    links->nodes = nodes;
    links->otherwise = link;
    *out = links;
    return 0;
}

sl_links *sl_links_copy(const sl_links *links) {
    sl_links *copy = calloc(1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = *links;
    copy->all = calloc(links->count + 1, sizeof *copy->all);
    copy->ports = NULL;
    if (copy->all != NULL && links->count > 0)
        memcpy(copy->all, links->all, links->count * sizeof *copy->all);
    if (copy->all == NULL || open_ports(copy, NULL) != 0)
        sl_links_close(&copy);
    return copy;
}

void sl_links_close(sl_links **links) {
    if (*links == NULL)
        return;
    free((*links)->all);
    free((*links)->ports);
    free(*links);
    *links = NULL;
}

/* ---- asking ---- */

bool sl_links_alike(const sl_links *links) {
    return links->count == 0;
}

uint32_t sl_links_nodes(const sl_links *links) {
    return links->nodes;
}

sl_link sl_links_get(const sl_links *links, uint32_t i, uint32_t j) {
    if (i == j)
        return (sl_link){0, 0};
    if (links->count == 0)
        return links->otherwise;
    const listed wanted = {.low = i < j ? i : j, .high = i < j ? j : i};
    const listed *found = bsearch(&wanted, links->all, links->count, sizeof wanted, by_pair);
    return found != NULL ? found->link : links->otherwise;
}

double sl_links_port(const sl_links *links, uint32_t i) {
    return links->ports != NULL ? links->ports[i] : links->otherwise.bandwidth_mbit;
}

double sl_links_seconds(const sl_links *links, uint32_t i, uint32_t j, double bytes) {
    sl_link link = sl_links_get(links, i, j);
    return 1e-3 * link.latency_ms +
           (link.bandwidth_mbit > 0 ? bytes * 8e-6 / link.bandwidth_mbit : 0);
}

json_t *sl_links_value(const sl_links *links) {
    json_t *list = json_array();
    for (size_t k = 0; k < links->count; k++) {
        const listed *l = &links->all[k];
        sl_json_append(&list, json_pack("[iiff]", (int)l->low, (int)l->high, l->link.bandwidth_mbit,
                                        l->link.latency_ms));
    }
    return json_pack("{si sf sf so}", "nodes", (int)links->nodes, "bandwidth_mbit",
                     links->otherwise.bandwidth_mbit, "latency_ms", links->otherwise.latency_ms,
                     "links", list);
}

char *sl_links_json(const sl_links *links) {
    json_t *root = sl_links_value(links);
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(root);
    return text;
}

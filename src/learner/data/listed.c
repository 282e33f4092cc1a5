/* listed.c - a partition from a file; see listed.h. */
#include "learner/data/listed.h"

#include <stdlib.h>
#include <string.h>

#include "starling/tensors.h"

enum { TOKEN_MAX = 40 };

typedef struct list {
    uint32_t *owners;
    uint64_t count; /* numbers seen */
    uint32_t samples, nodes;
    const char *name;
} list;

static int add(list *l, double owner, sl_error *error) {
    if (!(owner == -1 || (owner >= 0 && owner < l->nodes && owner == (uint32_t)owner)))
        return sl_fail(error, SL_EINVAL,
                       "data.partition.path: %s: the node of sample %llu is %.10g; allowed are 0 "
                       "to %u, and -1 for nobody",
                       l->name, (unsigned long long)l->count, owner, l->nodes - 1);
    if (l->count < l->samples)
        l->owners[l->count] = owner == -1 ? SL_LISTED_NOBODY : (uint32_t)owner;
    l->count++;
    return 0;
}

static int parse_npy(list *l, const sl_bytes *file, sl_error *error) {
    sl_npy a;
    int result = sl_npy_parse(&a, file->data, file->size, error);
    if (result == 0 && a.axes != 1)
        result = sl_fail(error, SL_EFILE, "has %zu axes; a list of nodes has one", a.axes);
    if (result != 0)
        return sl_fail_prefix(error, result, "data.partition.path: %s", file->name);
    for (size_t i = 0; i < a.count && result == 0; i++)
        result = add(l, sl_npy_number(&a, i), error);
    return result;
}

static int parse_text(list *l, const sl_bytes *file, sl_error *error) {
    const char *at = (const char *)file->data, *end = at + file->size;
    int result = 0;
    for (uint64_t line = 1; at < end && result == 0; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)),
                   *next = newline != NULL ? newline : end;
        char token[TOKEN_MAX] = "", *rest = token;
        const size_t length = (size_t)(next - at);
        memcpy(token, at, length < TOKEN_MAX ? length : TOKEN_MAX - 1);
        const double owner = strtod(token, &rest);
        rest += strspn(rest, " \t");
        if (length >= TOKEN_MAX || rest == token || *rest != '\0' || strlen(token) != length)
            return sl_fail(error, SL_EFILE,
                           "data.partition.path: %s: line %llu: \"%.30s\" is not the number of a "
                           "node; each line must be one, of a training sample",
                           file->name, (unsigned long long)line, token);
        result = add(l, owner, error);
        at = newline != NULL ? newline + 1 : end;
    }
    return result;
}

static int check_nodes(const list *l, sl_error *error) {
    bool *has = calloc(l->nodes, sizeof *has);
    if (has == NULL)
        return SL_ENOMEM;
    for (uint32_t i = 0; i < l->samples; i++)
        if (l->owners[i] != SL_LISTED_NOBODY)
            has[l->owners[i]] = true;
    uint32_t node = 0;
    while (node < l->nodes && has[node])
        node++;
    free(has);
    return node == l->nodes
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "data.partition.path: %s: gives no sample to node %u; every node of the "
                         "topology's %u needs at least one",
                         l->name, node, l->nodes);
}

int sl_listed_parse(uint32_t *owners, sl_bytes *file, uint32_t samples, uint32_t nodes,
                    sl_error *error) {
    list l = {.owners = owners, .samples = samples, .nodes = nodes, .name = file->name};
    int result;
    if (sl_npy_is(file->data, file->size))
        result = parse_npy(&l, file, error);
    else {
        result = sl_bytes_to_text(file, error);
        if (result == 0)
            result = parse_text(&l, file, error);
    }
    if (result == 0 && l.count != samples)
        result = sl_fail(error, SL_EINVAL,
                         "data.partition.path: %s: names the nodes of %llu samples, but there are "
                         "%u training samples",
                         file->name, (unsigned long long)l.count, samples);
    return result != 0 ? result : check_nodes(&l, error);
}

int sl_listed_read(uint32_t *owners, const char *path, uint32_t samples, uint32_t nodes,
                   sl_error *error) {
    sl_bytes file;
    if (path[0] == '\0')
        return sl_fail(error, SL_EINVAL,
                       "data.partition.path: missing; listed needs a file with the node of each "
                       "training sample");
    int result = sl_bytes_read(&file, path, SL_BYTES_MAX, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "data.partition.path");
    result = sl_listed_parse(owners, &file, samples, nodes, error);
    sl_bytes_close(&file);
    return result;
}

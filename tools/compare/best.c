/* best.c - see best.h. */
#include "compare/best.h"

#include <math.h>
#include <string.h>

static bool is_tuned(const char *key) {
    return strncmp(key, "optimizer.", strlen("optimizer.")) == 0 ||
           strncmp(key, "algorithm", strlen("algorithm")) == 0;
}

/* Have they the same values where neither is tuned? */
static bool same_condition(const contender *a, const contender *b) {
    const char *key;
    json_t *value;
    json_object_foreach(a->variant->swept, key, value) {
        json_t *other = contender_swept(b, key);
        if (!is_tuned(key) && other != NULL && !json_equal(value, other))
            return false;
    }
    return true;
}

/* Is a better than b? Of equals neither. */
static bool is_better(const comparison *c, const metric *by, const contender *a,
                      const contender *b) {
    const statistic x = metric_over(c, a, by), y = metric_over(c, b, by);
    if (x.count != y.count)
        return x.count > y.count;
    return metric_rises(by) ? x.mean > y.mean : x.mean < y.mean; /* of a NaN: no */
}

void best_find(const comparison *c, const metric *by, bool *shown) {
    for (size_t i = 0; i < c->count; i++) {
        const contender *r = &c->items[i];
        shown[i] = true;
        for (size_t k = 0; k < c->count && shown[i]; k++) {
            const contender *other = &c->items[k];
            if (k == i || strcmp(r->variant->method, other->variant->method) != 0 ||
                !same_condition(r, other))
                continue;
            shown[i] = !is_better(c, by, other, r) && (k > i || is_better(c, by, r, other));
        }
    }
}

const contender *best_against(const comparison *c, const contender *r, const char *against,
                              const bool *shown) {
    for (size_t i = 0; i < c->count; i++) {
        const contender *other = &c->items[i];
        const bool is_named = strcmp(other->variant->name, against) == 0 ||
                              (shown[i] && strcmp(other->variant->method, against) == 0);
        if (is_named && other->held_out == r->held_out && same_condition(r, other))
            return other != r ? other : NULL;
    }
    return NULL;
}

bool best_knows(const study *s, const char *name) {
    for (size_t i = 0; i < s->variants.count; i++)
        if (strcmp(s->variants.items[i].name, name) == 0 ||
            strcmp(s->variants.items[i].method, name) == 0)
            return true;
    return false;
}

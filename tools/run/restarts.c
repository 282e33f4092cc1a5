/* restarts.c - see restarts.h. */
#include "run/restarts.h"

bool restarts_plan(restarts *r, double now_s) {
    uint32_t recent = 0;
    for (uint32_t i = 0; i < RESTARTS_MAX; i++)
        recent += r->at_s[i] > 0 && now_s - r->at_s[i] < RESTARTS_WITHIN_S;
    if (recent == RESTARTS_MAX)
        return false;
    r->due_s = now_s + (recent > 0 ? 1u << (recent - 1) : 0);
    r->at_s[r->count++ % RESTARTS_MAX] = r->due_s;
    return true;
}

bool restarts_take(restarts *r, double now_s) {
    if (r->due_s == 0 || now_s < r->due_s)
        return false;
    r->due_s = 0;
    return true;
}

/* missing.c - see missing.h. */
#include "run/missing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void missing_add(missing *m, uint32_t rank, uint64_t round, uint64_t rounds) {
    char one[128], when[96] = "";
    if (round > 0)
        snprintf(when, sizeof when, " (lost in round %" PRIu64 " of %" PRIu64 ")", round, rounds);
    const int bytes =
        snprintf(one, sizeof one, "%sagent %u%s", m->count > 0 ? ", " : "", rank, when);
    const size_t used = strlen(m->list);
    if (m->named == m->count && used + (size_t)bytes < sizeof m->list) {
        memcpy(m->list + used, one, (size_t)bytes + 1);
        m->named++;
    }
    m->count++;
}

const char *missing_text(missing *m, uint32_t began) {
    char more[32] = "";
    if (m->count == 0)
        return NULL;
    if (m->named < m->count)
        snprintf(more, sizeof more, ", and %u more", m->count - m->named);
    snprintf(m->text, sizeof m->text,
             "%u of the %u agents that the run began with did not come to its end, and had not "
             "left on request: %s%s",
             m->count, began, m->list, more);
    return m->text;
}

const char *missing_find(missing *m, const sl_agent *agent, const trial *t) {
    uint32_t rank;
    uint64_t round;
    for (uint32_t i = 0; sl_agent_missing(agent, i, &rank, &round); i++)
        missing_add(m, rank, round, t->task.rounds);
    return missing_text(m, t->nodes);
}

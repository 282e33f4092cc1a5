/* health.c - see health.h. */
#include "monitor/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 384, NAMED_MAX = 8 };

/* ---- checks: each returns whether it is well, or says why it is not ---- */

static bool loop_goes_round(const sl_monitor_subject *of, const sl_agent_progress *p,
                            char why[WHY_MAX]) {
    const double limit_s = of->experiment->transport.timeout_s;
    snprintf(why, WHY_MAX, "it has not looked around for %.1f s; transport.timeout_s is %g",
             p->ago_s, limit_s);
    return p->ago_s <= limit_s;
}

static bool trains(const sl_monitor_subject *of, const sl_agent_progress *p, char why[WHY_MAX]) {
    (void)of;
    snprintf(why, WHY_MAX, "it %s", sl_agent_doing_name(p->own.doing));
    return p->own.doing == SL_AGENT_COMPUTES || p->own.doing == SL_AGENT_EXCHANGES;
}

static bool has_neighbours(const sl_monitor_subject *of, const sl_agent_progress *p,
                           char why[WHY_MAX]) {
    char away[WHY_MAX / 2] = "";
    size_t used = 0;
    unsigned connected = 0, all = 0;
    sl_agent_edge edge;
    (void)p;
    for (; sl_agent_edge_read(of->agent, all, &edge); all++) {
        connected += edge.agreed;
        const unsigned missing = all + 1 - connected;
        if (!edge.agreed && missing <= NAMED_MAX)
            used += (size_t)snprintf(away + used, sizeof away - used, "%s %u",
                                     missing > 1 ? "," : "", edge.rank);
    }
    snprintf(why, WHY_MAX, "%u of %u connected; not%s%s", connected, all, away,
             all - connected > NAMED_MAX ? ", ..." : "");
    return connected == all;
}

/* A gradient may take as long as it likes. */
static bool goes_on(const sl_monitor_subject *of, const sl_agent_progress *p, char why[WHY_MAX]) {
    const double limit_s = of->experiment->transport.timeout_s;
    snprintf(why, WHY_MAX, "round %llu stands still since %.1f s: it waits for %s",
             (unsigned long long)p->own.round, p->own.still_s,
             p->waits_for[0] != '\0' ? p->waits_for : "nobody that is known");
    return p->own.doing != SL_AGENT_EXCHANGES || p->own.still_s <= limit_s;
}

static const struct check {
    sl_health of;
    const char *name;
    bool (*is_well)(const sl_monitor_subject *of, const sl_agent_progress *p, char why[WHY_MAX]);
} checks[] = {
    {SL_HEALTH_LIVES, "loop", loop_goes_round},
    {SL_HEALTH_IS_READY, "training", trains},
    {SL_HEALTH_IS_READY, "neighbours", has_neighbours},
    {SL_HEALTH_IS_READY, "progress", goes_on},
};

/* ---- all of them ---- */

static bool check_all(FILE *file, const sl_monitor_subject *of, sl_health which) {
    const sl_agent_progress p = sl_agent_progress_read(of->agent);
    bool all = true;
    for (const struct check *c = checks; c < checks + sizeof checks / sizeof *checks; c++) {
        char why[WHY_MAX];
        if (c->of > which)
            continue;
        const bool well = c->is_well(of, &p, why);
        all = all && well;
        if (well)
            fprintf(file, "[+]%s ok\n", c->name);
        else
            fprintf(file, "[-]%s failed: %s\n", c->name, why);
    }
    fprintf(file, "%s check %s\n", which == SL_HEALTH_LIVES ? "livez" : "readyz",
            all ? "passed" : "failed");
    return all;
}

char *sl_health_write(const sl_monitor_subject *of, sl_health which, bool verbose, bool *well) {
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    *well = false;
    if (file == NULL)
        return NULL;
    *well = check_all(file, of, which);
    const bool whole = !ferror(file);
    if (fclose(file) == 0 && whole && (verbose || !*well))
        return text;
    free(text);
    return whole ? strdup("ok\n") : NULL;
}

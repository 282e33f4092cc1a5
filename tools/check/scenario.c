/* scenario.c - see scenario.h. */
#include "check/scenario.h"

#include <stdio.h>
#include <stdlib.h>

static const double gap_work_max = 1e9; /* about a second */

static void say_members(page *p, uint64_t round, uint32_t count, uint32_t nodes,
                        const sl_regrouping *how, double gap) {
    char label[32];
    snprintf(label, sizeof label, "from round %llu", (unsigned long long)round);
    page_detail(p, label, "%u of %u nodes, %s, %u joined anew; spectral gap %.4g", count, nodes,
                how->is_family ? "the family again" : "the others left out", how->bridges, gap);
}

static int say_view(page *p, const sl_experiment *e, const sl_cast *cast, uint64_t round,
                    uint32_t *ranks, sl_error *error) {
    sl_topology *among = NULL;
    sl_regrouping how;
    sl_spectrum_settings settings;
    sl_spectrum spectrum;
    const uint32_t count = sl_cast_members(cast, ranks);
    sl_spectrum_defaults(&settings);
    settings.work_max = gap_work_max;
    int result = sl_topology_among(&among, &how, e->topology, ranks, count, error);
    if (result == 0)
        result = sl_spectrum_compute(&spectrum, among, &settings, error);
    if (result == 0)
        say_members(p, round, count, cast->nodes, &how, spectrum.gap);
    sl_topology_close(&among);
    return result;
}

static void say_spoiled(page *p, const sl_fault *f) {
    char label[32], ranks[256] = "";
    size_t at = 0;
    snprintf(label, sizeof label, "in round %llu", (unsigned long long)f->round);
    for (size_t k = 0; k < f->count && at < sizeof ranks; k++)
        at +=
            (size_t)snprintf(ranks + at, sizeof ranks - at, "%s %u", k > 0 ? "," : "", f->ranks[k]);
    page_detail(p, label, "a loss that is not finite: node%s%s", f->count > 1 ? "s" : "", ranks);
}

static int play(page *p, const sl_experiment *e, sl_cast *cast, uint64_t round, uint32_t *ranks,
                sl_error *error) {
    int result = 0;
    sl_cast_play(cast, &e->faults, round);
    if (sl_faults_turn(&e->faults, round))
        result = say_view(p, e, cast, round, ranks, error);
    for (size_t i = 0; i < e->faults.count && result == 0; i++)
        if (e->faults.items[i].round == round && e->faults.items[i].kind == SL_FAULT_NONFINITE)
            say_spoiled(p, &e->faults.items[i]);
    return result;
}

int scenario_say(page *p, const sl_experiment *e, sl_error *error) {
    const uint32_t nodes = sl_experiment_ranks(e);
    sl_cast cast = {0};
    if (e->faults.count == 0)
        return 0;
    uint32_t *ranks = malloc(nodes * sizeof *ranks);
    int result = ranks != NULL ? sl_cast_open(&cast, nodes, sl_topology_nodes(e->topology), error)
                               : sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", nodes);
    for (uint64_t round = sl_faults_next(&e->faults, 0); round > 0 && result == 0;
         round = sl_faults_next(&e->faults, round))
        result = play(p, e, &cast, round, ranks, error);
    sl_cast_close(&cast);
    free(ranks);
    return result;
}

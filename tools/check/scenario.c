/* scenario.c - see scenario.h. */
#include "check/scenario.h"

#include <stdio.h>
#include <stdlib.h>

static const double gap_work_max = 1e9; /* about a second */

static int print_side(const sl_experiment *e, const sl_cast *cast, uint32_t side, uint64_t round,
                      uint32_t *ranks, sl_error *error) {
    sl_topology *among = NULL;
    sl_regrouping how;
    sl_spectrum_settings settings;
    sl_spectrum spectrum;
    const uint32_t count = sl_cast_members(cast, side, ranks);
    if (count == 0)
        return 0;
    sl_spectrum_defaults(&settings);
    settings.work_max = gap_work_max;
    int result = sl_topology_among(&among, &how, e->topology, ranks, count, error);
    if (result == 0)
        result = sl_spectrum_compute(&spectrum, among, &settings, error);
    if (result == 0)
        printf("  from round %-9llu%u of %u nodes, %s, %u joined anew; spectral gap %.4g\n",
               (unsigned long long)round, count, cast->nodes,
               how.is_family ? "the family again" : "the others left out", how.bridges,
               spectrum.gap);
    sl_topology_close(&among);
    return result;
}

static void print_spoiled(const sl_fault *f) {
    printf("  in round %-11llua loss that is not finite: node%s", (unsigned long long)f->round,
           f->count > 1 ? "s" : "");
    for (size_t k = 0; k < f->count; k++)
        printf("%s %u", k > 0 ? "," : "", f->ranks[k]);
    puts("");
}

static int play(const sl_experiment *e, sl_cast *cast, uint64_t round, uint32_t *ranks,
                sl_error *error) {
    int result = 0;
    sl_cast_play(cast, &e->faults, round);
    const bool turns = sl_faults_turn(&e->faults, round);
    for (uint32_t side = 0; turns && side < cast->side_count && result == 0; side++)
        result = print_side(e, cast, side, round, ranks, error);
    for (size_t i = 0; i < e->faults.count && result == 0; i++)
        if (e->faults.items[i].round == round && e->faults.items[i].kind == SL_FAULT_NONFINITE)
            print_spoiled(&e->faults.items[i]);
    return result;
}

int scenario_print(const sl_experiment *e, sl_error *error) {
    const uint32_t nodes = sl_experiment_ranks(e);
    sl_cast cast = {0};
    if (e->faults.count == 0)
        return 0;
    uint32_t *ranks = malloc(nodes * sizeof *ranks);
    int result = ranks != NULL ? sl_cast_open(&cast, nodes, sl_topology_nodes(e->topology), error)
                               : sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", nodes);
    puts("faults");
    for (uint64_t round = sl_faults_next(&e->faults, 0); round > 0 && result == 0;
         round = sl_faults_next(&e->faults, round))
        result = play(e, &cast, round, ranks, error);
    sl_cast_close(&cast);
    free(ranks);
    return result;
}

/* joining.c - see joining.h. */
#include "joining.h"

#include <math.h>
#include <string.h>

#include "scenario.h"
#include "seeds.h"
#include "virtual.h"

static double began_s[NODES_MAX], trouble_s; /* began_s: 0: it does not wait */

void joining_open(void) {
    memset(began_s, 0, sizeof began_s);
    trouble_s = world_now();
}

void joining_trouble(void) {
    trouble_s = world_now();
}

double joining_calm(void) {
    return world_now() - trouble_s;
}

void joining_begin(uint32_t rank) {
    began_s[rank] = world_now();
}

void joining_end(uint32_t rank, double most_s) {
    if (began_s[rank] == 0)
        return;
    const double whole = world_now() - began_s[rank],
                 calm = world_now() - fmax(trouble_s, began_s[rank]);
    began_s[rank] = 0;
    if (calm > most_s)
        world_fail("agent %u mixes after %.2f s, of which %.2f s without trouble", rank, whole,
                   calm);
    seeds_time("joined and mixing", whole);
    seeds_time("so since the last trouble", calm);
}

void joining_return(uint32_t rank, double most_s) {
    const double calm = joining_calm();
    if (calm > most_s)
        world_fail("agent %u was left out, though nothing has gone wrong for %.2f s", rank, calm);
}

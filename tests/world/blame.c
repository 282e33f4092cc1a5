/* blame.c - see blame.h. */
#include "blame.h"

#include <stdio.h>
#include <string.h>

#include "scenario.h"

static bool guilty[NODES_MAX][NODES_MAX];

void blame_none(void) {
    memset(guilty, 0, sizeof guilty);
}

void blame_edge(uint32_t a, uint32_t b) {
    guilty[a][b] = guilty[b][a] = true;
}

void blame_node(uint32_t a) {
    for (uint32_t b = 0; b < NODES_MAX; b++)
        blame_edge(a, b);
}

static bool is_guilty(unsigned a, unsigned b) {
    return a < NODES_MAX && b < NODES_MAX && guilty[a][b];
}

bool blame_is_right(const char *text) {
    unsigned a, b;
    int end = 0;
    for (const char *at = text; (at = strstr(at, "edge ")) != NULL; at++)
        if (sscanf(at, "edge %u->%u", &a, &b) == 2 && is_guilty(a, b))
            return true;
    for (const char *at = text; (at = strstr(at, "node ")) != NULL; at++)
        if (sscanf(at, "node %u", &a) == 1 && is_guilty(a, a))
            return true;
    return sscanf(text, "agent %u:%n", &a, &end) == 1 && end > 0 && is_guilty(a, a);
}

/* launches.c - see launches.h. */
#include "gpu/launches.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_ulong counts[LAUNCHES], costs[COSTS];

void launches_count(launch kernel) {
    atomic_fetch_add_explicit(&counts[kernel], 1, memory_order_relaxed);
}

void costs_count(cost what, unsigned count) {
    atomic_fetch_add_explicit(&costs[what], count, memory_order_relaxed);
}

__attribute__((destructor)) static void report(void) {
#define KERNEL_NAME(kernel) [LAUNCH_##kernel] = #kernel,
    static const char *const names[LAUNCHES] = {
        SL_KERNELS(KERNEL_NAME) SL_BLOCK_KERNELS(KERNEL_NAME) SL_LAYER_BLOCK_KERNELS(KERNEL_NAME)
            SL_LAYER_KERNELS(KERNEL_NAME)[LAUNCH_product] = "product",
        [LAUNCH_graph] = "graph"};
    static const char *const cost_names[COSTS] = {"calls", "bells", "waits"};
    const char *path = getenv("STARLING_LAUNCHES");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL)
        return;
    for (int i = 0; i < LAUNCHES; i++)
        if (counts[i] > 0)
            fprintf(file, "%s %lu\n", names[i], atomic_load(&counts[i]));
    for (int i = 0; i < COSTS; i++)
        if (costs[i] > 0)
            fprintf(file, "%s %lu\n", cost_names[i], atomic_load(&costs[i]));
    fclose(file);
}

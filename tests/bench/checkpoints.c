/* checkpoints.c - what a checkpoint costs: how long training stands still, beside one copy of the
 * state in memory, and how fast the file is written beside training, beside dd with fsync. Medians
 * of several times in turn.
 *
 * usage: checkpoints FOLDER [PARAMETERS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/saver.h"

enum { TIMES = 7, VECTORS = 2 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int rising(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static double median(double *times) {
    qsort(times, TIMES, sizeof *times, rising);
    return times[TIMES / 2];
}

static void must(int result, const sl_error *error) {
    if (result == 0)
        return;
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

/* Model and momentum of one of two nodes. */
static sl_node *open_node(size_t dimension) {
    static sl_optimizer_config optimizer = {.learning_rate = 0.1, .momentum = 0.9};
    static sl_plan plan;
    static sl_topology *topology;
    static const sl_algorithm_config config = {.name = "d-psgd"};
    sl_error error;
    sl_node *node = NULL;
    must(sl_topology_parse(&topology, "{\"nodes\": 2, \"family\": \"path\"}", "path", &error),
         &error);
    must(sl_algorithm_plan(&plan, &config, topology, dimension, &error), &error);
    const sl_node_settings settings = {.rounds = 1,
                                       .dimension = dimension,
                                       .part_bytes = 114688,
                                       .inbox_parts = 8,
                                       .topology = topology,
                                       .plan = &plan,
                                       .vec = sl_vec_cpu(),
                                       .optimizer = &optimizer};
    must(sl_node_open(&node, &settings, &error), &error);
    sl_piece p;
    for (size_t i = 0; sl_node_piece(node, i, &p) && p.vector != NULL; i++)
        for (size_t k = 0; k < dimension; k++)
            p.vector[k] = (float)(rand() % 1000) * 1e-3f;
    return node;
}

static double time_copy(sl_node *node, char *to, size_t bytes) {
    const double before = now();
    sl_piece p;
    for (size_t i = 0; sl_node_piece(node, i, &p) && p.vector != NULL; i++)
        memcpy(to + i * bytes, p.vector, bytes);
    return now() - before;
}

static void shell(const char *format, const char *folder) {
    char command[2048];
    snprintf(command, sizeof command, format, folder, folder);
    if (system(command) != 0)
        exit(1);
}

/* Nothing of what came before is still to be written. */
static double time_dd(const char *folder) {
    shell("rm -f %s/copy && sync", folder);
    const double before = now();
    shell("dd if=%s/source of=%s/copy bs=1M conv=fsync 2>/dev/null", folder);
    return now() - before;
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : ".";
    const size_t dimension = argc > 2 ? strtoull(argv[2], NULL, 10) : 25500000,
                 bytes = dimension * sizeof(float);
    double copies[TIMES], stalls[TIMES], writes[TIMES], others[TIMES], shares[TIMES], delays[TIMES];
    sl_node *node = open_node(dimension);
    sl_saver *saver = NULL;
    sl_error error;
    char checkpoints[1024], fill[128], *memory = malloc(VECTORS * bytes);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", folder);
    const sl_saver_settings settings = {.folder = checkpoints,
                                        .owner = {.dimension = dimension},
                                        .to = 1,
                                        .keep = 1,
                                        .vec = sl_vec_cpu()};
    must(sl_saver_open(&saver, &settings, node, &error), &error);
    memset(memory, 1, VECTORS * bytes);
    snprintf(fill, sizeof fill,
             "head -c %zu /dev/urandom > %%s/source && cat %%s/source >/dev/null", VECTORS * bytes);
    shell(fill, folder);
    for (int i = 0; i < TIMES; i++) {
        shell("rm -f %s/checkpoints/round* && sync", folder);
        copies[i] = time_copy(node, memory, bytes);
        const double before = now();
        sl_saver_take(saver, node, 0, &(sl_image_extras){0}, 1e6);
        stalls[i] = now() - before;
        delays[i] = stalls[i] / copies[i];
        must(sl_saver_wait(saver, &error), &error);
        writes[i] = now() - before - stalls[i];
        others[i] = time_dd(folder);
        shares[i] = others[i] / writes[i];
    }
    const double copy = median(copies), stall = median(stalls), written = median(writes),
                 dd = median(others);
    printf("%zu parameters with momentum, %.0f MB\n", dimension, 1e-6 * VECTORS * (double)bytes);
    printf("one copy in memory  %7.1f ms\n", 1e3 * copy);
    printf("training stalls     %7.1f ms, %.2f of that\n", 1e3 * stall, median(delays));
    printf("dd with fsync       %7.0f MB/s\n", 1e-6 * VECTORS * (double)bytes / dd);
    printf("the file is written %7.0f MB/s, %.0f %% of that\n",
           1e-6 * VECTORS * (double)bytes / written, 100 * median(shares));
    sl_saver_close(&saver);
    sl_node_close(&node);
    free(memory);
    return 0;
}

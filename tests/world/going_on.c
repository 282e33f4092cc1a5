/* going_on.c - see going_on.h. */
#include "going_on.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/disk.h"
#include "expected.h"

static bool is_of_all(const sl_checkpoint_view *view) {
    bool all = true;
    for (uint32_t rank = 0; rank < NODES_MAX; rank++)
        all = all && sl_checkpoint_view_has(view, rank) ==
                         (rank < sl_topology_nodes(experiment->topology));
    return view->number == 0 || all;
}

/* Of the rank's newest file: an agent that goes on waits for these. False: it has none. */
static bool view_of_newest(sl_checkpoint_view *out, uint32_t rank, const sl_checkpoint_file *files,
                           size_t count) {
    for (size_t i = count; i-- > 0;)
        if (files[i].rank == rank && sl_checkpoint_view_of(out, CHECKPOINTS, files[i], NULL) == 0)
            return true;
    return false;
}

static uint64_t number_of(const sl_checkpoint_view *view) {
    return is_of_all(view) ? 0 : view->number;
}

static bool have_common(const sl_checkpoint_view *a, const sl_checkpoint_view *b) {
    bool any = false;
    for (uint32_t rank = 0; rank < sl_topology_nodes(experiment->topology); rank++)
        any = any || (sl_checkpoint_view_has(a, rank) && sl_checkpoint_view_has(b, rank));
    return any;
}

/* All members wait for each other, and nobody else finds enough others to go on without them. */
static bool agree(const sl_checkpoint_view *view, const sl_checkpoint_file *files, size_t count) {
    bool agrees = true;
    for (uint32_t rank = 0; rank < sl_topology_nodes(experiment->topology); rank++) {
        sl_checkpoint_view own;
        if (view_of_newest(&own, rank, files, count))
            agrees =
                agrees && (sl_checkpoint_view_has(view, rank) ? number_of(&own) == number_of(view)
                                                              : have_common(&own, view));
    }
    return agrees;
}

going_on going_on_find(void) {
    going_on found = {.round = expected_newest(NULL)};
    sl_checkpoint_file *files;
    size_t count;
    sl_error error;
    if (found.round == 0)
        return found;
    if (sl_checkpoint_view_at(&found.view, CHECKPOINTS, found.round, &error) != 0 ||
        sl_checkpoint_list(&files, &count, CHECKPOINTS, &error) != 0)
        world_fail("%s", error.text);
    found.agrees = agree(&found.view, files, count);
    free(files);
    return found;
}

bool going_on_has(uint32_t rank) {
    sl_checkpoint_file *files;
    size_t count;
    bool has = false;
    if (sl_checkpoint_list(&files, &count, CHECKPOINTS, NULL) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        has = has || files[i].rank == rank;
    free(files);
    return has;
}

void going_on_lose(uint32_t rank) {
    sl_checkpoint_file *files;
    size_t count;
    sl_error error;
    if (sl_checkpoint_list(&files, &count, CHECKPOINTS, &error) != 0)
        world_fail("%s", error.text);
    for (size_t i = 0; i < count; i++) {
        char path[128];
        snprintf(path, sizeof path, CHECKPOINTS "/round-%llu-rank-%u.safetensors",
                 (unsigned long long)files[i].round, rank);
        if (files[i].rank == rank)
            sl_disk_remove(path);
    }
    free(files);
}

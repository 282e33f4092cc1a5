/* complete.c - from which round a run can go on without losing a line.
 *
 * Agents of `starling run` write their checkpoints themselves, and report what run writes into its
 * files of lines. Who kills them all may leave a checkpoint that is newer than the last line. A
 * round's line of consensus comes after all other lines of that round and of those before. Lines of
 * parameters have rounds of their own, so they are counted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder/history.h"
#include "starling/folder.h"
#include "starling/observer.h"

typedef struct lines_there {
    const sl_record_config *record;
    uint64_t newest;    /* round of all lines */
    uint32_t *by_round; /* (parameters_at_count) lines of each of these; NULL: not asked */
} lines_there;

static int note_line(void *context, const char *line, size_t bytes, sl_error *error) {
    lines_there *l = context;
    uint64_t round;
    (void)bytes, (void)error;
    if (sscanf(line, "{\"round\":%" SCNu64, &round) != 1)
        return 0;
    l->newest = round > l->newest ? round : l->newest;
    for (size_t i = 0; l->by_round != NULL && i < l->record->parameters_at_count; i++)
        l->by_round[i] += l->record->parameters_at[i] == round;
    return 0;
}

static int look(const char *folder, const char *name, lines_there *out, sl_error *error) {
    char path[SL_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return sl_history_read(path, note_line, out, error);
}

int sl_folder_complete(uint64_t *round, const char *path, const sl_experiment *e, uint64_t rounds,
                       uint64_t from, sl_error *error) {
    const sl_record_config *record = &e->record;
    const uint64_t every = sl_record_every(record, rounds);
    lines_there consensus = {.record = record}, parameters = {.record = record};
    parameters.by_round = calloc(record->parameters_at_count + 1, sizeof *parameters.by_round);
    if (parameters.by_round == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    int result = look(path, "consensus.jsonl", &consensus, error);
    if (result == 0)
        result = look(path, "parameters.jsonl", &parameters, error);
    const uint64_t last = consensus.newest >= from || from == 0 ? consensus.newest : from - 1;
    uint64_t missing = (last / every + 1) * every;
    for (size_t i = 0; i < record->parameters_at_count; i++)
        if (parameters.by_round[i] < sl_topology_nodes(e->topology) &&
            record->parameters_at[i] >= from && record->parameters_at[i] < missing)
            missing = record->parameters_at[i];
    free(parameters.by_round);
    if (result == 0)
        *round = missing;
    return result;
}

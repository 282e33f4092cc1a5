/* held_out.c - do the held-out samples measure what was trained? Files are often sorted by label.
 */
#include <stdio.h>
#include <stdlib.h>

#include "learner/data/data.h"

enum { EACH = 10, NAMED_MAX = 5, NAMES_BYTES = 160 }; /* samples of a class that nobody misses */

typedef struct presence {
    bool trained, held_out;
} presence;

/* "label 1", "labels 0, 3": those of the one part that the other lacks. Their number. */
static uint32_t name_labels(const sl_samples *train, const presence *all, bool held_out,
                            char out[NAMES_BYTES]) {
    char list[NAMES_BYTES / 2] = "", more[24] = "";
    uint32_t count = 0;
    int used = 0;
    for (uint32_t i = 0; i < train->classes; i++) {
        if (all[i].trained == all[i].held_out || all[i].held_out != held_out)
            continue;
        if (count++ < NAMED_MAX)
            used += snprintf(list + used, sizeof list - (size_t)used, "%s %d", count > 1 ? "," : "",
                             train->names != NULL ? train->names[i] : (int)i);
    }
    if (count > NAMED_MAX)
        snprintf(more, sizeof more, " and %u more", count - NAMED_MAX);
    snprintf(out, NAMES_BYTES, "label%s%s%s", count > 1 ? "s" : "", list, more);
    return count;
}

static void warn(const sl_data *data, const presence *all, char out[SL_DATA_WARNING_MAX]) {
    const bool is_tail = data->is_tail;
    char strange[NAMES_BYTES], missing[NAMES_BYTES];
    const uint64_t most = (uint64_t)EACH * data->train.classes;
    const bool untrained = name_labels(&data->train, all, true, strange) > 0 &&
                           (is_tail || data->train.count >= most),
               unmeasured = name_labels(&data->train, all, false, missing) > 0 &&
                            (is_tail || data->test.count >= most);
    if (!untrained && !unmeasured)
        return;
    const char *has = is_tail ? "has" : "have";
    char one[2 * NAMES_BYTES] = "", other[2 * NAMES_BYTES] = "";
    if (untrained)
        snprintf(one, sizeof one, "%s %s, of which nothing is trained", has, strange);
    if (unmeasured)
        snprintf(other, sizeof other, "%s%s nothing of %s", untrained ? ", and " : "", has,
                 missing);
    snprintf(out, SL_DATA_WARNING_MAX, "data: the held-out %s %s%s; %s",
             is_tail ? "fifth, the end of the file," : "samples", one, other,
             is_tail ? "shuffle the file, or name data.test_path"
                     : "shuffle the files, or take more samples (data.train_samples, "
                       "data.test_samples)");
}

int sl_data_warn(const sl_data *data, char out[SL_DATA_WARNING_MAX], sl_error *error) {
    out[0] = '\0';
    if (data->train.positions != 1)
        return 0;
    presence *all = calloc(data->train.classes + 1u, sizeof *all);
    if (all == NULL)
        return sl_fail(error, SL_ENOMEM, "data: out of memory for %u classes", data->train.classes);
    for (uint32_t i = 0; i < data->train.count; i++)
        all[data->train.labels[i]].trained = true;
    for (uint32_t i = 0; i < data->test.count; i++)
        all[data->test.labels[i]].held_out = true;
    warn(data, all, out);
    free(all);
    return 0;
}

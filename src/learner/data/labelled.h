/* labelled.h - rows of numbers with a label each, of any format, as the two tables of a data set.
 *
 * Labels are classes: integers, whose distinct values in the training rows become the classes 0,
 * 1, ... in rising order. Or they are numbers (data.real_labels), and taken as they are. Without
 * rows of their own, the last fifth of the rows is held out.
 */
#ifndef SL_LEARNER_LABELLED_H
#define SL_LEARNER_LABELLED_H

#include "learner/data/data.h"

typedef struct sl_labelled {
    const char *name; /* of the file, for errors */
    uint32_t count;
    const double *labels; /* (count) finite; integers of 32 bits unless data.real_labels */
    const void *rows;
    void (*get)(const void *rows, uint32_t index, float *x); /* into x (features), which is 0 */
} sl_labelled;

/* May a label be this? */
bool sl_label_is_allowed(double label, const sl_data_config *config);
/* What labels must be, as words behind "is not". */
const char *sl_label_allowed(const sl_data_config *config);

/* test: NULL: there are none of their own. */
int sl_labelled_split(sl_data *out, const sl_labelled *train, const sl_labelled *test,
                      uint64_t features, const sl_data_config *config, sl_error *error);

/* Of a text; test: NULL, or a file of held-out samples. */
typedef int sl_labelled_parser(sl_data *out, const sl_bytes *train, const sl_bytes *test,
                               const sl_data_config *config, sl_error *error);
/* What `parse` makes of the texts at data.path and data.test_path. */
int sl_labelled_load(sl_data *out, const sl_data_config *config, sl_labelled_parser *parse,
                     sl_error *error);

#endif

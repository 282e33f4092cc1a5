/* averaging.h - the exact average of all models after the last round (final_average).
 *
 * Two sums over the members of the last view (reduce.h): of the models, and of their squared
 * distances from the mean, by which all know how far apart they were. They go along edges that the
 * agents have anyway. If somebody is lost meanwhile, each ends with its own model, unless it has
 * the average already.
 */
#ifndef SL_AVERAGING_H
#define SL_AVERAGING_H

#include "starling/agent.h"

typedef enum sl_averaging_stage {
    SL_AVERAGING_NONE,
    SL_AVERAGING_MODELS,   /* are added up */
    SL_AVERAGING_DISTANCES /* likewise */
} sl_averaging_stage;

typedef struct sl_averaging {
    sl_averaging_stage stage;
    float *mean;     /* (d) on the host; NULL: no average is wanted */
    double weight;   /* of push-sum, this model's, and then all models' */
    double distance; /* this model's squared, and then all models' */
} sl_averaging;

int sl_averaging_open(sl_agent *agent, sl_error *error);
void sl_averaging_close(sl_agent *agent);
/* The last round is done: begins, if it is wanted. */
bool sl_averaging_begin(sl_agent *agent);
/* True: all is added up, and the node's model is the average; or it is given up. is_void: somebody
 * does not come to it. */
bool sl_averaging_advance(sl_agent *agent, bool is_void);

#endif

/* experiments.h - experiments of tests, closed behind them. */
#ifndef STARLING_TEST_EXPERIMENTS_H
#define STARLING_TEST_EXPERIMENTS_H

#include "harness.h"
#include "starling/experiment.h"

CLOSER(sl_experiment);

/* In JSON, ' stands for ". */
static inline sl_experiment *experiment_from(const char *json) {
    sl_experiment *e = NULL;
    sl_error error = {0};
    EXPECT_WELL(sl_experiment_parse(&e, quoted(json), "test", ".", NULL, 0, &error));
    return close_behind(e, close_sl_experiment);
}
#define experiment_of(...) experiment_from(printed(__VA_ARGS__))

#endif

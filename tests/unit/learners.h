/* learners.h - learners of tests, closed behind them. */
#ifndef STARLING_TEST_LEARNERS_H
#define STARLING_TEST_LEARNERS_H

#include "harness.h"
#include "starling/learner.h"

CLOSER(sl_learner);

static inline sl_learner *open_learner(const sl_learner_settings *settings) {
    sl_learner *learner = NULL;
    sl_error error;
    EXPECT_WELL(sl_learner_open(&learner, settings, &error));
    return close_behind(learner, close_sl_learner);
}

#endif

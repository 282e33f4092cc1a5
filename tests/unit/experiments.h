/* experiments.h - experiments of tests, closed behind them. */
#ifndef STARLING_TEST_EXPERIMENTS_H
#define STARLING_TEST_EXPERIMENTS_H

#include <stdarg.h>

#include "harness.h"
#include "starling/experiment.h"

CLOSER(sl_experiment);

/* In JSON, ' stands for ". */
__attribute__((format(printf, 1, 2))) static inline sl_experiment *experiment_of(const char *format,
                                                                                 ...) {
    char json[1024];
    va_list arguments;
    va_start(arguments, format);
    ck_assert_int_lt(vsnprintf(json, sizeof json, format, arguments), sizeof json);
    va_end(arguments);
    sl_experiment *e = NULL;
    sl_error error = {0};
    EXPECT_WELL(sl_experiment_parse(&e, quoted(json), "test", ".", NULL, 0, &error));
    return close_behind(e, close_sl_experiment);
}

#endif

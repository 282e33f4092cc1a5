/* security.h - what an experiment's security may be. */
#ifndef SL_CONFIG_SECURITY_H
#define SL_CONFIG_SECURITY_H

#include "starling/experiment.h"

/* A key where one is needed, and only there. */
int sl_security_check(const sl_security_config *config, sl_error *error);

#endif

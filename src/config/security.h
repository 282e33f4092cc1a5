/* security.h - what an experiment's security may be. */
#ifndef SL_CONFIG_SECURITY_H
#define SL_CONFIG_SECURITY_H

#include "starling/experiment.h"

/* A key where one is needed, and only there. */
int sl_security_check(const sl_security_config *config, const char *provider, sl_error *error);

/* A provider of libfabric's follows what the heads of messages say, which no seal protects: beside
 * keys it needs a trusted network, but for verbs, whose heads the hardware makes. */
int sl_security_check_provider(const sl_security_config *config, const char *provider, bool keyed,
                               sl_error *error);

/* Another key in place of its own: a node's pair where it wants certificates; else a run's. */
int sl_security_take_key(sl_security_config *config, const char *key, sl_error *error);

#endif

/* ad_psgd.h - what the forms of AD-PSGD share; see ad_psgd.c. */
#ifndef SL_AD_PSGD_H
#define SL_AD_PSGD_H

#include "starling/algorithm.h"

enum { SL_PAIRS_POINT = 0, SL_PAIRS_VECTORS }; /* of sl_state.extra: xhat_i; a form's own follow */

extern const sl_async_rule sl_pairs_rule;
extern const sl_key sl_pairs_keys[];
const float *sl_pairs_point(const sl_state *s);
int sl_pairs_check(const sl_algorithm_config *config, const sl_topology *topology, sl_error *error);

#define SL_AD_PSGD                                                                                 \
    .name = "ad-psgd", .stable_by = SL_STABLE_UNKNOWN, .matrix = SL_MATRIX_NONE,                   \
    .keys = sl_pairs_keys, .check = sl_pairs_check, .takes_momentum = true,                        \
    .takes_local_steps = true, .stage_count = 1, .local = sl_local_step, .point = sl_pairs_point,  \
    .async = &sl_pairs_rule

#endif

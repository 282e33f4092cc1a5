/* record_json.h - numbers and records as JSON. */
#ifndef SL_RECORD_JSON_H
#define SL_RECORD_JSON_H

#include <jansson.h>

#include "starling/folder.h"

/* JSON has no NaN and no infinity: null. */
json_t *sl_number_json(double value);
/* A line of consensus. */
json_t *sl_consensus_json(uint64_t round, const sl_consensus *consensus);
/* A line of metrics. */
json_t *sl_record_json(const sl_record *record);
/* All of summary.json. best_round: in which the best averaged model was evaluated; 0: in none. */
json_t *sl_summary_json(const sl_summary *summary, uint64_t best_round, const sl_evaluation *best);

#endif

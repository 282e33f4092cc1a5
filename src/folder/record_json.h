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
/* The same, with whom the node refused: for the summary. */
json_t *sl_node_json(const sl_record *record);
/* Of any node, as all have the same: how far apart the models were that were averaged last. */
json_t *sl_average_json(const sl_record *record);
/* Whom the others have gone on without, and when parts of the network became one again, if any. */
void sl_members_json(json_t **root, const sl_summary *summary);

#endif

/* parameters.h - the parameters of families, from JSON and back. */
#ifndef SL_PARAMETERS_H
#define SL_PARAMETERS_H

#include <jansson.h>

#include "topology/family/family.h"

/* The family with that name; errors start with `key`, here and below. */
int sl_family_read(json_t *value, const char *key, sl_family *out, sl_error *error);
/* The position of a string among `count` names; -1 with an error. */
int sl_name_read(json_t *value, const char *key, const char *(*name_of)(int), int count,
                 sl_error *error);

/* What `root` says of one parameter, if anything, into the spec. Whether it suits the family is for
 * sl_family_settle(). */
int sl_parameter_read(const parameter *p, json_t *root, sl_topology_spec *spec, sl_error *error);
/* Refuses a mesh whose sides nobody named and whose number of nodes leaves one side of 1: it would
 * be another family. Only of what a user asks for: who is left after a loss may be so many. */
int sl_mesh_check(const sl_topology_spec *spec, sl_error *error);
/* What the spec says of one; new. */
json_t *sl_parameter_json(const parameter *p, const sl_topology_spec *spec);

#endif

/* time_model.h - what the time of a round is made of, by the models of CD-SGD's authors (Xu and
 * others 2020), and which form of all-reduce is the fastest.
 *
 *   tau    a gradient                  phi  an exchange of uncompressed gradients
 *   delta  encoding and combining      psi  one of compressed gradients
 *
 *   S-SGD           tau + phi
 *   local update    max(tau, phi): the exchange runs beside the next gradient
 *   BIT-SGD         tau + delta + psi
 *   CD-SGD          ((k - 1) max(tau, delta + psi) + max(tau, phi)) / k
 *
 * They are of algorithms that average everything in each round, over servers or by an all-reduce.
 * phi and psi are those of the virtual links (starling/timeline.h).
 */
#ifndef TIME_MODEL_H
#define TIME_MODEL_H

#include "cli/tool.h"

typedef enum time_model_kind {
    MODEL_NONE,
    MODEL_S_SGD,
    MODEL_LOCAL_UPDATE,
    MODEL_BIT_SGD,
    MODEL_CD_SGD
} time_model_kind;

/* Of one variant on one kind of links, in seconds. */
typedef struct time_model {
    time_model_kind kind;
    uint64_t period; /* CD-SGD: k */
    double phi, psi; /* NaN: not part of it */
} time_model;

/* What an exchange depends on. */
typedef struct exchange_case {
    const sl_algorithm_config *config; /* as planned */
    const sl_topology *topology;
    sl_shapes shapes;
    size_t chunk_bytes;
    link_profile link;
    const sl_number_rows *links; /* of single pairs (network.links) */
    const sl_sending *early;     /* what leaves beside the backward pass (transport.overlap); NULL:
                                    nothing */
} exchange_case;

const char *time_model_name(time_model_kind kind);
const char *time_model_formula(time_model_kind kind);
/* Which one describes the algorithm? MODEL_NONE too where there are more nodes than are looked at.
 */
time_model_kind time_model_of(const exchange_case *c);
int time_model_open(time_model *out, const exchange_case *c, sl_error *error);
double time_model_seconds(const time_model *m, double tau, double delta);
/* The same of a round in which something leaves early, without delta. */
int time_model_early(double *out, const exchange_case *c, double tau, sl_error *error);

/* Does a form of all-reduce carry plain vectors between these nodes? */
bool all_reduce_is_used(const exchange_case *c);
/* Seconds of an all-reduce of each form, (SL_ALL_REDUCE_FORMS). The fastest one, of several the
 * first. */
enum {
#define FORM_COUNT(form, name) +1
    SL_ALL_REDUCE_FORMS = 0 SL_ALL_REDUCES(FORM_COUNT)
#undef FORM_COUNT
};
int all_reduce_times(double *seconds, size_t *fastest, const exchange_case *c, sl_error *error);
const char *all_reduce_name(size_t form);

#endif

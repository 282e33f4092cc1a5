/* experiment_page.h - what an experiment means, as rows of a page. */
#ifndef EXPERIMENT_PAGE_H
#define EXPERIMENT_PAGE_H

#include "check/page.h"
#include "cli/tool.h"

/* What will run, what it means, what it needs, and what to watch. */
int page_say_experiment(page *p, const trial *t, sl_error *error);

/* ---- parts of it, that a list of variants has too ---- */

#define GAP_ROUNDING 1e-12 /* of a spectral gap */
enum { MEANING_BYTES = 512 };
/* What the others do when an agent is lost, and why. */
void name_loss(const sl_experiment *e, char *out, size_t bytes);
/* Who may take part, and what of it is sealed (docs/security.md). */
void page_say_connections(page *p, const sl_experiment *e);
/* "sgd, learning rate 0.1" */
void name_optimizer(const sl_optimizer_config *o, char *out, size_t bytes);
/* "mlp 784-256-10, ...; digits, ..." and how long it is trained by what. */
void page_say_learner(page *p, const trial *t, const char *optimizer);
/* d-psgd whose messages do not hold the step: "learning rate * curvature < ..."; "": not so, or not
 * known. */
void name_bound(const sl_experiment *e, bool overlap, const sl_topology_report *r, char *out,
                size_t bytes);
/* "ring, weights metropolis: 8 nodes, 8 edges, degree 2" */
void name_topology(const sl_topology *topology, const sl_topology_report *r, char *out,
                   size_t bytes);

#endif

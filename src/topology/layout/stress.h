/* stress.h - places nodes so that their distances in the plane are like those in the graph.
 *
 * Stress majorization: Gansner, Koren, North, "Graph drawing by stress majorization" (2004), one
 * node at a time, from classical scaling of the distances (Torgerson 1952). No random numbers: the
 * same graph stands the same everywhere.
 */
#ifndef SL_STRESS_H
#define SL_STRESS_H

#include <stdint.h>

#include "starling/layout.h"

/* hops (nodes, nodes): steps between each two nodes, symmetric, finite, 0 only from a node to
 * itself. points (nodes): any scale; the longer axis lies flat. */
int sl_stress_place(sl_point *points, const uint16_t *hops, uint32_t nodes, sl_error *error);

#endif

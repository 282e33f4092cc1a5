/* scene.h - the views that a scenario of faults leads to: who is a member, and along which edges.
 */
#ifndef SL_SCENE_H
#define SL_SCENE_H

#include "config/grouping.h"
#include "starling/observer.h"

/* Members from a round on. */
typedef struct sl_scene_view {
    struct sl_scene_view *before; /* the one that was made before it */
    sl_grouping group;            /* the view's, and what the view points to */
    sl_node_view view;
} sl_scene_view;

typedef struct sl_scene {
    const sl_experiment *experiment;
    size_t dimension;
    sl_cast cast;
    uint32_t *ranks;     /* (nodes) room for a list */
    sl_scene_view *made; /* all views */
} sl_scene;

int sl_scene_open(sl_scene *scene, const sl_experiment *experiment, size_t dimension,
                  sl_error *error);
void sl_scene_close(sl_scene *scene);

/* A view of those who are there, from `round` on. */
int sl_scene_turn(sl_scene *scene, uint64_t round, uint64_t exchange, const sl_scene_view **out,
                  sl_error *error);
/* The view that a node's log tells of; one for all of its members. The entry stays as long. */
int sl_scene_repeat(sl_scene *scene, const sl_log_entry *entry, const sl_scene_view **out,
                    sl_error *error);

#endif

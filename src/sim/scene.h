/* scene.h - the views that a scenario of faults leads to: who is a member, and along which edges.
 */
#ifndef SL_SCENE_H
#define SL_SCENE_H

#include "config/grouping.h"
#include "starling/observer.h"

/* One side's members from a round on. */
typedef struct sl_scene_view {
    struct sl_scene_view *before; /* the one that was made before it */
    sl_grouping group;            /* the view's, and what the view points to */
    sl_view view;
} sl_scene_view;

typedef struct sl_scene {
    const sl_experiment *experiment;
    size_t dimension;
    sl_cast cast;
    uint32_t *sides_before;      /* (nodes) before the last round that was played; SL_ABSENT: it was
                                    not there, or rested */
    bool *rests;                 /* (nodes) on a side of a partition that is no majority */
    const sl_scene_view **views; /* (nodes) under which each stands; NULL: the first topology */
    sl_scene_view *made;         /* all of them */
} sl_scene;

int sl_scene_open(sl_scene *scene, const sl_experiment *experiment, size_t dimension,
                  sl_error *error);
void sl_scene_close(sl_scene *scene);

/* Does it take part? */
bool sl_scene_has(const sl_scene *scene, uint32_t rank);
/* A round is to be played: as it is now, it was before. */
void sl_scene_note(sl_scene *scene);
/* It was played: of a partition, sides without a majority rest until it heals. Of two halves, that
 * with the lowest rank goes on. */
void sl_scene_let_rest(sl_scene *scene);
/* A view of this side from `round` on, if it has other members than before; else *out is NULL. */
int sl_scene_turn(sl_scene *scene, uint32_t side, uint64_t round, uint64_t exchange,
                  const sl_scene_view **out, sl_error *error);
/* The view that a node's log tells of; one for all of its members. */
int sl_scene_repeat(sl_scene *scene, const sl_log_entry *entry, const sl_scene_view **out,
                    sl_error *error);
/* A member of the largest side before, the lowest one. */
uint32_t sl_scene_leader(const sl_scene *scene, const sl_scene_view *view);
/* The lowest neighbour of a joiner that was there before, or else the leader. */
uint32_t sl_scene_sponsor(const sl_scene *scene, const sl_scene_view *view, uint32_t rank);

#endif

/* window.h - memory at one address that shows its own pages, or a room of an arena.
 *
 * What it shows is exchanged by the page tables alone (mremap, Linux 5.13): no number is copied,
 * and whoever has the address need not be told. While others read the room that it shows, it is
 * frozen: what is written there gets pages of its own, so that they read on what was published.
 */
#ifndef SL_WINDOW_H
#define SL_WINDOW_H

#include "arena/arena.h"

typedef struct sl_window sl_window;

enum { SL_WINDOW_ROOMS = 3 };
#define SL_WINDOW_OWN UINT32_MAX /* in place of a room's number: its own pages */

/* Memory of zeros, on its own pages. SL_ENOMEM */
int sl_window_open(sl_window **out, size_t bytes, sl_error *error);
void sl_window_close(sl_window **window);
void *sl_window_memory(const sl_window *window); /* (bytes) at the start of a page */

/* So long are rooms that it can show, and so are their beginnings in the arena a multiple of this,
 * which a page is. */
size_t sl_window_unit(void);
/* It can show these rooms (SL_WINDOW_ROOMS, stride bytes) of the arena from here on. false: this
 * kernel cannot do it, or it can show others; nothing has changed. */
bool sl_window_attach(sl_window *window, const sl_arena *arena, const void *rooms, size_t stride);
/* Shows its own pages, with the numbers that it shows now, and no rooms any more. */
void sl_window_detach(sl_window *window);

uint32_t sl_window_shows(const sl_window *window); /* a room's number, or SL_WINDOW_OWN */
/* Not frozen. What it has shown before stays where it is. SL_ENOMEM */
int sl_window_show(sl_window *window, uint32_t room, sl_error *error);
/* It shows a room: what is written here from now on does not get there. SL_ENOMEM */
int sl_window_freeze(sl_window *window, sl_error *error);
/* Frozen: the first byte that was changed since; all of its pages' bytes: none was. */
size_t sl_window_find_change(sl_window *window);

#endif

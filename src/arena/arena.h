/* arena.h - memory that one process writes and others of its host and user read where it is.
 *
 * An arena is a memfd and has no name: it can neither shrink nor grow, nobody else can write to it,
 * and it is there until its owner and all who have mapped it are gone, however they go. Who is to
 * read it has a mailbox, an abstract socket with a name of 128 random bits, and the owner puts the
 * descriptor there. Whoever gets the name over a connection that has proved itself, and reaches the
 * mailbox, is on the same host. What comes is taken if it has this process's user, and the key
 * that its owner told over the connection.
 *
 * /proc/PROCESS/fd would need no mailbox, but is closed to others where an agent has keys: such a
 * process cannot be traced.
 *
 * The memory may be a device's (sl_share_ops): the driver's descriptor has no user and no seals, so
 * the socket tells whose process has sent it.
 *
 * What is in an arena may change while it is read: who reads it checks what it reads.
 */
#ifndef SL_ARENA_H
#define SL_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"
#include "starling/vec.h"
#include "wire/frame.h"

typedef struct sl_arena sl_arena;         /* of this process */
typedef struct sl_arena_map sl_arena_map; /* of another one, as it is seen here */
typedef struct sl_mailbox sl_mailbox;

enum { SL_ARENA_WHY_MAX = SL_SHARE_WHY_MAX };

/* Its pages are taken as they are written, as those of any other memory: the limits of /dev/shm are
 * not its. SL_ENOMEM, and what it does not fit. */
int sl_arena_open(sl_arena **out, size_t bytes, sl_error *error);
/* Of a device. false, and why. */
bool sl_arena_open_on(sl_arena **out, const sl_share_ops *device, size_t bytes,
                      char why[SL_ARENA_WHY_MAX]);
/* Until it is closed once more. From any thread. */
sl_arena *sl_arena_hold(sl_arena *arena);
void sl_arena_close(sl_arena **arena);
/* Of the host's memory; -1: it has none. */
int sl_arena_descriptor(const sl_arena *arena);
uint8_t *sl_arena_memory(const sl_arena *arena); /* (bytes) SL_VEC_ALIGNMENT */
/* Is that inside? Not if arena is NULL. */
bool sl_arena_holds(const sl_arena *arena, const void *memory);
size_t sl_arena_bytes(const sl_arena *arena);
/* Puts it into the mailbox of that name; *out: what its owner is to be told. Does not wait. false,
 * and why: it is not reached from here. */
bool sl_arena_post(const sl_arena *arena, const sl_mailbox_name *name, sl_memory_offer *out,
                   char why[SL_ARENA_WHY_MAX]);

/* device: whose memory may come, too; NULL: none. NULL: there is none, for want of descriptors. */
sl_mailbox *sl_mailbox_open(const sl_share_ops *device);
void sl_mailbox_close(sl_mailbox **mailbox);
sl_mailbox_name sl_mailbox_name_of(const sl_mailbox *mailbox);

/* Takes what was offered, and has come before that was told. false, and why. */
bool sl_arena_map_open(sl_arena_map **out, const sl_mailbox *from, const sl_memory_offer *offer,
                       char why[SL_ARENA_WHY_MAX]);
void sl_arena_map_close(sl_arena_map **map);
/* Is it the arena of this offer? Not if map is NULL. */
bool sl_arena_map_is_of(const sl_arena_map *map, const sl_memory_offer *offer);
bool sl_arena_map_is_on_device(const sl_arena_map *map);
/* So many bytes from there on; NULL: they are not all inside. */
const uint8_t *sl_arena_map_at(const sl_arena_map *map, uint64_t offset, size_t bytes);

#endif

/* saver.h - writes the checkpoints of one process's nodes beside their training, and keeps the
 * newest of each.
 *
 * The driver's thread copies a node's state once, between two rounds; a thread of the saver's own
 * then adds checksums and writes. What cannot be written is told once, and training goes on.
 */
#ifndef SL_SAVER_H
#define SL_SAVER_H

#include "checkpoint/image.h"

typedef struct sl_saver sl_saver;

typedef struct sl_saver_settings {
    const char *folder;
    sl_checkpoint_owner owner;
    uint32_t from, to; /* ranks of this process */
    uint64_t keep;     /* of each rank, how many files; at least 1 */
    uint64_t resumed;  /* the round that they go on from: newer files go; 0: the folder must have
                          none of theirs; UINT64_MAX: the process before was lost, and all stay */
    const sl_vec_ops *vec;
    void (*notice)(void *context, const char *text); /* on either thread; NULL: untold */
    /* A file is there, or, why not NULL, cannot be: before the next one is taken. From the saver's
     * thread, or the driver's where nothing was taken; NULL: untold. */
    void (*written)(void *context, uint64_t round, uint32_t rank, const char *why);
    void *context;
} sl_saver_settings;

/* Makes and locks the folder; takes memory for one node like `largest`. SL_EFILE: another process
 * writes to it, or it has files of these ranks. */
int sl_saver_open(sl_saver **out, const sl_saver_settings *settings, const sl_machine *largest,
                  sl_error *error);
/* Between two rounds of the node, or as it rests; pieces or extras have a number "round", the
 * file's. Waits up to patience_s for the write before, and says so; false: that is still going on,
 * which is told, and nothing was taken. */
bool sl_saver_take(sl_saver *saver, const sl_machine *node, uint64_t round, uint32_t rank,
                   const sl_image_extras *extras, double patience_s);
/* Waits for the write under way. 0, or why the last one failed. */
int sl_saver_wait(sl_saver *saver, sl_error *error);
/* Waits likewise. */
void sl_saver_close(sl_saver **saver);

#endif

/* disk.h - what checkpoints ask of a file system, and all of it: the simulated world has another
 * one behind these calls.
 *
 * Handles are small numbers. Functions return 0 or an errno value; one that fails has changed
 * nothing that its caller has to undo, but for what was appended.
 */
#ifndef SL_DISK_H
#define SL_DISK_H

#include <stddef.h>
#include <stdint.h>

/* An empty file to append to, whatever stood there before. */
int sl_disk_create(int *handle, const char *path);
int sl_disk_append(int handle, const void *data, size_t bytes);
/* What was appended is on the disk. */
int sl_disk_sync(int handle);
/* A file to read. EINVAL: it is a folder, or another thing that is no regular file. */
int sl_disk_open(int *handle, uint64_t *bytes, const char *path);
/* ENODATA: the file ends before. */
int sl_disk_read(int handle, uint64_t at, void *out, size_t bytes);
int sl_disk_close(int handle);
/* Replaces `to`. */
int sl_disk_rename(const char *from, const char *to);
int sl_disk_remove(const char *path);
/* 0 too where the folder is there already. */
int sl_disk_make_folder(const char *path);
/* The names in the folder are on the disk. */
int sl_disk_sync_folder(const char *path);
/* Calls `each` for every name in the folder, in any order, until it returns other than 0. */
int sl_disk_list(const char *folder, int (*each)(void *context, const char *name), void *context);
/* Keeps numbers [from, from + count) of a file, which is made if need be, from other processes
 * until the handle is closed. EAGAIN: another process has one of them. */
int sl_disk_lock(int *handle, const char *path, uint64_t from, uint64_t count);

#endif

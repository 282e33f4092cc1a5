/* disk.c - see disk.h. One folder is enough: paths are compared whole. */
#include "disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "virtual.h"

enum { FILES_MAX = 4096, NAMES_MAX = 1024, PATH_BYTES = 320, HANDLES_MAX = 64 };

typedef struct file {
    char *data;
    size_t bytes, room, synced;
} file;

typedef struct name {
    char path[PATH_BYTES]; /* empty: free */
    int file;
} name;

/* A name came, or went (file -1), since the folder was synced. */
static struct {
    file files[FILES_MAX];
    int file_count;
    name names[NAMES_MAX], durable[NAMES_MAX], changes[NAMES_MAX];
    int change_count;
    int handles[HANDLES_MAX]; /* file + 1; 0: free */
    uint64_t done;
} d;
disk_habits disk;

void disk_open(void) {
    disk_close();
    memset(&d, 0, sizeof d);
    disk = (disk_habits){0};
}

void disk_close(void) {
    for (int i = 0; i < d.file_count; i++)
        world_free(d.files[i].data);
    d.file_count = 0;
}

uint64_t disk_changes(void) {
    return d.done;
}

/* A change may be the last, or fail. */
static int change(void) {
    d.done++;
    if (disk.last > 0 && d.done >= disk.last) {
        disk.stop();
        process_wait(1e301); /* it never goes on */
    }
    if (d.done == disk.fails)
        return d.done % 2 == 0 ? ENOSPC : EIO;
    return 0;
}

/* ---- names ---- */

static name *find(name *names, const char *path) {
    for (int i = 0; i < NAMES_MAX; i++)
        if (names[i].path[0] != '\0' && strcmp(names[i].path, path) == 0)
            return &names[i];
    return NULL;
}

static void set(name *names, const char *path, int to) {
    name *n = find(names, path);
    for (int i = 0; n == NULL && i < NAMES_MAX; i++)
        if (names[i].path[0] == '\0')
            n = &names[i];
    if (n == NULL || strlen(path) >= PATH_BYTES)
        world_fail("disk: no place for %s", path);
    strcpy(n->path, path);
    n->file = to;
    if (to < 0)
        n->path[0] = '\0';
}

static void set_and_note(const char *path, int to) {
    set(d.names, path, to);
    if (d.change_count == NAMES_MAX)
        world_fail("disk: too many changes of names");
    name *n = &d.changes[d.change_count++];
    strcpy(n->path, path);
    n->file = to;
}

/* ---- base/disk.h ---- */

static int new_handle(int *handle, int of) {
    for (int i = 0; i < HANDLES_MAX; i++)
        if (d.handles[i] == 0) {
            d.handles[i] = of + 1;
            *handle = i;
            return 0;
        }
    return EMFILE;
}

int sl_disk_create(int *handle, const char *path) {
    const int why = change();
    if (why != 0)
        return why;
    if (d.file_count == FILES_MAX)
        world_fail("disk: too many files");
    const int of = d.file_count++;
    d.files[of] = (file){0};
    set_and_note(path, of);
    return new_handle(handle, of);
}

int sl_disk_append(int handle, const void *data, size_t bytes) {
    file *f = &d.files[d.handles[handle] - 1];
    const int why = change();
    if (why != 0) /* some of it may be there */
        bytes = bytes > 0 ? world_draw() % bytes : 0;
    if (f->bytes + bytes > f->room) {
        f->room = 2 * (f->bytes + bytes);
        char *grown = world_allocate(f->room);
        if (f->bytes > 0)
            memcpy(grown, f->data, f->bytes);
        world_free(f->data);
        f->data = grown;
    }
    if (bytes > 0)
        memcpy(f->data + f->bytes, data, bytes);
    f->bytes += bytes;
    return why;
}

int sl_disk_sync(int handle) {
    const int why = change();
    file *f = &d.files[d.handles[handle] - 1];
    if (why == 0)
        f->synced = f->bytes;
    return why;
}

int sl_disk_open(int *handle, uint64_t *bytes, const char *path) {
    const name *n = find(d.names, path);
    if (n == NULL)
        return ENOENT;
    *bytes = d.files[n->file].bytes;
    return new_handle(handle, n->file);
}

int sl_disk_read(int handle, uint64_t at, void *out, size_t bytes) {
    const file *f = &d.files[d.handles[handle] - 1];
    if (at + bytes > f->bytes)
        return ENODATA;
    if (bytes > 0)
        memcpy(out, f->data + at, bytes);
    return 0;
}

int sl_disk_close(int handle) {
    d.handles[handle] = 0;
    return 0;
}

int sl_disk_rename(const char *from, const char *to) {
    const int why = change();
    if (why != 0)
        return why;
    const name *n = find(d.names, from);
    if (n == NULL)
        return ENOENT;
    const int of = n->file;
    set_and_note(to, of); /* in one: nobody sees neither name */
    set_and_note(from, -1);
    return 0;
}

int sl_disk_remove(const char *path) {
    const int why = change();
    if (why != 0)
        return why;
    if (find(d.names, path) == NULL)
        return ENOENT;
    set_and_note(path, -1);
    return 0;
}

int sl_disk_make_folder(const char *path) {
    return 0;
}

int sl_disk_sync_folder(const char *path) {
    const int why = change();
    if (why != 0)
        return why;
    for (int i = 0; i < d.change_count; i++)
        set(d.durable, d.changes[i].path, d.changes[i].file);
    d.change_count = 0;
    return 0;
}

int sl_disk_list(const char *folder, int (*each)(void *context, const char *name), void *context) {
    const size_t length = strlen(folder);
    int result = 0;
    for (int i = 0; i < NAMES_MAX && result == 0; i++) {
        const char *path = d.names[i].path;
        if (strncmp(path, folder, length) == 0 && path[length] == '/')
            result = each(context, path + length + 1);
    }
    return result;
}

int sl_disk_lock(int *handle, const char *path, uint64_t from, uint64_t count) {
    return new_handle(handle, 0);
}

/* ---- what befalls it ---- */

static void keep_names(int kept) {
    for (int i = 0; i < kept; i++)
        set(d.durable, d.changes[i].path, d.changes[i].file);
    d.change_count = 0;
    memcpy(d.names, d.durable, sizeof d.names);
    memset(d.handles, 0, sizeof d.handles);
}

int disk_loose_names(void) {
    return d.change_count;
}

void disk_lose_power_to(int names, disk_tear tear) {
    keep_names(names);
    for (int i = 0; i < d.file_count; i++) {
        file *f = &d.files[i];
        const size_t loose = f->bytes - f->synced;
        if (tear == TEAR_ALL)
            f->bytes = f->synced;
        else if (tear == TEAR_HALF)
            f->bytes -= loose / 2;
        else if (tear == TEAR_ZEROS && loose > 0)
            memset(f->data + f->synced, 0, loose);
    }
}

void disk_lose_power(void) {
    keep_names(d.change_count > 0 ? (int)(world_draw() % (uint64_t)(d.change_count + 1)) : 0);
    for (int i = 0; i < d.file_count; i++) {
        file *f = &d.files[i];
        const size_t loose = f->bytes - f->synced;
        if (loose == 0)
            continue;
        f->bytes = f->synced + world_draw() % (loose + 1);
        if (world_chance(0.3) && f->bytes > f->synced) /* pages that were never written */
            memset(f->data + f->synced, 0, 1 + world_draw() % (f->bytes - f->synced));
    }
}

void disk_clear(void) {
    memset(d.names, 0, sizeof d.names);
    memset(d.durable, 0, sizeof d.durable);
    d.change_count = 0;
}

void disk_rot(void) {
    int found[NAMES_MAX], count = 0;
    for (int i = 0; i < NAMES_MAX; i++)
        if (d.names[i].path[0] != '\0' && d.files[d.names[i].file].bytes > 0)
            found[count++] = d.names[i].file;
    if (count == 0)
        return;
    file *f = &d.files[found[world_below((uint32_t)count)]];
    f->data[world_draw() % f->bytes] ^= (char)(1 << world_below(8));
}

/* disk.h - the virtual disk: base/disk.h over memory, and what may befall it. */
#ifndef VIRTUAL_DISK_H
#define VIRTUAL_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* What calls may do. */
typedef struct disk_habits {
    uint64_t fails; /* the one change that fails; 0: none */
    uint64_t last;  /* after so many changes `stop` is called; 0: never */
    void (*stop)(void);
} disk_habits;
extern disk_habits disk;

void disk_open(void);
void disk_close(void);
/* Changes so far. */
uint64_t disk_changes(void);
/* How many names have changed since their folder was synced. */
int disk_loose_names(void);
/* What becomes of what was appended and not synced. */
typedef enum disk_tear { TEAR_ALL, TEAR_NOTHING, TEAR_HALF, TEAR_ZEROS, TEARS } disk_tear;
/* The power is lost: the first so many changes of names stay. */
void disk_lose_power_to(int names, disk_tear tear);
/* The power is lost. Of each file stay what was synced and some of the rest, torn or not; of names
 * changed since their folder was synced, the first so many. */
void disk_lose_power(void);
/* No file is left. */
void disk_clear(void);
/* One bit of one file that is there turns. */
void disk_rot(void);

#endif

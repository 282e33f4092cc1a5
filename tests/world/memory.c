/* memory.c - the library's allocations in the virtual world: each belongs to the process that made
 * it, and is freed when that is killed. The linker sends calls here (tests/meson.build). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "virtual.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void *memory, size_t bytes);

typedef struct entry {
    void *memory; /* NULL: free; GONE: was used */
    process *owner;
    size_t bytes;
    bool mapped;
} entry;

static char gone;
#define GONE ((void *)&gone)
static entry *table;
static size_t room, used; /* used: with those that are gone */

static size_t place_of(const void *memory) {
    return (size_t)((uintptr_t)memory / 16 * 0x9e3779b97f4a7c15u >> 20) & (room - 1);
}

static entry *find(const void *memory) {
    for (size_t i = room > 0 ? place_of(memory) : 0; room > 0; i = (i + 1) & (room - 1)) {
        if (table[i].memory == memory)
            return &table[i];
        if (table[i].memory == NULL)
            break;
    }
    return NULL;
}

static void put(entry e) {
    size_t i = place_of(e.memory);
    while (table[i].memory != NULL)
        i = (i + 1) & (room - 1);
    table[i] = e;
    used++;
}

static void grow(void) {
    entry *before = table;
    const size_t count = room;
    size_t alive = 0;
    for (size_t i = 0; i < count; i++)
        alive += before[i].memory != NULL && before[i].memory != GONE;
    room = 4096;
    while (room < 4 * alive)
        room *= 2;
    table = __real_calloc(room, sizeof *table);
    used = 0;
    for (size_t i = 0; i < count; i++)
        if (before[i].memory != NULL && before[i].memory != GONE)
            put(before[i]);
    __real_free(before);
}

nth_call shortage;

static bool is_short(void) {
    const process *p = process_current();
    return p != NULL && p->rank == shortage.rank && ++shortage.made == shortage.fails;
}

static void *take(void *memory, size_t bytes) {
    process *p = process_current();
    if (p == NULL || memory == NULL)
        return memory;
    if (2 * used >= room)
        grow();
    put((entry){.memory = memory, .owner = p, .bytes = bytes});
    p->bytes += bytes;
    if (p->bytes > p->bytes_max)
        p->bytes_max = p->bytes;
    return memory;
}

static void forget(const void *memory) {
    entry *e = memory != NULL ? find(memory) : NULL;
    if (e == NULL)
        return;
    e->owner->bytes -= e->bytes;
    e->memory = GONE;
}

/* ---- what the linker sends here ---- */

void *__wrap_malloc(size_t bytes) {
    return is_short() ? NULL : take(__real_malloc(bytes), bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return is_short() ? NULL : take(__real_calloc(count, bytes), count * bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return is_short() ? NULL : take(__real_aligned_alloc(alignment, bytes), bytes);
}

void *__wrap_realloc(void *memory, size_t bytes) {
    if (is_short())
        return NULL;
    forget(memory);
    return take(__real_realloc(memory, bytes), bytes);
}

char *__wrap_strdup(const char *text) {
    const size_t bytes = strlen(text) + 1;
    char *copy = __wrap_malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

void __wrap_free(void *memory) {
    forget(memory);
    __real_free(memory);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (is_short())
        return MAP_FAILED;
    void *memory = __real_mmap64(at, bytes, protection, flags, file, offset);
    if (memory != MAP_FAILED && take(memory, bytes) != NULL && process_current() != NULL)
        find(memory)->mapped = true;
    return memory;
}

int __wrap_munmap(void *memory, size_t bytes) {
    forget(memory);
    return __real_munmap(memory, bytes);
}

void *world_allocate(size_t bytes) {
    void *memory = __real_malloc(bytes);
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

void world_free(void *memory) {
    __real_free(memory);
}

static void free_all(const process *p) {
    for (size_t i = 0; i < room; i++)
        if (table[i].memory != NULL && table[i].memory != GONE && table[i].owner == p) {
            if (table[i].mapped)
                __real_munmap(table[i].memory, table[i].bytes);
            else
                __real_free(table[i].memory);
            table[i].memory = GONE;
        }
}

void process_kill(process *p, bool mute) {
    if (!p->alive)
        return;
    p->alive = false;
    network_lose(p, mute);
    free_all(p);
    p->bytes = 0;
}

/* What an agent had of OpenSSL's when it was killed is nobody's: a leak sanitizer asks here. */
const char *__lsan_default_suppressions(void) {
    return "leak:libcrypto\nleak:libssl\n";
}

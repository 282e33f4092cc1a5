/* window.c - see window.h.
 *
 * Each view of some pages has a home, where its page tables wait until they are shown: the own
 * pages, each room as it is, and each room frozen, which is a private mapping of the same file.
 * Homes lie as the window does within 2 MiB, so that whole tables are moved. MREMAP_DONTUNMAP
 * leaves a mapping behind, so that no other thread's memory can come there meanwhile.
 */
#include "arena/window.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/round_up.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum {
    OWN, /* of its homes; then rooms, then frozen ones */
    ROOMS,
    FROZEN = ROOMS + SL_WINDOW_ROOMS,
    HOMES = FROZEN + SL_WINDOW_ROOMS,
    TABLE = 2 << 20, /* what a table of pages spans */
    ENTRIES = 512    /* of pages that are asked about at a time */
};

/* A page's entry of /proc/self/pagemap */
#define IS_THERE (UINT64_C(1) << 63)
#define IS_SWAPPED (UINT64_C(1) << 62)
#define IS_OF_FILE (UINT64_C(1) << 61)

struct sl_window {
    uint8_t *reserved; /* (reserved_bytes) the window and its homes */
    size_t reserved_bytes, stride;
    uint8_t *memory; /* (bytes) */
    size_t bytes;    /* whole pages */
    int shown;       /* a home's */
    bool attached;
    int pages; /* /proc/self/pagemap; -1: it is closed to this process */
};

size_t sl_window_unit(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static uint8_t *home_of(const sl_window *w, int home) {
    return w->memory + (size_t)(home + 1) * w->stride;
}

/* Nothing is there, and nothing else comes there. */
static bool reserve(uint8_t *at, size_t bytes) {
    return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

static bool move(const sl_window *w, uint8_t *from, uint8_t *to) {
    return mremap(from, w->bytes, w->bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) !=
           MAP_FAILED;
}

/* ---- opening ---- */

int sl_window_open(sl_window **out, size_t bytes, sl_error *error) {
    sl_window *w = calloc(1, sizeof *w);
    if (w == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a window");
    w->bytes = sl_round_up(bytes, sl_window_unit());
    w->stride = sl_round_up(w->bytes, TABLE);
    w->reserved_bytes = (HOMES + 1) * w->stride + TABLE;
    w->pages = -1;
    w->reserved = mmap(NULL, w->reserved_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->reserved != MAP_FAILED) {
        w->memory = (uint8_t *)sl_round_up((uintptr_t)w->reserved, TABLE);
        if (mprotect(w->memory, w->bytes, PROT_READ | PROT_WRITE) == 0) {
            *out = w;
            return 0;
        }
        munmap(w->reserved, w->reserved_bytes);
    }
    free(w);
    return sl_fail(error, SL_ENOMEM, "out of memory for %zu bytes: %s", bytes, strerror(errno));
}

void sl_window_close(sl_window **window) {
    sl_window *w = *window;
    *window = NULL;
    if (w == NULL)
        return;
    assert(!w->attached);
    munmap(w->reserved, w->reserved_bytes);
    free(w);
}

void *sl_window_memory(const sl_window *w) {
    return w->memory;
}

/* ---- rooms ---- */

/* The arena takes no new mapping that writes, but an old one can be had twice. */
static bool make_homes(const sl_window *w, int file, uint8_t *room, off_t offset, int number) {
    uint8_t *frozen = home_of(w, FROZEN + number);
    return mremap(room, 0, w->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, home_of(w, ROOMS + number)) !=
               MAP_FAILED &&
           mmap(frozen, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED,
                file, offset) != MAP_FAILED;
}

/* Does the kernel move such mappings? Tried where a failure leaves nothing open. */
static bool moves(const sl_window *w) {
    uint8_t *room = home_of(w, ROOMS), *frozen = home_of(w, FROZEN), *aside = home_of(w, OWN);
    return move(w, room, aside) && move(w, aside, room) && move(w, frozen, aside) &&
           move(w, aside, frozen);
}

bool sl_window_attach(sl_window *w, const sl_arena *arena, const void *rooms, size_t stride) {
    const int file = sl_arena_descriptor(arena);
    const size_t offset = (size_t)((const uint8_t *)rooms - sl_arena_memory(arena));
    bool good = !w->attached && file >= 0 && stride % sl_window_unit() == 0 && w->bytes <= stride;
    if (!good)
        return false;
    for (int i = 0; i < SL_WINDOW_ROOMS && good; i++)
        good = make_homes(w, file, (uint8_t *)rooms + i * stride, (off_t)(offset + i * stride), i);
    good = good && moves(w);
    reserve(home_of(w, OWN), w->stride);
    if (!good)
        reserve(home_of(w, ROOMS), 2 * SL_WINDOW_ROOMS * w->stride);
    else
        w->pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return w->attached = good;
}

void sl_window_detach(sl_window *w) {
    uint8_t *own = home_of(w, OWN);
    if (!w->attached)
        return;
    if (w->shown != OWN) {
        memcpy(own, w->memory, w->bytes);
        const bool back = move(w, own, w->memory);
        assert(back);
    }
    w->shown = OWN;
    w->attached = false;
    reserve(own, (HOMES - OWN) * w->stride);
    if (w->pages >= 0)
        close(w->pages);
    w->pages = -1;
}

uint32_t sl_window_shows(const sl_window *w) {
    return w->shown == OWN ? SL_WINDOW_OWN : (uint32_t)((w->shown - ROOMS) % SL_WINDOW_ROOMS);
}

static int turn_to(sl_window *w, int home, sl_error *error) {
    if (home == w->shown)
        return 0;
    if (move(w, w->memory, home_of(w, w->shown))) {
        if (move(w, home_of(w, home), w->memory)) {
            w->shown = home;
            return 0;
        }
        move(w, home_of(w, w->shown), w->memory);
    }
    return sl_fail(error, SL_ENOMEM, "the pages of %zu bytes could not be exchanged: %s", w->bytes,
                   strerror(errno));
}

int sl_window_show(sl_window *w, uint32_t room, sl_error *error) {
    return turn_to(w, room == SL_WINDOW_OWN ? OWN : ROOMS + (int)room, error);
}

int sl_window_freeze(sl_window *w, sl_error *error) {
    assert(w->shown != OWN);
    return turn_to(w, FROZEN + (int)sl_window_shows(w), error);
}

/* ---- what was changed ---- */

/* Have these pages (count) become the window's own? Where nobody says, they may have. */
static void ask(const sl_window *w, size_t first, size_t count, uint64_t entries[ENTRIES]) {
    const off_t from = (off_t)(((uintptr_t)w->memory / sl_window_unit() + first) * sizeof *entries);
    const ssize_t bytes = (ssize_t)(count * sizeof *entries);
    if (pread(w->pages, entries, (size_t)bytes, from) != bytes)
        for (size_t i = 0; i < count; i++)
            entries[i] = IS_THERE;
}

static bool is_own(uint64_t entry) {
    return (entry & (IS_THERE | IS_SWAPPED)) != 0 && (entry & IS_OF_FILE) == 0;
}

static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t bytes) {
    size_t i = 0;
    while (i < bytes && a[i] == b[i])
        i++;
    return i;
}

size_t sl_window_find_change(sl_window *w) {
    const size_t page = sl_window_unit(), count = w->bytes / page;
    const uint8_t *room = home_of(w, ROOMS + (int)sl_window_shows(w));
    uint64_t entries[ENTRIES];
    for (size_t i = 0; i < count; i++) {
        if (i % ENTRIES == 0)
            ask(w, i, count - i < ENTRIES ? count - i : ENTRIES, entries);
        if (!is_own(entries[i % ENTRIES]))
            continue;
        const size_t same = first_difference(w->memory + i * page, room + i * page, page);
        if (same < page)
            return i * page + same;
        madvise(w->memory + i * page, page, MADV_DONTNEED);
    }
    return w->bytes;
}

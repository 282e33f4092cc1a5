/* timeline_file.c - a timeline as a file; see starling/timeline.h.
 *
 * gzip, of numbers of 8 bytes: magic, nodes, copies, patterns, rounds; of each pattern words and
 * exchanges; then numbers of 4 bytes: the patterns' words, each round's pattern. gzip's checksum
 * finds accidents; what a prediction would believe is checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "sim/messages.h"

#define MAGIC UINT64_C(0x314c54474e4c5453) /* "STLNGTL1" */
enum { HEAD_WORDS = 5, PATTERN_WORDS = 2, NODES_LARGEST = 1 << 24 };

/* ---- writing ---- */

static bool put(gzFile file, const void *data, size_t count, size_t item_bytes) {
    return count == 0 || gzfwrite(data, item_bytes, count, file) == count;
}

static bool put_all(gzFile file, const sl_timeline *t) {
    const uint64_t head[HEAD_WORDS] = {MAGIC, t->nodes, t->copies, t->pattern_count,
                                       t->round_count};
    bool good = put(file, head, HEAD_WORDS, sizeof *head);
    for (size_t i = 0; i < t->pattern_count; i++)
        good = good && put(file, (const uint64_t[]){t->patterns[i].count, t->patterns[i].exchanges},
                           PATTERN_WORDS, sizeof(uint64_t));
    for (size_t i = 0; i < t->pattern_count; i++)
        good = good && put(file, t->patterns[i].words, t->patterns[i].count, sizeof *t->words);
    return good && put(file, t->rounds, t->round_count, sizeof *t->rounds);
}

int sl_timeline_write(const sl_timeline *t, const char *path, sl_error *error) {
    errno = 0;
    gzFile file = gzopen(path, "wb");
    const bool good = file != NULL && put_all(file, t);
    const bool closed = file != NULL && gzclose(file) == Z_OK;
    return good && closed
               ? 0
               : sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(errno));
}

/* ---- reading ---- */

typedef struct reader {
    const uint8_t *at;
    size_t left;
} reader;

static bool take(reader *r, void *out, size_t count, size_t item_bytes) {
    if (count > r->left / item_bytes)
        return false;
    memcpy(out, r->at, count * item_bytes);
    r->at += count * item_bytes;
    r->left -= count * item_bytes;
    return true;
}

/* Do the words name nodes that there are, and end where they say? A prediction believes them. */
static bool are_sound(const pattern *p, uint64_t nodes) {
    size_t at = 0;
    while (at < p->count) {
        const uint32_t *w = p->words + at;
        const size_t left = p->count - at,
                     head = w[0] == SEND ? (size_t)SEND_WORDS : (size_t)DONE_WORDS;
        if (w[0] > DONE || left < head || w[1] >= nodes)
            return false;
        const size_t peers = w[0] == SEND ? w[SEND_PEERS] : 0;
        if (w[0] == SEND && (peers == 0 || w[SEND_READY] >= READY_MAX))
            return false;
        if (peers > left - head)
            return false;
        for (size_t i = 0; i < peers; i++)
            if (w[SEND_WORDS + i] >= nodes)
                return false;
        at += head + peers;
    }
    return true;
}

static bool take_pattern(sl_timeline *t, reader *r, const uint64_t sizes[PATTERN_WORDS]) {
    pattern *p = &t->patterns[t->pattern_count];
    if (sizes[0] > r->left / sizeof *p->words)
        return false;
    *p = (pattern){.words = malloc((sizes[0] + 1) * sizeof *p->words),
                   .count = sizes[0],
                   .exchanges = sizes[1]};
    if (p->words == NULL)
        return false;
    t->pattern_count++;
    t->words_kept += p->count;
    return take(r, p->words, p->count, sizeof *p->words) && are_sound(p, t->nodes);
}

static bool take_rounds(sl_timeline *t, reader *r) {
    bool good = take(r, t->rounds, t->round_count, sizeof *t->rounds);
    for (size_t i = 0; i < t->round_count && good; i++)
        good = t->rounds[i] < t->pattern_count;
    return good;
}

/* False: it is damaged, or there is no memory. */
static bool fill(sl_timeline *t, reader *r, const uint64_t head[HEAD_WORDS]) {
    const uint64_t patterns = head[3], rounds = head[4];
    if (head[0] != MAGIC || head[1] == 0 || head[1] > NODES_LARGEST || patterns > r->left ||
        rounds > r->left)
        return false;
    *t = (sl_timeline){.nodes = (uint32_t)head[1], .message = SIZE_MAX, .copies = head[2]};
    uint64_t(*sizes)[PATTERN_WORDS] = malloc((patterns + 1) * sizeof *sizes);
    t->patterns = malloc((patterns + 1) * sizeof *t->patterns);
    t->rounds = malloc((rounds + 1) * sizeof *t->rounds);
    bool good = sizes != NULL && t->patterns != NULL && t->rounds != NULL &&
                take(r, sizes, patterns, sizeof *sizes);
    for (size_t i = 0; i < patterns && good; i++)
        good = take_pattern(t, r, sizes[i]);
    free(sizes);
    t->pattern_room = t->pattern_count;
    t->round_room = t->round_count = rounds;
    return good && take_rounds(t, r) && r->left == 0;
}

int sl_timeline_read(sl_timeline **out, const char *path, sl_error *error) {
    sl_bytes bytes;
    int result = sl_bytes_read(&bytes, path, SL_BYTES_MAX, error);
    if (result == 0)
        result = sl_timeline_open(out, 1, error);
    if (result != 0)
        return result;
    reader r = {bytes.data, bytes.size};
    uint64_t head[HEAD_WORDS];
    if (!take(&r, head, HEAD_WORDS, sizeof *head) || !fill(*out, &r, head)) {
        sl_timeline_close(out);
        result = sl_fail(error, SL_EFILE, "%s: is no timeline of this version, or damaged", path);
    }
    sl_bytes_close(&bytes);
    return result;
}

/* text.c - samples for next-character prediction, from any file.
 *
 * A character is a byte. Its code is its rank among the bytes that occur in the file. A block is a
 * run of lines between empty lines. If at least half of the blocks start with a line "NAME:", the
 * text has speakers, as Shakespeare's plays have. Then all blocks of one speaker, without the name
 * lines, form one source (Caldas et al. 2018, LEAF). Other texts are cut into up to STRETCHES
 * sources of equal length.
 *
 * A sample is `sequence` characters of one source; its labels are the same characters shifted by
 * one. Samples do not overlap. The last tenth of each source's samples is held out, so both sets
 * are independent of the partition.
 */
#include "learner/data/data.h"

#include <stdlib.h>
#include <string.h>

#define STRETCHES 64
#define HELD_OUT_PART 10
#define NAME_BYTES_MAX 64 /* a longer line is not a name */
#define ALPHABET_MAX 256

/* A block of a file with speakers. number_speakers sets `source`. */
typedef struct block {
    const uint8_t *name;
    size_t name_size;   /* 0: no name; the block belongs to the speaker before */
    size_t first, size; /* the text after the name line, with the empty lines at its end */
    uint32_t source;
} block;

/* A range of `codes` from which samples are cut. */
typedef struct source {
    size_t first, size;
} source;

typedef struct text {
    uint8_t *codes; /* (size) all sources, one after the other */
    size_t size;
    uint32_t classes;
    source *sources;
    uint32_t source_count;
    bool speakers;
} text;

static void text_free(text *t) {
    free(t->codes);
    free(t->sources);
}

static int out_of_memory(const sl_bytes *file, sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu characters", file->name,
                   file->size);
}

/* ---- speakers ---- */

/* Returns the block that starts at `at`. The next one starts where it ends. */
static block block_at(const sl_bytes *file, size_t at) {
    const uint8_t *start = file->data + at, *end = file->data + file->size, *stop = start;
    while (stop < end && !(*stop == '\n' && stop > start && stop[-1] == '\n'))
        stop++;
    while (stop < end && *stop == '\n')
        stop++;
    block b = {.first = at, .size = (size_t)(stop - start)};
    const uint8_t *line = memchr(start, '\n', b.size);
    if (line == NULL || line < start + 2 || line > start + NAME_BYTES_MAX || line[-1] != ':')
        return b;
    b.name = start;
    b.name_size = (size_t)(line - start);
    b.first += b.name_size + 1;
    b.size -= b.name_size + 1;
    return b;
}

/* Counts the file's blocks and, in *named, those with a name. Stores them unless `out` is NULL. */
static size_t find_blocks(const sl_bytes *file, block *out, size_t *named) {
    size_t count = 0;
    *named = 0;
    for (size_t at = 0; at < file->size; count++) {
        block b = block_at(file, at);
        *named += b.name_size > 0;
        at = b.first + b.size;
        if (out != NULL)
            out[count] = b;
    }
    return count;
}

/* By name, then by place. */
static int compare_blocks(const void *a, const void *b) {
    const block *x = *(const block *const *)a, *y = *(const block *const *)b;
    size_t shorter = x->name_size < y->name_size ? x->name_size : y->name_size;
    int order = shorter == 0 ? 0 : memcmp(x->name, y->name, shorter);
    if (order != 0 || x->name_size != y->name_size)
        return order != 0 ? order : x->name_size < y->name_size ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static bool same_name(const block *a, const block *b) {
    return a->name_size == b->name_size &&
           (a->name_size == 0 || memcmp(a->name, b->name, a->name_size) == 0);
}

/* Sets each block's source; sources are numbered by name. Returns how many there are, or 0 when out
 * of memory. */
static uint32_t number_speakers(block *blocks, size_t count) {
    const block **sorted = malloc(count * sizeof(block *));
    uint32_t sources = 0;
    if (sorted == NULL)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].name_size == 0 && i > 0) {
            blocks[i].name = blocks[i - 1].name;
            blocks[i].name_size = blocks[i - 1].name_size;
        }
        sorted[i] = &blocks[i];
    }
    qsort(sorted, count, sizeof(block *), compare_blocks);
    for (size_t i = 0; i < count; i++) {
        sources += i == 0 || !same_name(sorted[i], sorted[i - 1]);
        blocks[sorted[i] - blocks].source = sources - 1;
    }
    free(sorted);
    return sources;
}

/* Copies the blocks' bytes, source after source, into t->codes. */
static int string_together(text *t, const sl_bytes *file, const block *blocks, size_t count,
                           sl_error *error) {
    t->sources = calloc(t->source_count, sizeof *t->sources);
    t->codes = malloc(file->size);
    if (t->sources == NULL || t->codes == NULL)
        return out_of_memory(file, error);
    for (size_t i = 0; i < count; i++)
        t->sources[blocks[i].source].size += blocks[i].size;
    for (uint32_t s = 0; s < t->source_count; s++) {
        t->sources[s].first = t->size;
        t->size += t->sources[s].size;
        t->sources[s].size = 0;
    }
    for (size_t i = 0; i < count; i++) {
        source *s = &t->sources[blocks[i].source];
        memcpy(t->codes + s->first + s->size, file->data + blocks[i].first, blocks[i].size);
        s->size += blocks[i].size;
    }
    return 0;
}

static int split_speakers(text *t, const sl_bytes *file, size_t count, sl_error *error) {
    size_t named;
    block *blocks = malloc(count * sizeof *blocks);
    if (blocks == NULL)
        return out_of_memory(file, error);
    find_blocks(file, blocks, &named);
    t->source_count = number_speakers(blocks, count);
    int result = t->source_count > 0 ? string_together(t, file, blocks, count, error)
                                     : out_of_memory(file, error);
    free(blocks);
    return result;
}

/* ---- other texts ---- */

/* Cuts the text into sources that each have samples to hold out. A sample's last label is the first
 * character of the next sample. */
static int split_evenly(text *t, const sl_bytes *file, uint32_t sequence, sl_error *error) {
    size_t samples = (file->size - 1) / sequence, most = samples / HELD_OUT_PART;
    t->source_count = most > STRETCHES ? STRETCHES : most < 1 ? 1 : (uint32_t)most;
    t->sources = calloc(t->source_count, sizeof *t->sources);
    t->codes = malloc(file->size);
    if (t->sources == NULL || t->codes == NULL)
        return out_of_memory(file, error);
    t->size = file->size;
    memcpy(t->codes, file->data, file->size);
    for (uint32_t s = 0; s < t->source_count; s++) {
        size_t first = samples * s / t->source_count, last = samples * (s + 1) / t->source_count;
        t->sources[s] = (source){first * sequence, (last - first) * sequence + 1};
    }
    return 0;
}

/* ---- codes ---- */

/* Turns bytes into codes. The alphabet is that of the whole file, names included. */
static int encode(text *t, const sl_bytes *file, sl_error *error) {
    bool occurs[ALPHABET_MAX] = {false};
    uint8_t codes[ALPHABET_MAX];
    for (size_t i = 0; i < file->size; i++)
        occurs[file->data[i]] = true;
    for (int byte = 0; byte < ALPHABET_MAX; byte++)
        if (occurs[byte])
            codes[byte] = (uint8_t)t->classes++;
    if (t->classes < 2)
        return sl_fail(error, SL_EFILE,
                       "%s: has only one character, 0x%02x; there is nothing to learn", file->name,
                       file->data[0]);
    for (size_t i = 0; i < t->size; i++)
        t->codes[i] = codes[t->codes[i]];
    return 0;
}

/* ---- samples ---- */

static size_t samples_in(const source *s, uint32_t sequence) {
    return s->size == 0 ? 0 : (s->size - 1) / sequence;
}

/* Returns how many samples of the source are held out, or else trained on; they begin at *first. */
static size_t part_of(const source *s, uint32_t sequence, bool held_out, size_t *first) {
    size_t all = samples_in(s, sequence), held = all / HELD_OUT_PART;
    *first = held_out ? all - held : 0;
    return held_out ? held : all - held;
}

static void add_sample(sl_samples *samples, uint32_t row, const uint8_t *codes, uint32_t group) {
    size_t sequence = samples->features;
    memcpy(samples->codes + row * sequence, codes, sequence);
    for (size_t i = 0; i < sequence; i++)
        samples->labels[row * sequence + i] = codes[i + 1];
    samples->groups[row] = group;
}

/* Cuts one table. If fewer samples are wanted than there are, it takes them at even distances. */
static int cut(sl_samples *out, const text *t, const char *name, const sl_data_config *config,
               bool held_out, sl_error *error) {
    uint64_t available = 0, seen = 0;
    uint32_t count, row = 0;
    size_t first;
    for (uint32_t s = 0; s < t->source_count; s++)
        available += part_of(&t->sources[s], config->sequence, held_out, &first);
    int result = sl_data_count(&count, held_out ? config->test_samples : config->train_samples,
                               available, held_out ? "test_samples" : "train_samples", name, error);
    if (result == 0)
        result = sl_samples_allocate(out, SL_SAMPLES_CODES, count, config->sequence, name, error);
    if (result != 0)
        return result;
    out->classes = t->classes;
    out->group_count = t->source_count;
    out->speakers = t->speakers;
    for (uint32_t s = 0; s < t->source_count; s++) {
        size_t part = part_of(&t->sources[s], config->sequence, held_out, &first);
        for (size_t i = first; i < first + part; i++, seen++)
            if ((seen + 1) * count / available > row)
                add_sample(out, row++, t->codes + t->sources[s].first + i * config->sequence, s);
    }
    return 0;
}

static int check_length(const text *t, const sl_bytes *file, uint32_t sequence, sl_error *error) {
    size_t longest = 0;
    for (uint32_t s = 0; s < t->source_count; s++) {
        size_t samples = samples_in(&t->sources[s], sequence);
        longest = samples > longest ? samples : longest;
    }
    if (longest >= HELD_OUT_PART)
        return 0;
    return sl_fail(
        error, SL_EFILE,
        "%s: %s %zu samples of data.sequence %u characters; at least %d are needed, to hold "
        "one out; use a longer text, or a smaller data.sequence",
        file->name, t->speakers ? "no speaker has more than" : "has only", longest, sequence,
        HELD_OUT_PART);
}

int sl_text_parse(sl_data *out, const sl_bytes *file, const sl_data_config *config,
                  sl_error *error) {
    if (config->sequence < 1)
        return sl_fail(error, SL_EINVAL, "data.sequence is 0; it must be at least 1");
    if (file->size == 0)
        return sl_fail(error, SL_EFILE,
                       "%s: is empty; a text has at least a few hundred characters", file->name);
    size_t named, blocks = find_blocks(file, NULL, &named);
    text t = {.speakers = named >= 2 && named >= blocks - named};
    sl_data data = {0};
    int result = t.speakers ? split_speakers(&t, file, blocks, error)
                            : split_evenly(&t, file, config->sequence, error);
    if (result == 0)
        result = encode(&t, file, error);
    if (result == 0)
        result = check_length(&t, file, config->sequence, error);
    if (result == 0)
        result = cut(&data.train, &t, file->name, config, false, error);
    if (result == 0)
        result = cut(&data.test, &t, file->name, config, true, error);
    text_free(&t);
    return sl_data_hand_over(out, &data, result);
}

static int load(sl_data *out, const sl_data_config *config, uint64_t seed, sl_error *error) {
    (void)seed;
    sl_bytes file = {0};
    int result = sl_bytes_read_text(&file, config->path, SL_BYTES_MAX, error);
    if (result == 0)
        result = sl_text_parse(out, &file, config, error);
    sl_bytes_close(&file);
    return result;
}

const sl_data_reader sl_text_reader = {.load = load, .raw = "characters"};

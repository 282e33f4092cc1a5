/* tensorboard.c - see tensorboard.h.
 *
 * An event file is a list of records: length, its checksum, an Event of protocol buffers, its
 * checksum (tensorflow/core/lib/io/record_writer.h, core/util/event.proto). Of these messages
 * seven fields are needed, which are all of the four kinds that are written below: a library and
 * its compiler would be more than that.
 *
 * A run that goes on begins a new file, whose first event tells readers to forget the steps that
 * it will write again (SessionLog.START): a viewer that reads meanwhile never sees a file shrink.
 */
#include "folder/tensorboard.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "starling/folder.h"
#include "wire/bytes.h"

enum { MESSAGE_BYTES = 4096, TAG_BYTES = 64, HOST_BYTES = 64, HEAD_BYTES = 12, TAIL_BYTES = 4 };
enum { TENSORBOARD_PATH_BYTES = SL_PATH_MAX + 64 };

typedef struct writer {
    sl_lines lines;
    uint64_t second; /* in the file's name */
    uint64_t from;   /* what was added of this round or later is void */
    bool goes_on;
} writer;

struct sl_tensorboard {
    char path[SL_PATH_MAX], host[HOST_BYTES];
    uint32_t nodes;
    writer writers[]; /* (nodes + 1) the last one is the mean's */
};

/* ---- records ---- */

typedef struct message {
    uint8_t bytes[MESSAGE_BYTES];
    size_t used;
} message;

/* The low bits of a field's key. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { EVENT_SESSION_LOG = 7, SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };

static void put(message *m, const void *bytes, size_t count) {
    assert(count <= sizeof m->bytes - m->used);
    memcpy(m->bytes + m->used, bytes, count);
    m->used += count;
}

static void put_varint(message *m, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        put(m, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    put(m, &(uint8_t){(uint8_t)value}, 1);
}

static void put_key(message *m, unsigned field, unsigned type) {
    put_varint(m, field << 3 | type);
}

static void put_part(message *m, unsigned field, const void *bytes, size_t count) {
    put_key(m, field, BYTES);
    put_varint(m, count);
    put(m, bytes, count);
}

static void put_wall_time(message *m) {
    const double seconds = 1e-6 * (double)sl_clock_epoch_us();
    uint64_t bits;
    uint8_t bytes[sizeof bits];
    memcpy(&bits, &seconds, sizeof bits);
    put64(bytes, bits);
    put_key(m, EVENT_WALL_TIME, FIXED64);
    put(m, bytes, sizeof bytes);
}

static void put_scalar(message *summary, const char *tag, double number) {
    message value = {.used = 0};
    const float x = (float)number;
    uint32_t bits;
    uint8_t bytes[sizeof bits];
    memcpy(&bits, &x, sizeof bits);
    put32(bytes, bits);
    put_part(&value, VALUE_TAG, tag, strlen(tag));
    put_key(&value, VALUE_SIMPLE, FIXED32);
    put(&value, bytes, sizeof bytes);
    put_part(summary, SUMMARY_VALUE, value.bytes, value.used);
}

/* Castagnoli's, bit by bit: records are short, and few. */
static uint32_t checksum(const uint8_t *bytes, size_t count) {
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (0x82F63B78u & -(sum & 1));
    }
    sum = ~sum;
    return (sum >> 15 | sum << 17) + 0xA282EAD8u; /* masked: of data that hold sums themselves */
}

static int append(sl_files *files, writer *b, const char *path, const message *event,
                  sl_error *error) {
    uint8_t record[HEAD_BYTES + MESSAGE_BYTES + TAIL_BYTES];
    uint8_t *sum = put64(record, event->used);
    put32(sum, checksum(record, sizeof(uint64_t)));
    memcpy(record + HEAD_BYTES, event->bytes, event->used);
    put32(record + HEAD_BYTES + event->used, checksum(event->bytes, event->used));
    return sl_lines_append(files, &b->lines, path, (const char *)record,
                           HEAD_BYTES + event->used + TAIL_BYTES, error);
}

/* ---- files ---- */

int sl_tensorboard_open(sl_tensorboard **out, const char *path, uint32_t nodes, sl_error *error) {
    sl_tensorboard *b = calloc(1, sizeof *b + (nodes + 1) * sizeof *b->writers);
    if (b == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for event files", path);
    snprintf(b->path, sizeof b->path, "%s", path);
    if (gethostname(b->host, sizeof b->host - 1) != 0 || b->host[0] == '\0')
        snprintf(b->host, sizeof b->host, "host");
    b->nodes = nodes;
    *out = b;
    return 0;
}

static void resume(writer *b, uint64_t from) {
    b->goes_on = from != UINT64_MAX;
    b->from = from;
}

void sl_tensorboard_resume(sl_tensorboard *b, uint32_t first, sl_line_ends ends) {
    uint64_t first_of_all = UINT64_MAX;
    for (uint32_t i = 0; b != NULL && i < ends.count; i++) {
        if (first + i < b->nodes)
            resume(&b->writers[first + i], ends.rounds[i]);
        first_of_all = ends.rounds[i] < first_of_all ? ends.rounds[i] : first_of_all;
    }
    if (b != NULL)
        resume(&b->writers[b->nodes], first_of_all);
}

static void folder_of(const sl_tensorboard *b, int64_t rank, char out[TENSORBOARD_PATH_BYTES]) {
    if (rank == SL_TENSORBOARD_MEAN)
        snprintf(out, TENSORBOARD_PATH_BYTES, "%s/tensorboard/mean", b->path);
    else
        snprintf(out, TENSORBOARD_PATH_BYTES, "%s/tensorboard/node-%lld", b->path, (long long)rank);
}

/* Readers take a folder's files in the order of their names. */
static void path_of(const sl_tensorboard *b, int64_t rank, uint64_t second,
                    char out[SL_FILE_PATH_MAX]) {
    char folder[TENSORBOARD_PATH_BYTES];
    folder_of(b, rank, folder);
    snprintf(out, SL_FILE_PATH_MAX, "%s/events.out.tfevents.%010llu.%s", folder,
             (unsigned long long)second, b->host);
}

/* A file that is there is another process's, which has ended. */
static int begin(const sl_tensorboard *b, sl_files *files, int64_t rank, writer *mine,
                 sl_error *error) {
    static const uint8_t start[] = {1 << 3 | VARINT, 1}; /* SessionLog: status START */
    static const char version[] = "brain.Event:2";
    char folder[TENSORBOARD_PATH_BYTES], path[SL_FILE_PATH_MAX];
    message head = {.used = 0}, restart = {.used = 0};
    folder_of(b, rank, folder);
    int result = sl_folder_make(folder, error);
    mine->second = sl_clock_epoch_us() / 1000000 - 1;
    do
        path_of(b, rank, ++mine->second, path);
    while (access(path, F_OK) == 0);
    put_wall_time(&head);
    put_part(&head, EVENT_FILE_VERSION, version, strlen(version));
    if (result == 0)
        result = append(files, mine, path, &head, error);
    if (result != 0 || !mine->goes_on)
        return result;
    put_wall_time(&restart);
    put_key(&restart, EVENT_STEP, VARINT);
    put_varint(&restart, mine->from);
    put_part(&restart, EVENT_SESSION_LOG, start, sizeof start);
    return append(files, mine, path, &restart, error);
}

/* What is no measurement; and what another file is named after. */
static bool is_measured(const char *name) {
    return strcmp(name, "round") != 0 && strcmp(name, "node") != 0 && strcmp(name, "time") != 0;
}

/* Fields of an object within are named after both: "seconds/wait". */
static void put_numbers(message *summary, const json_t *object, const char *before) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        char tag[TAG_BYTES];
        snprintf(tag, sizeof tag, "%s%s", before, name);
        if (json_is_number(value) && is_measured(name)) {
            put_scalar(summary, tag, json_number_value(value));
        } else if (json_is_object(value)) {
            snprintf(tag, sizeof tag, "%s/", name);
            put_numbers(summary, value, tag);
        }
    }
}

int sl_tensorboard_add(sl_tensorboard *b, sl_files *files, int64_t rank, const json_t *line,
                       sl_error *error) {
    if (b == NULL || rank >= b->nodes)
        return 0;
    writer *mine = &b->writers[rank == SL_TENSORBOARD_MEAN ? b->nodes : rank];
    char path[SL_FILE_PATH_MAX];
    message summary = {.used = 0}, event = {.used = 0};
    int result = mine->lines.begun ? 0 : begin(b, files, rank, mine, error);
    put_wall_time(&event);
    put_key(&event, EVENT_STEP, VARINT);
    put_varint(&event, (uint64_t)json_integer_value(json_object_get(line, "round")));
    put_numbers(&summary, line, "");
    put_part(&event, EVENT_SUMMARY, summary.bytes, summary.used);
    path_of(b, rank, mine->second, path);
    return result == 0 ? append(files, mine, path, &event, error) : result;
}

void sl_tensorboard_close(sl_tensorboard **all, sl_files *files) {
    sl_tensorboard *b = *all;
    for (uint32_t i = 0; b != NULL && i <= b->nodes; i++)
        sl_lines_close(files, &b->writers[i].lines);
    free(b);
    *all = NULL;
}

/* board.c - see starling/board.h. A look reads on where the last one ended; a folder that was
 * changed otherwise, as by a run that goes on, is read anew. */
#include "starling/board.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "board/state.h"
#include "starling/version.h"

/* The members of the document, and what makes them. */
static const struct {
    const char *name;
    json_t *(*write)(const sl_board_state *s);
    bool of_lines; /* they follow from the files' lines alone */
} parts[] = {
    {"run", sl_board_run_json, false},     {"nodes", sl_board_nodes_json, false},
    {"edges", sl_board_edges_json, true},  {"positions", sl_board_positions_json, true},
    {"links", sl_board_links_json, false}, {"curves", sl_board_curves_json, true},
    {"strip", sl_board_strip_json, true},  {"events", sl_board_events_json, true},
};
enum { PARTS = sizeof parts / sizeof *parts, FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(9) };

struct sl_board {
    char folder[SL_PATH_MAX];
    const sl_asked_port *ports; /* (port_count) borrowed */
    size_t port_count;
    sl_board_state state;
    uint64_t version;
    uint64_t lines; /* that were read, as the document was written last */
    struct {
        char *text;
        uint64_t version; /* that it changed in */
    } written[PARTS];
};

/* ---- from beginning to end of a reading ---- */

static void close_node(sl_board_node *n) {
    free(n->samples);
    free(n->downs);
    json_decref(n->waits_for);
}

static void close_state(sl_board_state *s) {
    sl_board_disconnect(s);
    sl_board_forget_fresh(s);
    for (uint32_t i = 0; i < s->node_room && s->nodes != NULL; i++)
        close_node(&s->nodes[i]);
    for (size_t i = 0; i < s->event_count; i++)
        free(s->events[i].text);
    for (size_t i = 0; i < s->link_count; i++)
        free(s->links[i].protection);
    for (size_t i = 0; i < s->note_count; i++)
        free(s->notes[i]);
    void *const owned[] = {s->nodes, s->records, s->fresh,   s->events,
                           s->links, s->link_at, s->members, s->tails};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    sl_topology_close(&s->topology);
    json_decref(s->run.about);
    sl_experiment_close(&s->experiment);
    *s = (sl_board_state){0};
}

static int make_nodes(sl_board_state *s, sl_error *error) {
    const uint32_t first = sl_topology_nodes(s->experiment->topology),
                   all = sl_experiment_ranks(s->experiment);
    s->rho = s->epoch_s = NAN;
    if (first <= SL_BOARD_NODES_MAX) {
        s->node_room = all < SL_BOARD_NODES_MAX ? all : SL_BOARD_NODES_MAX;
        s->node_count = first;
    }
    s->nodes = calloc(s->node_room + 1, sizeof *s->nodes);
    s->link_at = calloc((size_t)s->node_room * s->node_room + 1, sizeof *s->link_at);
    if (s->nodes == NULL || s->link_at == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a board of %u nodes", first);
    for (uint32_t i = 0; i < s->node_room; i++) {
        s->nodes[i].stride = 1;
        s->nodes[i].epoch_s = NAN;
    }
    return 0;
}

/* Who wrote a folder that this version cannot read? */
static int blame_version(const sl_run_facts *run, const char *folder, sl_error *error) {
    const char *version = sl_run_fact(run, "version");
    return version == NULL || strcmp(version, sl_version()) == 0
               ? SL_EFILE
               : sl_fail_prefix(error, SL_EFILE, "%s: was written by starling %s, and this is %s",
                                folder, version, sl_version());
}

static int read_config(sl_board_state *s, const char *folder, sl_error *error) {
    char path[SL_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/config.json", folder);
    if (access(path, F_OK) != 0)
        return sl_fail(error, SL_EFILE, "%s: holds no run: it has no config.json", folder);
    const int result = sl_experiment_load(&s->experiment, path, NULL, 0, error);
    return result == 0 || result == SL_ENOMEM ? result : blame_version(&s->run, folder, error);
}

static int begin(sl_board_state *s, const char *folder, sl_error *error) {
    int result = sl_run_facts_read(&s->run, folder, error);
    if (result == 0)
        result = read_config(s, folder, error);
    if (result == 0)
        result = make_nodes(s, error);
    if (result == 0) {
        s->rounds = s->experiment->rounds;
        result = sl_board_connect(s, error);
    }
    return result;
}

/* ---- its files ---- */

/* metrics-3.jsonl, events-3.jsonl, and those of all. */
static bool is_read(const char *name, uint32_t *rank) {
    static const char *const whole[] = {"metrics.jsonl", "consensus.jsonl", "events.jsonl"};
    char again[SL_TAIL_NAME_MAX];
    *rank = UINT32_MAX;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    const bool metrics = strncmp(name, "metrics-", 8) == 0;
    if (sscanf(name, metrics ? "metrics-%u.jsonl" : "events-%u.jsonl", rank) != 1)
        return false;
    snprintf(again, sizeof again, metrics ? "metrics-%u.jsonl" : "events-%u.jsonl", *rank);
    return strcmp(again, name) == 0;
}

/* Metrics come before events, whose times are on their clocks. */
static int by_name(const void *a, const void *b) {
    const sl_tail *one = a, *two = b;
    const int order = (two->name[0] == 'm') - (one->name[0] == 'm');
    return order != 0 ? order : strcmp(one->name, two->name);
}

static bool add_tail(sl_board_state *s, const char *name, uint32_t rank) {
    for (size_t i = 0; i < s->tail_count; i++)
        if (strcmp(s->tails[i].name, name) == 0)
            return true;
    sl_tail *more = realloc(s->tails, (s->tail_count + 1) * sizeof *more);
    if (more == NULL)
        return false;
    s->tails = more;
    more[s->tail_count] = (sl_tail){.rank = rank};
    snprintf(more[s->tail_count++].name, SL_TAIL_NAME_MAX, "%.*s", SL_TAIL_NAME_MAX - 1, name);
    return true;
}

static int find_files(sl_board_state *s, const char *folder, sl_error *error) {
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    uint32_t rank;
    bool room = true;
    if (entries == NULL)
        return sl_fail(error, errno == ENOMEM ? SL_ENOMEM : SL_EFILE,
                       "%s: is no folder that can be read: %s", folder, strerror(errno));
    while (room && (entry = readdir(entries)) != NULL)
        room = !is_read(entry->d_name, &rank) || add_tail(s, entry->d_name, rank);
    closedir(entries);
    if (!room)
        return sl_fail(error, SL_ENOMEM, "out of memory for the names of the run's files");
    if (s->tail_count > 0)
        qsort(s->tails, s->tail_count, sizeof *s->tails, by_name);
    return 0;
}

static int take_numbers(sl_board_state *s, const sl_tail *tail, const char *line, size_t bytes,
                        sl_error *error) {
    json_error_t problem;
    json_t *object = json_loadb(line, bytes, 0, &problem);
    if (!json_is_object(object)) {
        json_decref(object);
        return sl_fail(error, SL_EFILE, "is no JSON object: %s", problem.text);
    }
    const int result = tail->name[0] == 'm' ? sl_board_take_metrics(s, object, error)
                                            : sl_board_take_consensus(s, object, error);
    json_decref(object);
    return result;
}

/* A line that cannot be read is noted, and left out. */
static int take_line(void *context, const sl_tail *tail, const char *line, size_t bytes,
                     sl_error *error) {
    sl_board *b = context;
    sl_error why;
    int result = tail->name[0] == 'e' ? sl_board_keep_event(&b->state, line, bytes, &why)
                                      : take_numbers(&b->state, tail, line, bytes, &why);
    if (result == SL_EFILE) {
        sl_fail_prefix(&why, SL_EFILE, "%s/%s:%llu", b->folder, tail->name,
                       (unsigned long long)tail->lines);
        sl_board_note(&b->state, why.text);
        return 0;
    }
    return result == 0 ? 0 : sl_fail(error, result, "%s", why.text);
}

static int read_files(sl_board *b, bool *anew, sl_error *error) {
    sl_board_state *s = &b->state;
    int result = find_files(s, b->folder, error);
    *anew = false;
    for (size_t i = 0; i < s->tail_count && result == 0 && !*anew; i++)
        result = sl_tail_read(&s->tails[i], b->folder, anew, take_line, b, error);
    return result == 0 && !*anew ? sl_board_take_fresh(s, error) : result;
}

/* ---- looking ---- */

static uint64_t lines_of(const sl_board_state *s) {
    uint64_t lines = 0;
    for (size_t i = 0; i < s->tail_count; i++)
        lines += s->tails[i].lines;
    return lines;
}

/* What has changed since. */
static int write_parts(sl_board *b, bool anew, sl_error *error) {
    const uint64_t lines = lines_of(&b->state);
    bool changed = false;
    for (int i = 0; i < PARTS; i++) {
        if (parts[i].of_lines && !anew && lines == b->lines)
            continue;
        json_t *part = parts[i].write(&b->state);
        char *text = part != NULL ? json_dumps(part, FLAGS) : NULL;
        json_decref(part);
        if (text == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for what a board says");
        if (b->written[i].text != NULL && strcmp(text, b->written[i].text) == 0) {
            free(text);
            continue;
        }
        free(b->written[i].text);
        b->written[i].text = text;
        b->written[i].version = b->version + 1;
        changed = true;
    }
    b->version += changed;
    b->lines = lines;
    return 0;
}

static int read_anew(sl_board *b, sl_error *error) {
    bool anew = false;
    close_state(&b->state);
    const int result = begin(&b->state, b->folder, error);
    return result != 0 ? result : read_files(b, &anew, error);
}

int sl_board_look(sl_board *b, double patience_s, sl_error *error) {
    bool anew = b->state.experiment == NULL;
    sl_error why = {0};
    int result = anew ? 0 : sl_run_facts_read(&b->state.run, b->folder, &why);
    if (result == 0 && !anew)
        result = read_files(b, &anew, &why);
    if (result == 0 && anew)
        result = read_anew(b, &why);
    if (result == 0)
        result = sl_board_ask(&b->state, b->folder, b->ports, b->port_count, patience_s, &why);
    if (result == SL_ENOMEM || b->state.experiment == NULL)
        return sl_fail(error, result, "%s", why.text);
    if (result != 0)
        sl_board_note(&b->state, why.text);
    return write_parts(b, anew, error);
}

int sl_board_open(sl_board **out, const char *folder, sl_error *error) {
    sl_board *b = calloc(1, sizeof *b);
    if (b == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a board");
    int result = strlen(folder) < sizeof b->folder
                     ? 0
                     : sl_fail(error, SL_EFILE, "%.80s...: is a path of more than %zu bytes",
                               folder, sizeof b->folder - 1);
    snprintf(b->folder, sizeof b->folder, "%s", folder);
    if (result == 0)
        result = sl_board_look(b, 0, error);
    if (result == 0)
        *out = b;
    else
        sl_board_close(&b);
    return result;
}

void sl_board_ask_at(sl_board *b, const sl_asked_port *ports, size_t count) {
    b->ports = ports;
    b->port_count = count;
}

void sl_board_close(sl_board **board) {
    sl_board *b = *board;
    if (b == NULL)
        return;
    *board = NULL;
    close_state(&b->state);
    for (int i = 0; i < PARTS; i++)
        free(b->written[i].text);
    free(b);
}

/* ---- what it says ---- */

uint64_t sl_board_version(const sl_board *b) {
    return b->version;
}

bool sl_board_is_over(const sl_board *b) {
    return strcmp(b->state.run.outcome, "running") != 0;
}

char *sl_board_text(const sl_board *b, uint64_t since) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    fprintf(out, "{\"version\":%llu", (unsigned long long)b->version);
    for (int i = 0; i < PARTS; i++)
        if (b->written[i].version > since)
            fprintf(out, ",\"%s\":%s", parts[i].name, b->written[i].text);
    fputc('}', out);
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

char *sl_board_metrics(const sl_board *b) {
    return sl_board_metrics_text(&b->state);
}

/* cmd_reload.c - `starling reload`: the agents of a run read their rosters and keys again, and say
 * what they have taken. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/tool.h"
#include "starling/starling.h"

#define PATIENCE_S 0.5 /* an agent that is well answers in milliseconds */
#define WAIT_S 75      /* names may be looked up for transport.connect_timeout_s, 60 s usually */
static const struct timespec between = {.tv_nsec = 50000000};

/* An agent that was told to. */
typedef struct told {
    uint32_t rank;
    bool is_told, answered;
    json_int_t before; /* how often it had done so */
} told;

/* "reload" of what it said; NULL: it has not done so yet, or said nothing. The caller's. */
static json_t *reload_of(const sl_asked *one) {
    json_t *all = one->said != NULL ? json_loads(one->said, 0, NULL) : NULL;
    json_t *reload = json_incref(json_object_get(all, "reload"));
    json_decref(all);
    return reload;
}

static json_int_t count_of(const sl_asked *one) {
    json_t *reload = reload_of(one);
    const json_int_t count = json_integer_value(json_object_get(reload, "count"));
    json_decref(reload);
    return count;
}

/* Returns the exit code. */
static int tell_one(told *t, const sl_asked *one) {
    t->rank = one->rank;
    t->before = count_of(one);
    if (one->said == NULL || one->pid <= 0)
        fprintf(stderr, "starling: rank %u: does not answer, and is not told\n", one->rank);
    else if (kill(one->pid, SIGHUP) != 0)
        fprintf(stderr, "starling: rank %u: process %d: %s\n", one->rank, (int)one->pid,
                strerror(errno));
    else
        t->is_told = true;
    return t->is_told ? TOOL_OK : TOOL_FAILED;
}

/* Prints its answer, if it is new. Returns the exit code. */
static int hear_one(told *t, const sl_asked *one) {
    json_t *reload = reload_of(one);
    const char *said = json_string_value(json_object_get(reload, "said"));
    const bool well = json_is_true(json_object_get(reload, "well"));
    t->answered = said != NULL && count_of(one) > t->before;
    if (t->answered && well)
        printf("rank %u: %s\n", one->rank, said);
    else if (t->answered)
        fprintf(stderr, "starling: rank %u: nothing of it is used: %s\n", one->rank, said);
    json_decref(reload);
    return !t->answered || well ? TOOL_OK : TOOL_FAILED;
}

static told *find(told *all, size_t count, uint32_t rank) {
    for (size_t i = 0; i < count; i++)
        if (all[i].rank == rank && all[i].is_told && !all[i].answered)
            return &all[i];
    return NULL;
}

static size_t count_waiting(const told *all, size_t count) {
    size_t waiting = 0;
    for (size_t i = 0; i < count; i++)
        waiting += all[i].is_told && !all[i].answered;
    return waiting;
}

/* Until all have answered, or have ended. Returns the exit code. */
static int hear_all(const char *folder, told *all, size_t count) {
    const double until_s = now_seconds() + WAIT_S;
    int code = TOOL_OK;
    while (count_waiting(all, count) > 0 && now_seconds() < until_s && !stop_requested) {
        sl_asked *now = NULL;
        size_t there = 0;
        nanosleep(&between, NULL);
        if (sl_ask_folder(&now, &there, folder, NULL, 0, PATIENCE_S, NULL) != 0)
            break;
        for (size_t i = 0; i < there; i++) {
            told *t = find(all, count, now[i].rank);
            if (t != NULL && hear_one(t, &now[i]) != TOOL_OK)
                code = TOOL_FAILED;
        }
        sl_asked_free(now, there);
        fflush(stdout);
        if (there == 0)
            break;
    }
    for (size_t i = 0; i < count; i++)
        if (all[i].is_told && !all[i].answered)
            fprintf(stderr, "starling: rank %u: was told, and has not answered\n", all[i].rank);
    return count_waiting(all, count) > 0 ? TOOL_FAILED : code;
}

static int tell_all(const char *folder, const sl_asked *there, size_t count) {
    told *all = calloc(count + 1, sizeof *all);
    int code = TOOL_OK;
    if (all == NULL) {
        complain("out of memory");
        return TOOL_FAILED;
    }
    for (size_t i = 0; i < count; i++)
        if (tell_one(&all[i], &there[i]) != TOOL_OK)
            code = TOOL_FAILED;
    if (hear_all(folder, all, count) != TOOL_OK)
        code = TOOL_FAILED;
    free(all);
    return code;
}

static int run(void *request, char *const *operands, size_t operand_count) {
    sl_asked *there = NULL;
    size_t count = 0;
    sl_error error;
    (void)request;
    (void)operand_count;
    catch_signals(NULL);
    if (sl_ask_folder(&there, &count, operands[0], NULL, 0, PATIENCE_S, &error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    int code = TOOL_FAILED;
    if (count == 0)
        complain("%s: no agent runs there", operands[0]);
    else
        code = tell_all(operands[0], there, count);
    sl_asked_free(there, count);
    return code;
}

const command reload_command = {
    .name = "reload",
    .summary = "the agents of a run read roster and keys again",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .offer = OFFER_FOLDER,
    .text = "Tells all agents that run in the run folder RUN on this machine to read their roster "
            "and key files again, as SIGHUP does, and prints what each has taken, a line for each "
            "rank. New lines are let in; who is revoked in the roster, or has another certificate "
            "there, loses its connections at once; another pair or run's key is used from the next "
            "handshake on. A file that is wrong is an error, and what was valid stays. Ends with 1 "
            "if any agent has not taken it.",
    .request_bytes = sizeof(int),
    .run = run,
};

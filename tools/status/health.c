/* health.c - see health.h. Of several agents the one in the newest view knows best: one that was
 * left out still tells of the view before. */
#include "status/health.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t whole_of(const json_t *said, const char *key) {
    const json_int_t number = json_integer_value(json_object_get(said, key));
    return number > 0 ? (uint64_t)number : 0;
}

static bool does(const json_t *said, sl_agent_doing doing) {
    const char *word = json_string_value(json_object_get(said, "doing"));
    return word != NULL && strcmp(word, sl_agent_doing_name(doing)) == 0;
}

static bool rests(const json_t *said) {
    return json_is_true(json_object_get(said, "rests"));
}

/* Who trains knows better than who does not, and of these who is in the newest view. */
static bool knows_better(const json_t *one, const json_t *other) {
    const bool trains = !does(one, SL_AGENT_CONNECTS), too = !does(other, SL_AGENT_CONNECTS);
    if (other == NULL || trains != too)
        return other == NULL || trains;
    const uint64_t view = whole_of(one, "view"), theirs = whole_of(other, "view");
    return view > theirs || (view == theirs && rests(other) && !rests(one));
}

static bool is_answer(const json_t *said) {
    return json_is_string(json_object_get(said, "doing"));
}

static lost_rank *find(const health *h, uint64_t rank) {
    for (size_t i = 0; i < h->lost_count; i++)
        if (h->lost[i].rank == rank)
            return &h->lost[i];
    return NULL;
}

static bool add(health *h, uint32_t rank, double since_s) {
    lost_rank *more = realloc(h->lost, (h->lost_count + 1) * sizeof *more);
    if (more == NULL)
        return false;
    h->lost = more;
    more[h->lost_count++] = (lost_rank){rank, since_s};
    return true;
}

/* Whom the best of them misses. */
static bool take_lost(health *h, const json_t *best) {
    const json_t *all = json_object_get(best, "lost");
    const uint64_t members = whole_of(best, "members");
    h->of = h->present = members > 0 ? members : whole_of(best, "nodes");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *lost = json_array_get(all, i);
        if (!add(h, (uint32_t)whole_of(lost, "rank"),
                 json_number_value(json_object_get(lost, "since_s"))))
            return false;
        if (!json_is_true(json_object_get(lost, "member")))
            h->of++;
        else if (h->present > 0)
            h->present--;
    }
    return true;
}

/* Who has a socket and says nothing is a member like the others. */
static bool take_silent(health *h, const sl_asked *all, json_t *const *said, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_answer(said[i]) || find(h, all[i].rank) != NULL)
            continue;
        if (!add(h, all[i].rank, -1))
            return false;
        if (h->present > 0)
            h->present--;
    }
    return true;
}

static int by_rank(const void *a, const void *b) {
    const lost_rank *one = a, *two = b;
    return (one->rank > two->rank) - (one->rank < two->rank);
}

static bool judge(health *h, const sl_asked *all, json_t *const *said, size_t count) {
    const json_t *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (is_answer(said[i]) && knows_better(said[i], best))
            best = said[i];
    if (best != NULL && !take_lost(h, best))
        return false;
    if (!take_silent(h, all, said, count))
        return false;
    if (h->lost_count > 0)
        qsort(h->lost, h->lost_count, sizeof *h->lost, by_rank);
    h->connects = best != NULL && does(best, SL_AGENT_CONNECTS);
    h->rests = rests(best);
    h->state = best == NULL || h->rests             ? HEALTH_DOWN
               : h->connects || h->present != h->of ? HEALTH_DEGRADED
                                                    : HEALTH_WELL;
    return true;
}

bool health_open(health *out, const sl_asked *all, size_t count) {
    json_t **said = calloc(count + 1, sizeof *said);
    *out = (health){0};
    if (said == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        said[i] = all[i].said != NULL ? json_loads(all[i].said, 0, NULL) : NULL;
    const bool judged = judge(out, all, said, count);
    for (size_t i = 0; i < count; i++)
        json_decref(said[i]);
    free(said);
    return judged;
}

void health_close(health *h) {
    free(h->lost);
    *h = (health){0};
}

void health_print(const health *h) {
    if (h->of > 0)
        printf("%" PRIu64 " of %" PRIu64, h->present, h->of);
    else
        printf("nobody answers");
    for (size_t i = 0; i < h->lost_count; i++) {
        printf("%s%u", i == 0 ? ", lost: " : ", ", h->lost[i].rank);
        if (h->lost[i].since_s >= 0)
            printf(" since %.0f s", h->lost[i].since_s);
        else
            printf(" does not answer");
    }
    puts(h->rests      ? "; too few to go on (membership.quorum): they rest"
         : h->connects ? "; they connect"
                       : "");
}

/* ---- as JSON ---- */

static json_t *describe_lost(const health *h) {
    json_t *all = json_array();
    for (size_t i = 0; i < h->lost_count; i++)
        json_array_append_new(
            all, json_pack("{s:I, s:o}", "rank", (json_int_t)h->lost[i].rank, "since_s",
                           h->lost[i].since_s < 0 ? json_null() : json_real(h->lost[i].since_s)));
    return all;
}

/* All answers; of who gave none, its rank. */
static json_t *describe_agents(const sl_asked *all, size_t count) {
    json_t *agents = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *said = all[i].said != NULL ? json_loads(all[i].said, 0, NULL) : NULL;
        json_array_append_new(agents, json_pack("{s:I, s:o}", "rank", (json_int_t)all[i].rank,
                                                "said", said != NULL ? said : json_null()));
    }
    return agents;
}

bool health_print_json(const health *h, const sl_asked *all, size_t count) {
    static const char *const states[] = {"healthy", "degraded", "down"};
    json_t *page =
        json_pack("{s:s, s:I, s:I, s:b, s:b, s:o, s:o}", "state", states[h->state], "members",
                  (json_int_t)h->present, "of", (json_int_t)h->of, "connects", h->connects, "rests",
                  h->rests, "lost", describe_lost(h), "agents", describe_agents(all, count));
    const bool printed = page != NULL && json_dumpf(page, stdout, JSON_COMPACT) == 0;
    json_decref(page);
    puts("");
    return printed;
}

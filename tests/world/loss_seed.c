/* loss_seed.c - see loss_seed.h. */
#include "loss_seed.h"

#include <stdio.h>
#include <string.h>

#include "virtual.h"

enum { OTHERS = 14 };

/* ---- what a seed is ---- */

/* Long enough for who was stopped to return. */
static bool loss_is_long(const scenario *s) {
    return s->seed % 3 == 1;
}

/* Each fourth seed, of the seed alone: what else is drawn stays. Push-sum takes any edges. */
static void choose_other(const scenario *s, const char **algorithm, const char **family) {
    static const char *const families[] = {"one-peer-exponential", "static-exponential", "ring"};
    static const char *const algorithms[OTHERS] = {
        "\"name\": \"deep-squeeze\", \"compressor\": {\"name\": \"scaled-sign\"}",
        "\"name\": \"deep-squeeze\", \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.3}",
        "\"name\": \"sgp\"",
        "\"name\": \"sgp\", \"local_steps\": 2",
        "\"name\": \"all-reduce\"",
        "\"name\": \"parameter-server\"",
        "\"name\": \"local-sgd\", \"period\": 3",
        "\"name\": \"local-sgd\", \"period\": 4, \"period_schedule\": \"growing\"",
        "\"name\": \"relaysum\"",
        "\"name\": \"ef21\", \"server\": \"sharded\","
        " \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.5}",
        "\"name\": \"double-squeeze\", \"compressor\": {\"name\": \"scaled-sign\"}",
        "\"name\": \"gmc\", \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.3}",
        "\"name\": \"gtop-k\", \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.3}",
        "\"name\": \"fedavg\", \"clients\": 0.5, \"local_steps\": 2",
    };
    const uint64_t which = s->seed / 4;
    if (s->seed % 4 != 2)
        return;
    *algorithm = algorithms[which % (loss_steps_too_far(s) ? OTHERS / 2 : OTHERS)];
    if (which % OTHERS == 2 || which % OTHERS == 3)
        *family = families[which / OTHERS % 3];
}

bool loss_is_parted(const scenario *s) {
    return s->seed % 9 == 1;
}

bool loss_is_calm(const scenario *s) {
    return loss_is_parted(s) && s->seed / 9 % 2 == 0;
}

bool loss_parts_edges(const scenario *s) {
    return loss_is_parted(s) && s->seed / 9 % 4 == 2;
}

bool loss_steps_too_far(const scenario *s) {
    return s->seed % 7 == 3 && s->seed / 7 % 3 == 1;
}

bool loss_goes_on(const scenario *s) {
    return s->seed % 15 == 4;
}

bool loss_restarts(const scenario *s) {
    return s->seed % 15 == 10 || loss_goes_on(s);
}

bool loss_grows(const scenario *s) {
    return s->seed % 9 == 4;
}

/* One is killed, and another one lies in its messages to members from the start. */
static bool loss_lies(const scenario *s) {
    return s->seed % 11 == 5 && s->nodes >= 5 && !loss_is_parted(s) && !loss_restarts(s) &&
           !loss_grows(s) && s->seed % 7 != 3;
}

/* An odd one: what is sealed is never the same twice (seeds.c compares even ones). */
bool loss_has_key(const scenario *s) {
    return s->seed % 22 == 17;
}

uint32_t loss_ranks(const scenario *s) {
    return s->nodes + loss_grows(s);
}

static void draw_experiment(loss_seed *of) {
    scenario *s = &of->s;
    const char *const algorithms[] = {
        "\"name\": \"d-psgd\"",
        "\"name\": \"d-psgd\", \"variant\": \"combine-while-adapt\"",
        "\"name\": \"d-psgd\", \"local_steps\": 2",
        "\"name\": \"choco-sgd\", \"compressor\": {\"name\": \"qsgd\"}",
        loss_is_long(s) ? "\"name\": \"dcd-psgd\", \"compressor\": {\"name\": \"natural\"}"
                        : "\"name\": \"dcd-psgd\", \"compressor\": {\"name\": \"random-k\"}",
        "\"name\": \"gradient-tracking\"",
        "\"name\": \"exact-diffusion\"",
    };
    static const char *const families[] = {"ring", "path", "complete", "star"};
    static const size_t dimensions[] = {7, 1100, 3000};
    s->nodes = 2 + world_below(NODES_MAX - 1);
    s->nodes -= loss_grows(s) && s->nodes == NODES_MAX;
    s->rounds = (30 + world_below(60)) * (loss_is_long(s) ? LONGER : 1);
    s->dimension = dimensions[world_below(3)];
    if (s->seed % 50 == LARGE)
        s->dimension = 60000;
    s->gradient_s = 0.03 * world_uniform();
    const double rate = loss_steps_too_far(s) ? 0.1 * FARTHER : 0.1;
    s->connect_s = 5;
    of->grace_s = 0.6 + world_uniform();
    const uint32_t window = 2 + world_below(4);
    const char *algorithm = algorithms[world_below(7)], *family = families[world_below(4)];
    const uint32_t seed = world_below(1000000);
    choose_other(s, &algorithm, &family);
    if (loss_steps_too_far(s) && strstr(algorithm, "tracking") != NULL)
        algorithm = algorithms[0]; /* it sends the gradient, which all would step too far with */
    snprintf(s->text, sizeof s->text,
             "{\"rounds\": %llu, \"seed\": %u, \"topology\": {\"nodes\": %u, \"family\": \"%s\"},"
             " \"algorithm\": {%s}, \"record\": {\"every\": 1}, \"optimizer\":"
             " {\"learning_rate\": %g}, \"transport\": {\"chunk_bytes\": 4096, \"overlap\": "
             "\"%s\"," SCENARIO_PIECES " \"window_chunks\": %u, \"connect_timeout_s\": %g, "
             "\"round_timeout_s\": 60}," SCENARIO_LINKS
             " \"membership\": {\"on_loss\": \"continue\", \"grace_s\": %.3f, \"joiners\": %d,"
             " \"minority_s\": %d},"
             " \"final_average\": %s, \"security\": {%s}%s}",
             (unsigned long long)s->rounds, seed, s->nodes, family, algorithm, rate,
             scenario_overlap(s, algorithm), window, s->connect_s, of->grace_s, loss_grows(s),
             s->seed % 5 == 0 ? 5 : 60, s->seed % 8 == 5 ? "true" : "false",
             loss_has_key(s) ? "\"mode\": \"auto\", \"seal\": \"on\"" : "\"mode\": \"none\"",
             loss_goes_on(s) ? ", \"checkpoint\": {\"every\": 4, \"keep\": 16}" : "");
    network.latency_s = 1e-4 + 2e-3 * world_uniform() * world_uniform();
    network.jitter_s = world_chance(0.5) ? 5e-3 * world_uniform() : 0;
    network.slow_wake_s = 1e-6;
}

/* Somebody is never struck: the one that all others connect to, or, in every other seed of those
 * that start agents again, the one that connects to all. */
static void draw_strikes(loss_seed *of) {
    const scenario *s = &of->s;
    const bool spares_last = loss_restarts(s) && s->seed / 15 % 2 == 1;
    const uint32_t rounds = (uint32_t)s->rounds / (loss_is_long(s) ? LONGER : 1);
    of->strike_count = loss_is_calm(s) ? 0 : 1 + (int)world_below(STRIKES_MAX);
    if (loss_restarts(s))
        of->strike_count *= STORM_MAX / STRIKES_MAX;
    for (int i = 0; i < of->strike_count; i++) {
        strike *k = &of->strikes[i];
        *k = (strike){.kind = (strike_kind)world_below(STRIKE_KINDS),
                      .a = 1 + world_below(s->nodes - 1),
                      .round = 2 + world_below((loss_restarts(s) ? LONGER - 2 : 1) * rounds - 2),
                      .at_s = 0.05 * world_uniform(),
                      .seconds = of->grace_s * (0.2 + 6 * world_uniform())};
        if (loss_is_long(s) && world_chance(loss_restarts(s) ? 0.2 : 0.5))
            k->kind = STRIKE_STOP;
        k->a = spares_last ? s->nodes - 1 - k->a : k->a;
        k->b = (k->a + 1 + world_below(s->nodes - 1)) % s->nodes;
    }
}

/* Of the seed alone: what else is drawn stays. */
static void choose_spoiled(loss_seed *of) {
    const scenario *s = &of->s;
    const uint64_t which = s->seed / 7;
    of->spoiled_rank = 1 + (uint32_t)(which % (s->nodes - 1));
    of->spoiled_round = s->seed % 7 == 3 ? 10 + which / 8 % (s->rounds - 10) : UINT64_MAX;
    of->spoiled_rounds = which % 2 == 0 ? UINT64_MAX : 1 + which / 2 % 5;
}

/* Likewise. */
static void choose_parting(loss_seed *of) {
    const scenario *s = &of->s;
    const uint64_t which = s->seed * 0x9E3779B97F4A7C15u >> 20;
    const uint32_t sides = (1u << s->nodes) - 2; /* but nobody, and all */
    of->side = 1 + (uint32_t)(which % sides);
    of->parting_round = 5 + which / 256 % 40;
    of->parted_s = of->grace_s * (0.5 + (double)(which / 16384 % 7));
}

/* Likewise. */
static void choose_cuts(loss_seed *of) {
    const uint64_t which = of->s.seed / 15, apart = of->s.rounds / (CUTS_MAX + 2);
    for (uint64_t i = 0; i < CUTS_MAX; i++)
        of->cut_rounds[i] = loss_goes_on(&of->s) && i <= which % CUTS_MAX
                                ? apart * (i + 1) + which / 3 * (i + 1) % (apart - 8)
                                : UINT64_MAX;
}

/* Likewise. More than half of the others are honest and alive. */
static void choose_liar(loss_seed *of) {
    const scenario *s = &of->s;
    const uint64_t which = s->seed / 11;
    of->liar = UINT32_MAX;
    if (!loss_lies(s))
        return;
    of->liar = (uint32_t)(which % s->nodes);
    of->strike_count = 1;
    of->strikes[0].kind = STRIKE_KILL;
    of->strikes[0].a = (of->liar + 1 + (uint32_t)(which / s->nodes % (s->nodes - 1))) % s->nodes;
}

void loss_seed_draw(loss_seed *out, uint64_t seed) {
    *out = (loss_seed){.s = {.seed = seed}};
    draw_experiment(out);
    draw_strikes(out);
    choose_spoiled(out);
    choose_parting(out);
    choose_cuts(out);
    choose_liar(out);
}

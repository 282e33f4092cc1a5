/* cmd_sim.c - `starling sim`: the experiment in one process, with the outputs of `starling run`. */
#include <stdio.h>

#include "board.h"
#include "forecast.h"

static const char help[] =
    "usage: starling sim EXPERIMENT [--set KEY=VALUE ...] [--out DIR]\n"
    "\n"
    "Runs the experiment in one process without a network. Models, losses and files are\n"
    "those of `starling run`, bit for bit; times are the simulator's own. With network.* in the\n"
    "experiment it says how long the run would take on such nodes and links.\n"
    "\n"
    "  --set KEY=VALUE  overrides a key of the experiment, as in optimizer.learning_rate=0.2\n"
    "  --out DIR        the run folder (default runs/NAME-YYYYmmdd-HHMMSS)\n"
    "  --help           this text\n";

typedef struct simulation {
    board board;
    progress progress;
    sl_task inner;
    sl_error error; /* of the observer: sl_sim_run only passes its code on */
} simulation;

static int on_record(void *context, const sl_record *record, const float *x) {
    simulation *s = context;
    return board_record(&s->board, record, x, &s->error);
}

static int on_parameters(void *context, uint64_t round, uint32_t rank, const float *x,
                         double weight) {
    simulation *s = context;
    return sl_folder_parameters(s->board.folder, round, rank, x, s->inner.dimension, weight,
                                &s->error);
}

/* The learner's gradient, with a look at the live view: a round is under way when rank 0 computes.
 */
static double watched_gradient(void *context, uint32_t rank, uint64_t round, const float *x,
                               float *g) {
    simulation *s = context;
    if (rank == 0) {
        progress_round(&s->progress, round - 1);
        progress_tick(&s->progress);
    }
    return s->inner.gradient(s->inner.context, rank, round, x, g);
}

static void inner_initial(void *context, uint32_t rank, float *x) {
    simulation *s = context;
    s->inner.initial(s->inner.context, rank, x);
}

static sl_evaluation inner_evaluate(void *context, const float *x) {
    simulation *s = context;
    return s->inner.evaluate(s->inner.context, x);
}

static sl_task watched_task(simulation *s, const sl_task *inner) {
    s->inner = *inner;
    sl_task task = *inner;
    task.context = s;
    task.initial = inner_initial;
    task.gradient = watched_gradient;
    task.evaluate = inner_evaluate;
    return task;
}

static int simulate(simulation *s, const trial *t, sl_error *error) {
    sl_task task = watched_task(s, &t->task);
    sl_observer observer = {s, on_record, on_parameters};
    bool predicts = forecast_is_wanted(&t->experiment->network);
    int result = sl_sim_run(t->experiment, &task, &observer, predicts ? &s->board.timeline : NULL,
                            &stop_requested, error);
    if (result != 0 && s->error.code != 0)
        *error = s->error;
    if (result == 0)
        result = board_finish(&s->board, error);
    progress_clear(&s->progress);
    return result;
}

static int run_in(const trial *t, const char *path) {
    simulation s = {0};
    sl_error error = {0};
    progress_open(&s.progress, t->task.rounds);
    if (board_open(&s.board, t, "sim", path, &s.progress, &error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    printf("%s on %u nodes, %s\n%llu rounds, simulated; run folder %s\n", t->experiment->name,
           t->nodes, sl_learner_describe(t->learner), (unsigned long long)t->task.rounds, path);
    trial_warn(t);
    int result = simulate(&s, t, &error);
    if (result != 0)
        board_keep(&s.board);
    board_close(&s.board);
    if (result == 0)
        return TOOL_OK;
    complain("%s", error.text);
    return result == SL_ESTOPPED ? TOOL_INTERRUPTED : TOOL_FAILED;
}

int cmd_sim(int argc, char **argv) {
    options o;
    int code = options_parse(&o, argc, argv, OPTION_SET | OPTION_OUT);
    if (code == TOOL_OK && o.help) {
        fputs(help, stdout);
    } else if (code == TOOL_OK) {
        catch_signals(NULL);
        trial t = {0};
        sl_error error = {0};
        char path[SL_PATH_MAX];
        if (trial_open(&t, &o, &error) == 0) {
            choose_folder(&o, t.experiment, "", path);
            code = run_in(&t, path);
        } else {
            complain("%s", error.text);
            code = TOOL_USAGE;
        }
        trial_close(&t);
    }
    options_close(&o);
    return code;
}

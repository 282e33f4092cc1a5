/* cmd_doctor.c - `starling doctor`: what would go wrong on this host, and with the others, before
 * agents run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/file_kind.h"
#include "doctor/doctor.h"
#include "run/agent_options.h"

enum { WAIT_MAX_S = 86400 };

typedef struct doctor_request {
    options o; /* first: rows of options that others have, too, store there */
    bool json;
    uint64_t wait_s;
} doctor_request;

/* What is looked at where no experiment says it. */
static const char small[] =
    "{\"rounds\": 1, \"device\": \"auto\", \"topology\": {\"nodes\": 2, \"family\": \"complete\"},"
    " \"algorithm\": \"d-psgd\", \"optimizer\": {\"learning_rate\": 0.1}, \"model\": \"softmax\","
    " \"data\": {\"name\": \"digits\", \"train_samples\": 20, \"test_samples\": 10, \"batch\": 1}}";

static int open_given(doctor *d, sl_error *error) {
    trial t = {0};
    int result = refuse_topology_file(d->o->file, error);
    if (result == 0)
        result = sl_experiment_load(&t.experiment, d->o->file, d->o->overrides,
                                    d->o->override_count, error);
    if (result == 0) {
        look_at_device(&d->report, t.experiment);
        result = trial_prepare(&t, true, error);
    }
    if (result == 0)
        d->trial = t;
    else
        trial_close(&t);
    d->given = result == 0;
    return result;
}

static int open_small(doctor *d, sl_error *error) {
    trial t = {0};
    int result = sl_experiment_parse(&t.experiment, small, "doctor", ".", NULL, 0, error);
    if (result == 0 && d->o->file == NULL)
        look_at_device(&d->report, t.experiment);
    if (result == 0)
        result = trial_prepare(&t, true, error);
    if (result == 0)
        d->trial = t;
    else
        trial_close(&t);
    return result;
}

/* The experiment is good; or all but it is looked at. */
static int open_trial(doctor *d, sl_error *error) {
    if (d->o->file == NULL)
        return open_small(d, error);
    if (open_given(d, error) != 0) {
        report_fail(&d->report, "experiment", "correct it; the rest is looked at without it", "%s",
                    error->text);
        return open_small(d, error);
    }
    report_ok(&d->report, "experiment", "%s: %s, %u nodes", d->o->file, d->trial.experiment->name,
              d->trial.nodes);
    return 0;
}

static void look(doctor *d) {
    look_at_provider(d);
    look_at_processor(d);
    look_at_loopback(d);
    look_at_roster(d);
    look_at_cores(d);
    look_at_memory(d);
    look_at_descriptors(d);
    look_at_locked_memory(d);
    look_at_disk(d);
    look_at_keys(d);
    look_at_deadlines(d);
    look_at_names(d);
    const int listener = look_at_listening(d); /* from now on others are answered */
    look_at_page(d);
    look_at_others(d, listener);
    if (listener >= 0)
        close(listener);
}

static int run(void *request, char *const *operands, size_t count) {
    doctor_request *r = request;
    doctor d = {.o = &r->o, .wait_s = (double)r->wait_s};
    sl_error error;
    options_take_files(&r->o, operands, count);
    report_open(&d.report, r->json);
    if (open_trial(&d, &error) == 0)
        look(&d);
    else
        report_fail(&d.report, "library", "install it anew", "%s", error.text);
    sl_roster_close(&d.told);
    sl_launch_close(&d.launch);
    free(d.places);
    trial_close(&d.trial);
    return report_close(&d.report);
}

static const command_option
    option_wait = {"wait",
                   .argument = "S",
                   .otherwise = "0",
                   .help = "so many seconds for doctors of other ranks to come up, and to call "
                           "this one",
                   .take = take_whole,
                   .offset = offsetof(doctor_request, wait_s),
                   .max = WAIT_MAX_S},
    option_json = {"json", .help = "all that was seen as one JSON object", .take = take_switch,
                   .offset = offsetof(doctor_request, json)};
static const command_option *const rows[] = {&option_roster, &option_rank, &option_wait,
                                             &option_listen, &option_port, &option_out,
                                             &option_set,    &option_json, NULL};

const command doctor_command = {
    .name = "doctor",
    .summary = "say what would go wrong on this host, and with the others, and what helps",
    .operands = "EXPERIMENT",
    .operands_max = 1,
    .offer = OFFER_FILE,
    .text =
        "Looks at libraries, device, processor, limits, disk, keys and deadlines, with EXPERIMENT "
        "at all that it needs, and says in a line each what it has seen: ok, warn, or FAIL and "
        "what helps.\n\n"
        "With a roster, or under a launcher, it calls the doctors of all other ranks at their "
        "places, and answers them "
        "at its own: start it on all hosts with --rank and --wait, in place of agents. Without "
        "EXPERIMENT, PEERS is a file with a line HOST:PORT for each rank. Exit code 1: something "
        "would fail.",
    .options = rows,
    .request_bytes = sizeof(doctor_request),
    .set_defaults = options_set_defaults,
    .run = run,
};

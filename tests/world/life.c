/* life.c - see life.h. */
#include "life.h"

#include <signal.h>

#include "cli/signals.h"
#include "expected.h"
#include "run/reporter.h"

enum { first_port = 7000 };
static life_fate (*find_fate)(uint32_t rank, bool joins);

typedef struct life {
    reporter reporter;
    sl_agent *agent; /* that signals reach */
    sl_credentials *credentials;
    bool saves;
    bool joins;
    life_fate fate;
} life;

/* As run/cmd_agent.c's. */
static bool on_signal(void *context, int number) {
    const life *l = context;
    if (number == SIGINT || (number == SIGUSR1 && l->agent == NULL))
        return false;
    if (l->saves && l->agent != NULL && number != SIGNAL_END) {
        if (number == SIGTERM)
            sl_agent_leave(l->agent);
        else
            sl_agent_checkpoint(l->agent, number == SIGUSR2);
        return false;
    }
    if (l->agent != NULL)
        sl_agent_stop(l->agent);
    return true;
}

static int train(life *l, uint32_t rank, const sl_checkpoints *from, sl_agent **agent,
                 sl_error *why) {
    sl_checkpoints own = *from;
    orders told;
    sl_roster *roster = NULL;
    int code = report_wait_orders(l->reporter.fd, &told, why);
    if (code != 0)
        return code;
    const bool again = child_started_s(rank, 1) > 0;
    if (l->joins && again && told.port != first_port + rank)
        world_fail("agent %u is to join at port %u", rank, told.port);
    own.run_id = told.run_id;
    own.resume = own.resume && !l->joins;
    if (sl_security_is_unsaid(&experiment->security))
        code = report_wait_key(l->reporter.fd, &l->credentials, why);
    if (code == 0 && l->fate.refused)
        code = sl_fail(why, SL_EINVAL, "it cannot start");
    sl_agent_settings settings = {.experiment = experiment,
                                  .task = task,
                                  .rank = rank,
                                  .host = "127.0.0.1",
                                  .port = (uint16_t)(first_port + rank),
                                  .run_id = own.run_id,
                                  .credentials = l->credentials,
                                  .checkpoints = &own,
                                  .joins = l->joins,
                                  .observer = reporter_observer(&l->reporter)};
    settings.observer.log = NULL; /* there is no run folder */
    if (code == 0)
        code = sl_agent_open(agent, &settings, why);
    l->saves = true;
    l->agent = *agent;
    if (code == 0)
        code = reporter_join(&l->reporter, sl_agent_port(*agent), &roster, why);
    if (code == 0)
        code = sl_agent_run(*agent, roster, why);
    sl_roster_close(&roster);
    return code;
}

static int be_agent(uint32_t rank, bool joins, int pipe, const sl_checkpoints *from) {
    life l = {.reporter = REPORTER_OF(pipe), .joins = joins, .fate = find_fate(rank, joins)};
    sl_agent *agent = NULL;
    sl_error why = {0};
    process_wait(world_now() + l.fate.start_s);
    if (l.fate.silent)
        process_wait(1e301);
    child_catch(on_signal, &l);
    if (l.fate.exits)
        return 3;
    l.reporter.dimension = task.dimension;
    const int code = train(&l, rank, from, &agent, &why);
    reporter_end(&l.reporter, code, &why);
    l.agent = NULL;
    sl_agent_close(&agent);
    sl_credentials_close(&l.credentials);
    if (l.fate.hangs)
        process_wait(1e301);
    return code == 0 ? TOOL_OK : code == SL_ESAVED || code == SL_ELEFT ? TOOL_SAVED : TOOL_FAILED;
}

void life_open(life_fate (*fate)(uint32_t rank, bool joins)) {
    find_fate = fate;
    children_open(be_agent);
}

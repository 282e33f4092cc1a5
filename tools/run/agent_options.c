/* agent_options.c - the options of `starling agent`. */
#include "run/agent_options.h"

#include "cli/log.h"
#include "run/resume.h"

static int take_rank(void *request, const command_option *row, const char *text) {
    options *o = request;
    uint64_t rank = 0;
    o->has_rank =
        take_whole(&rank, &(command_option){row->name, .max = SL_NODES_MAX - 1}, text) == TOOL_OK;
    o->rank = (uint32_t)rank;
    return o->has_rank ? TOOL_OK : TOOL_USAGE;
}

static int take_report_fd(void *request, const command_option *row, const char *text) {
    uint64_t number = 0;
    int code = take_whole(&number, &(command_option){row->name, .max = 1 << 20}, text);
    ((options *)request)->report_fd = (int)number;
    return code;
}

const command_option
    option_rank = {"rank", .argument = "I",
                   .help = "which node this is, from 0; otherwise as the launcher says",
                   .take = take_rank},
    option_roster = {"roster",
                     .argument = "PEERS",
                     .help = "where the peers are: a file with a line HOST:PORT or [IPV6]:PORT for "
                             "each rank, a list of them with commas, or a pattern such as "
                             "host-{rank}.svc:7000; or hosts, as launchers list them, such as a "
                             "hostfile, $PBS_NODEFILE or $SLURM_JOB_NODELIST",
                     .take = take_text,
                     .offset = offsetof(options, roster),
                     .offer = OFFER_FILE},
    option_master = {"master", .argument = "HOST:PORT",
                     .help = "instead of a roster: rank 0's host, and a port where it tells the "
                             "others the roster, or one of the next 8 ports",
                     .take = take_text, .offset = offsetof(options, master)},
    option_listen = {"listen", .argument = "HOST:PORT",
                     .help = "where to listen, if not at the roster's place for this rank; port 0 "
                             "is any free one",
                     .take = take_text, .offset = offsetof(options, listen)},
    option_port = {"port",
                   .argument = "N",
                   .otherwise = "7400",
                   .help = "where the first rank of each host listens, if PEERS is a launcher's "
                           "list of hosts; the others at the next ports",
                   .take = take_whole,
                   .offset = offsetof(options, port),
                   .max = UINT16_MAX};

static const command_option
    option_run_id = {"run-id",
                     .argument = "N",
                     .help = "tells this run from others; equal on all peers; otherwise rank 0 "
                             "draws it, or it follows from the roster",
                     .take = take_whole,
                     .offset = offsetof(options, run_id),
                     .max = UINT64_MAX},
    option_join = {"join",
                   .help = "it must join a run that goes on (membership.on_loss \"continue\"), "
                           "with the model of one of the others: in the place of a lost process, "
                           "or with a rank beyond topology.nodes (membership.joiners); so it does "
                           "anyway, where the others train",
                   .take = take_switch, .offset = offsetof(options, join)},
    option_report_fd = {"report-fd", .argument = "FD", .hidden = true,
                        .help = "where `starling run` hears of this agent", .take = take_report_fd},
    option_resume_round = {"resume-round",     .argument = "R",
                           .hidden = true,     .help = "the round that `starling run` goes on from",
                           .take = take_whole, .offset = offsetof(options, resume_round),
                           .max = UINT64_MAX},
    option_own_out = {"out",
                      .argument = "DIR",
                      .otherwise = "runs/NAME-YYYYmmdd-HHMMSS-rankI",
                      .help = "the run folder",
                      .take = options_take_out,
                      .offer = OFFER_FOLDER};

const command_option *const agent_options[] = {
    &option_rank,      &option_roster, &option_master,       &option_listen, &option_port,
    &option_run_id,    &option_join,   &option_set,          &option_wide,   &option_own_out,
    &option_report_fd, &option_resume, &option_resume_round, &option_log,    NULL,
};

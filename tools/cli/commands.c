/* commands.c - starling itself: its subcommands, and what holds for all of them. */
#include <string.h>

#include "cli/tool.h"

static char *exit_codes(void) {
    return strdup("  0    it worked\n"
                  "  1    the run failed: a peer, the network, divergence, a disk\n"
                  "  2    bad usage or bad input; nothing was started\n"
                  "  3    some agents were lost and did not come back, or it lacked a quorum\n"
                  "  75   ended on request (SIGTERM), after a checkpoint: --resume goes on; an\n"
                  "       agent: or it has left, and the others go on\n"
                  "  130  interrupted (Ctrl-C); what was recorded so far is kept\n");
}

static char *general_options(void) {
    return strdup("  --version   the release and the protocol it speaks\n"
                  "  -h, --help  this text\n");
}

static const command *const commands[] = {
    &run_command,        &agent_command,    &sim_command,    &compare_command,
    &status_command,     &reload_command,   &top_command,    &show_command,
    &checkpoint_command, &devices_command,  &doctor_command, &average_command,
    &check_command,      &topology_command, &keys_command,   NULL,
};

const command starling_command = {
    .name = "",
    .summary = "decentralized gossip training",
    .text = "Decentralized training: peers average their models with their neighbours only.",
    .commands = commands,
    .sections = {{"options", general_options}, {"exit codes", exit_codes}},
};

/* agent_options.h - the options of `starling agent`. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include "cli/tool.h"

extern const command_option *const agent_options[]; /* NULL ends them */
/* Those that others take, too. */
extern const command_option option_rank, option_roster, option_listen, option_port;

#endif

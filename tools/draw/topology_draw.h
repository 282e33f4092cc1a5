/* topology_draw.h - `starling topology draw`. */
#ifndef TOPOLOGY_DRAW_H
#define TOPOLOGY_DRAW_H

#include "cli/command.h"

extern const command topology_draw_command;

#endif

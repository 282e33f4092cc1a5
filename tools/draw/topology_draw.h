/* topology_draw.h - `starling topology draw`. */
#ifndef TOPOLOGY_DRAW_H
#define TOPOLOGY_DRAW_H

/* argv[0] is "draw"; an exit code. */
int topology_draw(int argc, char **argv);

#endif

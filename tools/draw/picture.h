/* picture.h - the panels of a topology's picture: the graph, its spectrum, and how fast it agrees.
 * Drawn by `starling topology draw`. */
#ifndef PICTURE_H
#define PICTURE_H

#include "draw/svg.h"
#include "starling/analysis.h"
#include "starling/layout.h"
#include "starling/spectrum.h"

/* Colours that stay apart for all eyes, and in grey. */
#define INK "#1f2933"
#define MUTED "#5f6b7a"
#define FAINT "#d9dfe6"
#define BLUE "#2a6496"
#define PALE_BLUE "#8fabc7"
#define ORANGE "#d9660b"
#define PALE_ORANGE "#fdeee0"

enum { TEXT_SIZE = 12, SMALL_SIZE = 11, HEADING_SIZE = 13 };

typedef struct box {
    double x, y, width, height;
} box;

/* Everything that is drawn of a topology; the arrays belong to it. */
typedef struct picture {
    const sl_topology *topology; /* borrowed */
    sl_structure structure;
    sl_stochasticity stochastic;
    sl_traffic traffic;
    sl_spectrum spectrum;
    double *real, *imaginary; /* (nodes) NULL: too many nodes */
    sl_layout layout;
    sl_point *points; /* (nodes) NULL: nodes are not shown one by one */
    double rho_round; /* rho, of a schedule per round */
    double rounds; /* until the error of the worst start is at most CURVE_FLOOR; infinite: never */
    uint32_t exact_after;   /* rounds; 0: never exact */
    double *worst, *random; /* errors after round 1, 2, ...: of the worst start (worst_count), of
                               random ones (random_count) */
    uint32_t worst_count, random_count;
} picture;

#define CURVE_FLOOR 1e-6
/* More lines than this are a tangle: then a picture of the matrix instead. */
enum { PANEL_LINES_MAX = 6000 };

int picture_gather(picture *out, const sl_topology *topology, sl_error *error);
void picture_free(picture *f);

/* panel_graph.c; the legend is one line, centred. */
void panel_graph(svg *s, const picture *f, box b);
void panel_graph_legend(svg *s, const picture *f, svg_point at);
/* panel_spectrum.c */
void panel_spectrum(svg *s, const picture *f, box b);
/* panel_curve.c */
void panel_curve(svg *s, const picture *f, box b);

#endif

/* metrics.c - a run as Prometheus reads it: what no agent knows alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/exposition.h"
#include "board/state.h"

/* Of a round, between the last two recorded ones of which the distance is known. */
static double contraction(const sl_board_state *s) {
    const sl_recorded *last = NULL;
    for (size_t i = s->record_count; i-- > 0;) {
        const sl_recorded *r = &s->records[i];
        if (isnan(r->distance) || r->distance <= 0)
            continue;
        if (last != NULL)
            return pow(last->distance / r->distance, 1.0 / (double)(last->round - r->round));
        last = r;
    }
    return NAN;
}

static double mean(double sum, uint32_t count) {
    return count > 0 ? sum / count : NAN;
}

/* The last one that all have told of: then the distance is known. A lone agent never knows it:
 * the last one. */
static const sl_recorded *last_of(const sl_board_state *s) {
    static const sl_recorded none = {.averaged = NAN, .distance = NAN};
    for (size_t i = s->record_count; i-- > 0;)
        if (!isnan(s->records[i].distance))
            return &s->records[i];
    return s->record_count > 0 ? &s->records[s->record_count - 1] : &none;
}

static void write_all(FILE *out, const sl_board_state *s) {
    const sl_recorded *r = last_of(s);
    sl_exposition_number(out, "starling_rounds_total", "counter",
                         "Rounds that are recorded, the last of them.", (double)r->round);
    sl_exposition_number(out, "starling_loss", "gauge", "Mean loss of the nodes' last batches.",
                         mean(r->loss, r->losses));
    sl_exposition_number(out, "starling_held_out_accuracy_ratio", "gauge",
                         "Accuracy of the averaged model on held-out data.", r->averaged);
    sl_exposition_number(out, "starling_neighbour_distance", "gauge",
                         "Mean distance of neighbours' vectors.", mean(r->apart, r->aparts));
    sl_exposition_number(out, "starling_consensus_distance", "gauge",
                         "How far all models are from their mean.", r->distance);
    sl_exposition_number(out, "starling_contraction_ratio", "gauge",
                         "What a round has left of that, steps of gradients included.",
                         contraction(s));
    sl_exposition_number(out, "starling_contraction_predicted_ratio", "gauge",
                         "What a round of averaging alone would leave.", s->rho);
    sl_exposition_number(out, "starling_members", "gauge", "Nodes that take part.",
                         s->members != NULL ? s->member_count
                                            : sl_topology_nodes(s->experiment->topology));
}

char *sl_board_metrics_text(const sl_board_state *s) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    write_all(out, s);
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

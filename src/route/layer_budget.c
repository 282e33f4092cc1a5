/* layer_budget.c - see starling/layer_budget.h. */
#include "starling/layer_budget.h"

#include <math.h>

bool sl_has_layer_budget(const sl_compressor_config *compressor) {
    return compressor->fraction_min > 0 && sl_compressor_reads(compressor->kind, "fraction_min");
}

typedef struct layer {
    size_t first, behind; /* tensors */
    size_t from, end;     /* elements */
} layer;

static size_t begin_of(const sl_shapes *s, size_t tensor) {
    return tensor == 0 ? 0 : s->ends[tensor - 1];
}

static bool is_matrix(const sl_shapes *s, size_t tensor) {
    return s->rows == NULL || s->rows[tensor] > 1;
}

/* The one that ends before tensor `behind`. */
static layer layer_before(const sl_shapes *s, size_t behind) {
    size_t first = behind - 1;
    while (first > 0 && !is_matrix(s, first))
        first--;
    return (layer){first, behind, begin_of(s, first), begin_of(s, behind)};
}

static double backward_s(const sl_shapes *s, const sl_sending_costs *costs, const layer *l) {
    return costs->gradient_s *
           (sl_gradient_share(l->from, s->dimension) - sl_gradient_share(l->end, s->dimension));
}

static double sending_s(const sl_compressor_config *compressor, double fraction, const sl_shapes *s,
                        const sl_sending_costs *costs, const layer *l) {
    sl_compressor_config c = *compressor;
    double bits = 0;
    c.fraction = fraction;
    for (size_t t = l->first; t < l->behind; t++)
        bits += sl_compressor_bits(&c, s->ends[t] - begin_of(s, t));
    return costs->startup_s + costs->bit_s * bits;
}

/* The largest in the compressor's range that takes no longer than `within_s`; else the least. */
static double find_fraction(const sl_compressor_config *c, const sl_shapes *s,
                            const sl_sending_costs *costs, const layer *l, double within_s) {
    const double size = (double)(l->end - l->from);
    double low = ceil(c->fraction_min * size), high = fmax(low, floor(c->fraction * size)) + 1;
    while (high - low > 1) {
        const double middle = floor((low + high) / 2);
        if (sending_s(c, middle / size, s, costs, l) <= within_s)
            low = middle;
        else
            high = middle;
    }
    return low / size;
}

void sl_layer_fractions(double *fractions, const sl_compressor_config *compressor,
                        const sl_shapes *shapes, const sl_sending_costs *costs) {
    for (size_t behind = shapes->count; behind > 0;) {
        const layer l = layer_before(shapes, behind);
        double within_s = 0;
        if (l.first > 0) {
            const layer below = layer_before(shapes, l.first);
            within_s = backward_s(shapes, costs, &below);
        }
        const double fraction = find_fraction(compressor, shapes, costs, &l, within_s);
        for (size_t t = l.first; t < behind; t++)
            fractions[t] = fraction;
        behind = l.first;
    }
}

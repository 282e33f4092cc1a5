/* family.h - what a graph family is: one constant for each, beside the code that draws it, and a
 * table of the parameters that families take. */
#ifndef SL_FAMILY_H
#define SL_FAMILY_H

#include "starling/family.h"
#include "topology/graph/graph.h"

/* Parameters, in the order in which they are listed. */
typedef enum parameter_id {
    PARAMETER_BASE,
    PARAMETER_SIDES,
    PARAMETER_OFFSETS,
    PARAMETER_DEGREE,
    PARAMETER_ARITY,
    PARAMETER_PART,
    PARAMETER_CLIQUE,
    PARAMETER_CLUSTERS,
    PARAMETER_JOINED,
    PARAMETER_BRIDGES,
    PARAMETER_BRIDGE_EVERY,
    PARAMETER_PROBABILITY,
    PARAMETER_RADIUS,
    PARAMETER_PEERS,
    PARAMETER_BUDGET,
    PARAMETER_PERIOD,
    PARAMETER_SEED
} parameter_id;
enum { PARAMETERS = PARAMETER_SEED + 1 };
#define TAKES(name) (1u << PARAMETER_##name)

typedef struct parameter {
    const char *name, *meaning;
    enum {
        WHOLE,
        WHOLES,
        FRACTION,
        FAMILY,
        SEED
    } kind;              /* uint32_t, list of them, double in (0, 1], sl_family, uint64_t */
    size_t at, count_at; /* where in sl_topology_spec; WHOLES: and where their number */
    uint32_t count_max;  /* WHOLES */
} parameter;
extern const parameter sl_parameters[PARAMETERS];
bool sl_parameter_is_given(const sl_topology_spec *spec, const parameter *p);

/* What MATCHA takes beside the parameters of its base graph. */
#define MATCHA_OWN (TAKES(BASE) | TAKES(BUDGET) | TAKES(PERIOD) | TAKES(SEED))

typedef struct family family;
struct family {
    sl_family_info info;
    unsigned takes, needs; /* sets of parameters; what it needs it also takes */
    uint32_t nodes_min;
    const char *raise;     /* random families: what makes a connected graph likelier */
    uint32_t attempts_max; /* at a connected one; 0: 100 */
    /* With which parameters sl_ranking_open() looks at it. */
    enum { RANKED_NOT, RANKED_PLAIN, RANKED_DEGREES } ranked;
    /* Families made from another graph (clusters, matcha): where sl_topology_spec names its family,
     * and what it is; f is NULL for what is no family. Errors are put after the parameter's name.
     */
    size_t inner_at;
    int (*describe_inner)(sl_topology_spec *inner, const sl_topology_spec *spec, const family *f,
                          sl_error *error);
    bool endless; /* a schedule that never repeats (topology/graph/endless.h) */
    bool shares;  /* its parameters stand beside the family's own */
    /* Fills in what is not given and refuses what cannot be, at a cost that 10^9 nodes do not
     * notice; NULL: nothing to do. */
    int (*settle)(sl_topology_spec *spec, sl_error *error);
    /* The edges of each slot; with their weights where info.weighting is SL_WEIGHTING_EXPLICIT.
     * spec is settled, of two nodes at least; out->inner has the edges of the inner graph. */
    int (*generate)(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                    sl_error *error);
};

#define EXAMPLES(...)                                                                              \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

#define FAMILY_CONSTANT(NAME, name) extern const family sl_##name##_family;
SL_FAMILIES_OF(FAMILY_CONSTANT)
#undef FAMILY_CONSTANT

/* ---- table.c ---- */

/* NULL for SL_FAMILY_EDGES and for what is no family. */
const family *sl_family_of(sl_family which);
/* Checks a description and fills it in. */
int sl_family_settle(sl_topology_spec *spec, sl_error *error);
/* The edges of a settled description of two nodes at least. */
int sl_family_generate(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                       sl_error *error);

/* ---- settle.c: what families share ---- */

/* SL_EINVAL when a graph of so many directed edges is beyond what can be kept. */
int sl_family_check_edges(const family *f, const sl_topology_spec *spec, uint64_t edges,
                          sl_error *error);
/* sides: as given, their product checked; none: two, as equal as can be. */
int sl_family_settle_sides(sl_topology_spec *spec, sl_error *error);
/* Two sides, as equal as they can be: 1 and n for a prime n. */
void sl_family_squarest(sl_topology_spec *spec);
/* period: the length of a random schedule. */
int sl_family_settle_period(sl_topology_spec *spec, sl_error *error);
/* degree: even, and less than the nodes. */
int sl_family_settle_even_degree(sl_topology_spec *spec, sl_error *error);
int sl_family_check_power_of_two(const family *f, const sl_topology_spec *spec, sl_error *error);

/* Everyone takes the mean over the nodes first + i stride (i < size) that differ from it in one
 * digit of i alone, the one of that place and radix. */
void sl_average_digit(edge_list *list, uint32_t first, uint32_t stride, uint32_t size,
                      uint32_t place, uint32_t radix);

#endif

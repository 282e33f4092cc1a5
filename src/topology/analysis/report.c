/* report.c - the short report of `starling check`; see starling/analysis.h. */
#include "starling/spectrum.h"
#include "topology/analysis/union.h"

int sl_topology_analyse(const sl_topology *topology, sl_topology_report *out, const sl_watch *watch,
                        sl_error *error) {
    sl_structure degrees = {0};
    sl_topology_degrees(&degrees, topology);
    sl_topology_report r = {
        .nodes = topology->graph.nodes,
        .period = topology->graph.period,
        .edges = degrees.edges,
        .degree_min = degrees.degree_min,
        .degree_max = degrees.degree_max,
        .degree_mean = degrees.degree_mean,
        .stochastic = topology->graph.stochastic,
    };
    sl_spectrum s;
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.watch = watch;
    int result = sl_graph_is_connected(&r.connected, &topology->graph, error);
    if (result == 0)
        result = sl_spectrum_compute(&s, topology, &settings, error);
    if (result != 0)
        return result;
    r.spectrum_known = s.converged;
    r.lambda_2 = s.lambda_2;
    r.lambda_n = s.lambda_n;
    r.rho = s.rho;
    r.gap = s.gap;
    *out = r;
    return 0;
}

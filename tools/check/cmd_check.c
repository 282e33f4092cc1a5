/* cmd_check.c - `starling check`: validates an experiment or a topology and says what it means. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/file_kind.h"
#include "topology/topology_report.h"

static const char help[] =
    "usage: starling check EXPERIMENT [--set KEY=VALUE ...]\n"
    "       starling check TOPOLOGY\n"
    "\n"
    "Validates the file. Of an experiment: the resolved configuration with all defaults filled\n"
    "in, the model and its data, and how algorithm and compressor suit each other. Of the "
    "topology: nodes, edges, degrees, whether it is connected\n"
    "and stochastic (with the largest |sum - 1|), and how fast it mixes: the eigenvalues\n"
    "lambda_2 and lambda_n, rho = max(|lambda_2|, |lambda_n|) and the spectral gap 1 - rho.\n"
    "\n"
    "  --set KEY=VALUE  overrides a key of the experiment\n"
    "  --help           this text\n"
    "\n"
    "keys of an experiment:\n";

#define ROUNDING 1e-12 /* of a spectral gap */

/* With a gap of `hopeless` or less nodes never agree, which is worth a word. */
static int analyse(const sl_topology *topology, double hopeless, sl_error *error) {
    sl_topology_report report;
    int result = sl_topology_analyse(topology, &report, error);
    if (result != 0)
        return result;
    topology_report_print(&report);
    if (report.gap <= hopeless)
        puts("  warning             nodes never agree by averaging with this W; starling topology "
             "analyse says why");
    return 0;
}

static int check_topology(const char *path, sl_error *error) {
    sl_topology *topology = NULL;
    int result = sl_topology_load(&topology, path, error);
    if (result == 0)
        result = analyse(topology, 0, error);
    sl_topology_close(&topology);
    return result;
}

static void print_replicas(const sl_topology *topology) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < sl_topology_nodes(topology); i++) {
        const uint32_t *peers, count = sl_topology_peers(topology, i, &peers);
        most = count > most ? count : most;
    }
    printf("  replicas            one of each neighbour, up to %u vectors a node; each message "
           "goes to all of them\n",
           most);
}

static void print_plan(const sl_plan *plan, const sl_topology *topology, size_t dimension) {
    const sl_compressor_config *c = &plan->config.compressor;
    printf("algorithm\n  %s\n  compressor          %s", plan->config.name,
           sl_compressor_name(c->kind));
    if (c->kind != SL_COMPRESSOR_IDENTITY && plan->quality.unbiased)
        printf(", unbiased, omega %.4g", plan->quality.omega);
    if (c->kind != SL_COMPRESSOR_IDENTITY && plan->quality.is_contractive)
        printf(", contractive, delta at least %.4g", plan->quality.delta);
    printf("\n  message             %.0f bytes, %.3g of the vector's\n",
           ceil(sl_compressor_bits(c, dimension) / 8),
           sl_compressor_bits(c, dimension) / (32 * (double)dimension));
    if (plan->config.replicas == SL_REPLICAS_PER_NEIGHBOUR)
        print_replicas(topology);
    if (plan->step_size > 0)
        printf("  step in use         %.4g (%s)\n", plan->step_size,
               plan->step_size_derived ? "derived" : "as configured");
    if (plan->step_size > 0 && !isnan(plan->step_size_theory))
        printf("  step by theory      %.4g (sufficient, far from necessary)\n",
               plan->step_size_theory);
    if (plan->warning[0] != '\0')
        printf("  warning             %s\n", plan->warning);
}

static int check_experiment(const options *o, sl_error *error) {
    trial t = {0};
    int result = trial_open(&t, o, error);
    if (result != 0)
        return result;
    char *json = sl_experiment_json(t.experiment);
    if (json == NULL) {
        result = sl_fail(error, SL_ENOMEM, "out of memory");
    } else {
        printf("%s\n\nlearner\n  %s\n  %llu rounds\n", json, sl_learner_describe(t.learner),
               (unsigned long long)t.task.rounds);
        print_plan(&t.plan, t.experiment->topology, t.task.dimension);
        result = analyse(t.experiment->topology, -ROUNDING,
                         error); /* of a gap of 0 the algorithm's fit has spoken */
    }
    free(json);
    trial_close(&t);
    return result;
}

static void print_help(void) {
    char *keys = sl_experiment_keys_help();
    fputs(help, stdout);
    if (keys != NULL)
        fputs(keys, stdout);
    free(keys);
}

int cmd_check(int argc, char **argv) {
    options o;
    int code = options_parse(&o, argc, argv, OPTION_SET);
    if (code == TOOL_OK && o.help) {
        print_help();
    } else if (code == TOOL_OK) {
        sl_error error = {0};
        int result = is_topology_file(o.file) ? check_topology(o.file, &error)
                                              : check_experiment(&o, &error);
        if (result != 0) {
            complain("%s", error.text);
            code = TOOL_USAGE;
        }
    }
    options_close(&o);
    return code;
}

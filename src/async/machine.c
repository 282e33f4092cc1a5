/* machine.c - see machine.h. */
#include "async/machine.h"

int sl_machine_open(sl_machine *out, const sl_node_settings *settings, sl_error *error) {
    const sl_algorithm *algorithm = sl_algorithm_of(&settings->plan->config, error);
    *out = (sl_machine){0};
    if (algorithm == NULL)
        return SL_EINVAL;
    return algorithm->async != NULL ? sl_async_open(&out->own, settings, error)
                                    : sl_node_open(&out->rounds, settings, error);
}

void sl_machine_close(sl_machine *m) {
    sl_async_close(&m->own);
    sl_node_close(&m->rounds);
}

int sl_machine_name_wait(const sl_machine *m, sl_error *error) {
    return m->own != NULL ? sl_async_name_wait(m->own, error) : sl_node_name_wait(m->rounds, error);
}

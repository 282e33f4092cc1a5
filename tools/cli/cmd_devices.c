/* cmd_devices.c - `starling devices`: what `device` in an experiment can be on this machine. */
#include <stdio.h>

#include "cli/tool.h"

enum { DEVICES_MAX = 64 };

static void print_gpu(const sl_device_info *d) {
    char name[32];
    snprintf(name, sizeof name, "cuda:%d", d->index);
    if (!d->usable)
        tell_line("%-10s not usable: %s", name, d->reason);
    else if (d->emulated)
        printf("%-10s %s: for tests, no GPU\n", name, d->name);
    else
        printf("%-10s %s, compute capability %d.%d, %.1f GiB\n", name, d->name, d->major, d->minor,
               (double)d->bytes / (1 << 30));
}

static void list(void) {
    static sl_device_info devices[DEVICES_MAX];
    char reason[SL_DEVICE_TEXT_MAX];
    size_t count = sl_devices_list(devices, DEVICES_MAX, reason);
    printf("%-10s always there\n", "cpu");
    for (size_t i = 0; i < count && i < DEVICES_MAX; i++)
        print_gpu(&devices[i]);
    if (count == 0)
        tell_line("no GPU: %s", reason);
}

static int run(void *request, char *const *operands, size_t count) {
    (void)request;
    (void)operands;
    (void)count;
    list();
    return TOOL_OK;
}

const command devices_command = {
    .name = "devices",
    .summary = "list the GPUs that an experiment can use, or say why there is none",
    .text = "Lists what `device` in an experiment can be on this machine: the CPU, and GPUs. "
            "GPUs are used through a plug-in. Where there is none, one line says why.",
    .run = run,
};

/* machine.c - the libraries, the processor and the device that agents will use here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "doctor/doctor.h"
#include "starling/kernels.h"

/* Where it cannot be had, all else is looked at as on the CPU. */
void look_at_device(report *r, sl_experiment *e) {
    static const char name[] = "device";
    char note[SL_DEVICE_TEXT_MAX];
    sl_device_info found;
    sl_error error;
    if (sl_device_find(e->device, note, &error) != 0) {
        report_fail(r, name,
                    "install the GPU's driver and the plug-in libstarling-cuda.so (`starling "
                    "devices` lists what there is), or say device \"cpu\"",
                    "%s", error.text);
        strcpy(e->device, "cpu");
    } else if (!sl_device_describe(e->device, &found)) {
        report_ok(r, name, "%s", note[0] != '\0' ? note : "the CPU, as the experiment says");
    } else {
        report_ok(r, name, "%s, %.1f GiB%s", found.name, (double)found.bytes / (1 << 30),
                  found.emulated ? ": for tests, no GPU" : "");
    }
}

void look_at_provider(doctor *d) {
    const char *provider = d->trial.experiment->transport.provider;
    char note[SL_PATH_NOTE_MAX];
    sl_error error;
    if (trial_name_path(&d->trial, note, &error) != 0)
        report_fail(&d->report, "provider", "", "%s", error.text);
    else
        report_ok(&d->report, "provider", "starling %s (protocol %u) finds \"%s\"%s%s",
                  sl_version(), SL_PROTOCOL_VERSION, provider, note[0] != '\0' ? "; " : "", note);
}

/* OpenBLAS's own names of what it takes where it knows no better. */
static bool is_old_core(const char *core) {
    static const char *const old[] = {"Prescott", "Katmai", "Coppermine", "Northwood", "Banias",
                                      "Core2",    "Penryn", "generic",    "Unknown"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strcasecmp(core, old[i]) == 0)
            return true;
    return false;
}

#ifdef __x86_64__
static const bool is_x86 = true;
#else
static const bool is_x86 = false;
#endif

void look_at_processor(doctor *d) {
    const char *kernels = sl_kernels_name(), *core = sl_learner_blas(),
               *said = getenv("STARLING_KERNELS"), *wanted = getenv("OPENBLAS_CORETYPE");
    const bool is_plain = strcmp(kernels, "plain") == 0;
    if (said != NULL && said[0] != '\0')
        report_warn(&d->report, "processor", "unset it, unless bits of another host are wanted",
                    "STARLING_KERNELS=%s keeps the processor's best instructions from being chosen",
                    said);
    else if (is_plain && is_x86)
        report_warn(&d->report, "processor", "take a host with AVX2, or expect slow rounds",
                    "it has no AVX2: kernels are plain C");
    else
        report_ok(&d->report, "processor", "kernels for %s", kernels);
    if (wanted != NULL && wanted[0] != '\0' &&
        (strcasecmp(wanted, core) != 0 || (!is_plain && is_old_core(core))))
        report_warn(&d->report, "OpenBLAS", "unset it, or name a core that suits this processor",
                    "OPENBLAS_CORETYPE=%s makes it take kernels for %s", wanted, core);
    else if (!is_plain && is_old_core(core))
        report_warn(&d->report, "OpenBLAS",
                    "install a newer OpenBLAS, or set OPENBLAS_CORETYPE=Haswell (SkylakeX with "
                    "AVX-512)",
                    "it does not know this processor, and took the kernels of an old one: %s",
                    core);
    else
        report_ok(&d->report, "OpenBLAS", "kernels for %s%s", core,
                  wanted != NULL ? ", as OPENBLAS_CORETYPE says" : "");
}

/* limits.c - what the system lets agents take: cores, memory, descriptors, locked memory. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "starling/cores.h"

enum { TEXT_BYTES = 64, TRIED_BYTES_MAX = 1 << 30 };
static const double near_share = 0.8; /* of what there is */

static double megabytes(double bytes) {
    return 1e-6 * bytes;
}

/* ---- cores ---- */

void look_at_cores(doctor *d) {
    const double cores = sl_cores();
    if (d->agents > cores)
        report_warn(&d->report, "cores",
                    "give this host fewer agents, or more cores (taskset, cpuset, cpu.max)",
                    "%u agent%s will share %.3g: gradients take %.3g times as long", d->agents,
                    d->agents == 1 ? "" : "s", cores, d->agents / cores);
    else
        report_ok(&d->report, "cores", "%.3g for %u agent%s", cores, d->agents,
                  d->agents == 1 ? "" : "s");
}

/* ---- memory ---- */

static void say_memory(report *r, const sl_run_memory *m, uint32_t agents) {
    static const char remedy[] =
        "use fewer agents here or a smaller model, or raise the limit of the control group "
        "(memory.max, MemoryMax=)";
    const double needed = (double)m->agent * agents, there = (double)m->available;
    if (there == 0)
        report_ok(r, "memory", "the system does not say how much is free");
    else if (needed > there)
        report_fail(r, "memory", remedy, "%u agents need %.1f MB, and %.1f MB are left", agents,
                    megabytes(needed), megabytes(there));
    else if (needed > near_share * there)
        report_warn(r, "memory", remedy, "%u agents need %.1f MB of the %.1f MB that are left",
                    agents, megabytes(needed), megabytes(there));
    else
        report_ok(r, "memory", "%.1f MB of %.1f MB", megabytes(needed), megabytes(there));
}

static void say_address_space(report *r, const sl_run_memory *m) {
    if (m->limit == 0)
        report_ok(r, "address space", "no limit");
    else if (m->agent > m->limit)
        report_fail(r, "address space", "raise the limits: ulimit -v, ulimit -d (LimitAS=)",
                    "an agent needs %.1f MB, and the limits on a process leave %.1f MB",
                    megabytes((double)m->agent), megabytes((double)m->limit));
    else
        report_ok(r, "address space", "%.1f MB of %.1f MB", megabytes((double)m->agent),
                  megabytes((double)m->limit));
}

static void say_device_memory(report *r, const doctor *d, const sl_run_memory *m) {
    sl_device_info found;
    const double needed = (double)m->vectors * d->agents;
    if (!m->on_device || !sl_device_describe(d->trial.experiment->device, &found))
        return;
    if (needed > (double)found.bytes)
        report_fail(r, "device memory", "use fewer agents here, or a smaller model",
                    "vectors of %u agents take %.1f MB, and %s has %.1f MB", d->agents,
                    megabytes(needed), found.name, megabytes((double)found.bytes));
    else
        report_ok(r, "device memory", "vectors take %.1f MB of %.1f MB", megabytes(needed),
                  megabytes((double)found.bytes));
}

void look_at_memory(doctor *d) {
    sl_run_memory m;
    trial_memory(&d->trial, &m);
    say_memory(&d->report, &m, d->agents);
    say_address_space(&d->report, &m);
    say_device_memory(&d->report, d, &m);
}

/* ---- descriptors ---- */

void look_at_descriptors(doctor *d) {
    const uint64_t needed = sl_experiment_descriptors(d->trial.experiment);
    char remedy[TEXT_BYTES];
    struct rlimit limit;
    snprintf(remedy, sizeof remedy, "raise it: ulimit -n %llu (LimitNOFILE=)",
             (unsigned long long)(needed > 1024 ? 2 * needed : 1024));
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < needed)
        report_fail(&d->report, "descriptors", remedy,
                    "an agent needs up to %llu, and a process may have %llu",
                    (unsigned long long)needed, (unsigned long long)limit.rlim_cur);
    else
        report_ok(&d->report, "descriptors", "%llu of %llu", (unsigned long long)needed,
                  (unsigned long long)limit.rlim_cur);
}

/* ---- locked memory ---- */

/* Who is privileged may lock more. */
static bool may_lock(size_t bytes) {
    void *at = bytes <= TRIED_BYTES_MAX
                   ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                   : MAP_FAILED;
    const bool may = at != MAP_FAILED && mlock(at, bytes) == 0;
    if (at != MAP_FAILED)
        munmap(at, bytes);
    return may;
}

/* Memory that a card reads by itself: verbs'. The sockets of tcp take any. */
void look_at_locked_memory(doctor *d) {
    const char *provider = d->trial.experiment->transport.provider;
    const bool is_needed = strstr(provider, "tcp") == NULL;
    sl_run_memory m;
    struct rlimit limit;
    trial_memory(&d->trial, &m);
    const size_t needed = m.vectors + m.buffers;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return;
    if (!is_needed)
        report_ok(&d->report, "locked memory", "provider \"%s\" needs none", provider);
    else if (limit.rlim_cur < needed && !may_lock((size_t)limit.rlim_cur + 4096))
        report_fail(&d->report, "locked memory",
                    "raise it: ulimit -l unlimited (LimitMEMLOCK=infinity)",
                    "provider \"%s\" locks %.1f MB, and a process may lock %.1f MB", provider,
                    megabytes((double)needed), megabytes((double)limit.rlim_cur));
    else
        report_ok(&d->report, "locked memory", "%.1f MB may be locked", megabytes((double)needed));
}

/* registered.c - memory that a provider wants registered before it sends from it or receives into
 * it; see fabric.h. */
#include "world/fabric_state.h"

int sl_fabric_register_range(sl_fabric *f, void *base, size_t bytes, int cuda_index,
                             uint64_t access, struct fid_mr **mr, sl_error *error) {
    if (!f->registers)
        return 0;
    const struct iovec whole = {base, bytes};
    struct fi_mr_attr attr = {.mr_iov = &whole,
                              .iov_count = 1,
                              .access = access,
                              .requested_key = f->next_key++,
                              .iface = FI_HMEM_SYSTEM};
    if (cuda_index >= 0) {
        attr.iface = FI_HMEM_CUDA;
        attr.device.cuda = cuda_index;
    }
    int result = fi_mr_regattr(f->domain, &attr, 0, mr);
    if (result != 0 && cuda_index >= 0)
        return sl_fail(error, SL_ENET,
                       "fabric: registering %zu bytes of cuda:%d's memory failed: %s; "
                       "transport.gpu_direct \"off\" does without",
                       bytes, cuda_index, fi_strerror(-result));
    return result != 0
               ? sl_fail(error, SL_ENET,
                         "fabric: registering %zu bytes failed: %s; is the locked-memory limit "
                         "(ulimit -l) high enough?",
                         bytes, fi_strerror(-result))
               : 0;
}

int sl_fabric_register(sl_fabric *f, void *base, size_t bytes, int cuda_index, sl_error *error) {
    if (f->region_count == REGIONS_MAX)
        return sl_fail(error, SL_EINVAL, "fabric: more than %d memory regions", REGIONS_MAX);
    region *r = &f->regions[f->region_count];
    *r = (region){base, bytes, NULL};
    int result =
        sl_fabric_register_range(f, base, bytes, cuda_index, FI_SEND | FI_RECV, &r->mr, error);
    if (result == 0)
        f->region_count++;
    return result;
}

int sl_fabric_lend(sl_fabric *f, void *base, size_t bytes, int cuda_index, sl_error *error) {
    if (f->lent.base == base && f->lent.bytes == bytes)
        return 0;
    CLOSE(f->lent.mr);
    f->lent = (region){base, bytes, NULL};
    return sl_fabric_register_range(f, base, bytes, cuda_index, FI_SEND, &f->lent.mr, error);
}

static bool holds(const region *r, const void *memory) {
    return (const char *)memory >= r->base && (const char *)memory < r->base + r->bytes;
}

void *sl_fabric_descriptor(const sl_fabric *f, const void *memory) {
    if (f->registers && holds(&f->lent, memory))
        return fi_mr_desc(f->lent.mr);
    for (size_t i = 0; f->registers && i < f->region_count; i++) {
        const region *r = &f->regions[i];
        if (holds(r, memory))
            return fi_mr_desc(r->mr);
    }
    return NULL;
}

/* cut_file.c - see cut_file.h. */
#include "checkpoint/cut_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "checkpoint/image_reader.h"

void sl_cut_path(char out[SL_CUT_PATH_MAX], const char *folder, sl_checkpoint_file file) {
    snprintf(out, SL_CUT_PATH_MAX, "%s/round-%" PRIu64 "-rank-%u.safetensors", folder, file.round,
             file.rank);
}

bool sl_cut_name_read(sl_checkpoint_file *out, const char *name) {
    char again[SL_CUT_PATH_MAX];
    sl_checkpoint_file file;
    if (sscanf(name, "round-%" SCNu64 "-rank-%" SCNu32, &file.round, &file.rank) != 2)
        return false;
    sl_cut_path(again, ".", file);
    *out = file;
    return strcmp(again + strlen("./"), name) == 0; /* no other spelling of the numbers */
}

/* ---- writing ---- */

static int write_beside(const sl_image *image, size_t bytes, const char *path) {
    int handle, result = sl_disk_create(&handle, path);
    if (result != 0)
        return result;
    result = sl_disk_append(handle, image->bytes, bytes);
    if (result == 0)
        result = sl_disk_sync(handle);
    const int closed = sl_disk_close(handle);
    return result != 0 ? result : closed;
}

int sl_cut_write(const sl_image *image, size_t bytes, const char *folder, sl_error *error) {
    char path[SL_CUT_PATH_MAX], beside[SL_CUT_PATH_MAX + 8];
    sl_cut_path(path, folder, (sl_checkpoint_file){image->round, image->rank});
    snprintf(beside, sizeof beside, "%s.new", path);
    int result = write_beside(image, bytes, beside);
    if (result == 0)
        result = sl_disk_rename(beside, path);
    if (result != 0)
        sl_disk_remove(beside);
    if (result == 0 && (result = sl_disk_sync_folder(folder)) != 0)
        sl_disk_remove(path); /* nobody knows whether it would be there after a crash */
    return result == 0
               ? 0
               : sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(result));
}

/* ---- reading ---- */

typedef struct cut {
    char path[SL_CUT_PATH_MAX];
    int handle;
    sl_image_reader reader;
} cut;

static void close_cut(cut *c) {
    if (c->handle >= 0)
        sl_disk_close(c->handle);
    sl_image_reader_close(&c->reader);
}

static int open_cut(cut *c, const char *folder, sl_checkpoint_file file, sl_error *error) {
    *c = (cut){.handle = -1};
    sl_cut_path(c->path, folder, file);
    uint64_t bytes;
    int why = sl_disk_open(&c->handle, &bytes, c->path);
    if (why != 0)
        return sl_fail(error, SL_EFILE, "%s: %s", c->path,
                       why == EINVAL ? "is not a regular file, as a checkpoint is" : strerror(why));
    const sl_image_source source = {.name = c->path, .handle = c->handle, .bytes = bytes};
    return sl_image_reader_open(&c->reader, &source, error);
}

static int check_head(const sl_image_reader *r, sl_checkpoint_file file,
                      const sl_checkpoint_owner *owner, sl_error *error) {
    int result = sl_image_reader_expect(r, "rank", "rank", file.rank, error);
    if (result == 0)
        result = sl_image_reader_expect(r, "state.round", "round", file.round, error);
    return result == 0 && owner != NULL ? sl_image_reader_expect_owner(r, owner, error) : result;
}

int sl_cut_load(const char *folder, sl_checkpoint_file file, const sl_checkpoint_owner *owner,
                const sl_machine *node, bool view_begins, const sl_vec_ops *vec,
                const sl_image_extras *extras, sl_error *error) {
    cut c;
    int result = open_cut(&c, folder, file, error);
    if (result == 0)
        result = check_head(&c.reader, file, owner, error);
    if (result == 0)
        result = sl_image_reader_load(&c.reader, owner->dimension, node, view_begins, vec, extras,
                                      error);
    close_cut(&c);
    return result;
}

int sl_checkpoint_model(float *x, size_t dimension, double *weight, const char *folder,
                        sl_checkpoint_file file, sl_error *error) {
    cut c;
    const sl_piece number = {.name = "push_sum_weight", .real = weight};
    int result = open_cut(&c, folder, file, error);
    if (result == 0)
        result = check_head(&c.reader, file, NULL, error);
    if (result == 0)
        result = sl_image_reader_number(&c.reader, &number, error);
    if (result == 0)
        result = sl_image_reader_vector(&c.reader, "model", x, dimension, error);
    close_cut(&c);
    return result;
}

int sl_checkpoint_view_of(sl_checkpoint_view *out, const char *folder, sl_checkpoint_file file,
                          sl_error *error) {
    cut c;
    int result = open_cut(&c, folder, file, error);
    if (result == 0)
        result = check_head(&c.reader, file, NULL, error);
    *out = (sl_checkpoint_view){0};
    const bool has_one =
        result == 0 && sl_image_reader_field(&c.reader, "state." SL_VIEW_NAME) != NULL;
    sl_piece pieces[SL_VIEW_PIECES];
    sl_checkpoint_view_pieces(out, pieces);
    for (int i = 0; has_one && i < SL_VIEW_PIECES && result == 0; i++)
        result = sl_image_reader_number(&c.reader, &pieces[i], error);
    close_cut(&c);
    return result;
}

int sl_checkpoint_begins(uint64_t *round, const char *folder, sl_checkpoint_file file,
                         sl_error *error) {
    cut c;
    const sl_piece own = {.name = SL_OWN_ROUND_NAME, .whole = round};
    *round = file.round;
    int result = open_cut(&c, folder, file, error);
    if (result == 0)
        result = check_head(&c.reader, file, NULL, error);
    if (result == 0 && sl_image_reader_field(&c.reader, "state." SL_OWN_ROUND_NAME) != NULL)
        result = sl_image_reader_number(&c.reader, &own, error);
    close_cut(&c);
    return result;
}

int sl_checkpoint_check(const char *folder, sl_checkpoint_file file,
                        const sl_checkpoint_owner *owner, uint32_t *nodes, sl_error *error) {
    cut c;
    int result = open_cut(&c, folder, file, error);
    if (result == 0)
        result = check_head(&c.reader, file, owner, error);
    if (result == 0)
        result = sl_image_reader_check(&c.reader, error);
    const char *said = result == 0 ? sl_image_reader_field(&c.reader, "nodes") : NULL;
    if (result == 0 && nodes != NULL)
        *nodes = (uint32_t)strtoul(said != NULL ? said : "0", NULL, 10);
    close_cut(&c);
    return result;
}

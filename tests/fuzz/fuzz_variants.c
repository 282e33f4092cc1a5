/* fuzz_variants.c - experiments with variants, as `starling compare` reads them. Names are distinct
 * and name folders; every variant has an experiment. */
#include "compare/variants.h"
#include "folder.h"
#include "text.h"

static const char *file_path(void) {
    static char path[FILE_PATH_MAX];
    snprintf(path, sizeof path, "%s/input.json", folder_path());
    return path;
}

static void check(const variants *v) {
    assert(v->count > 0);
    for (size_t i = 0; i < v->count; i++) {
        const char *name = v->items[i].name;
        assert(v->items[i].experiment != NULL && name[0] != '\0' && strchr(name, '/') == NULL);
        for (size_t k = 0; k < i; k++)
            assert(strcmp(v->items[k].name, name) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size), *const path = (char *)file_path();
    if (text != NULL && !has_large_number(text)) {
        folder_write("input.json", data, size);
        const options o = {.files = &path, .file_count = 1};
        variants v;
        sl_error error;
        if (variants_load(&v, &o, &error) == 0)
            check(&v);
        variants_close(&v);
    }
    free(text);
    return 0;
}

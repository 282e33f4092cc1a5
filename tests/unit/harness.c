/* harness.c - see harness.h. */
#include "harness.h"

#include <errno.h>
#include <stdarg.h>

int run_suite(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- what a test opens ---- */

typedef struct opened {
    void *object;
    void (*close)(void *object);
} opened;

static opened *list;
static size_t list_count, list_room;

void *close_behind(void *object, void (*close)(void *object)) {
    if (list_count == list_room) {
        list_room = list_room > 0 ? 2 * list_room : 64;
        list = realloc(list, list_room * sizeof *list);
        if (list == NULL)
            abort();
    }
    list[list_count++] = (opened){object, close};
    return object;
}

void close_now(void *object) {
    for (size_t i = list_count; i-- > 0;)
        if (list[i].object == object) {
            list[i].close(object);
            memmove(list + i, list + i + 1, (--list_count - i) * sizeof *list);
            return;
        }
    abort();
}

float *new_floats(size_t count) {
    float *zeros = calloc(count, sizeof *zeros);
    ck_assert_ptr_nonnull(zeros);
    return close_behind(zeros, free);
}

const char *quoted(const char *text) {
    char *copy = text != NULL ? close_behind(strdup(text), free) : NULL;
    for (char *at = copy; at != NULL && (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    return copy;
}

const char *printed(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    ck_assert_int_ge(vasprintf(&text, format, arguments), 0);
    va_end(arguments);
    return close_behind(text, free);
}

static void close_all(void) {
    while (list_count > 0)
        close_now(list[list_count - 1].object);
    free(list);
    list = NULL;
    list_room = 0;
}

/* ---- tests that add themselves ---- */

enum { ENTRIES = 128 };
static harness_entry entries[ENTRIES];
static int entry_count;

void harness_add(harness_entry entry) {
    if (entry_count == ENTRIES)
        abort();
    entries[entry_count++] = entry;
}

static int compare(const void *a, const void *b) {
    return ((const harness_entry *)a)->line - ((const harness_entry *)b)->line;
}

int run_tests(const char *name) {
    Suite *suite = suite_create(name);
    TCase *test_case = NULL;
    SFun setup = NULL, teardown = NULL;
    qsort(entries, (size_t)entry_count, sizeof *entries, compare);
    for (const harness_entry *e = entries; e < entries + entry_count; e++) {
        if (e->test == NULL) {
            setup = e->setup;
            teardown = e->teardown;
            test_case = NULL;
            continue;
        }
        if (test_case == NULL) {
            test_case = tcase_create(name);
            tcase_set_timeout(test_case, 240);
            tcase_add_checked_fixture(test_case, NULL, close_all); /* behind the next one's */
            tcase_add_checked_fixture(test_case, setup, teardown);
            suite_add_tcase(suite, test_case);
        }
        tcase_add_loop_test(test_case, e->test, 0, e->count);
    }
    return run_suite(suite);
}

/* Of a file that has none. */
__attribute__((weak)) int main(void) {
    return run_tests(program_invocation_short_name);
}

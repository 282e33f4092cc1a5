/* task_facts.c - see task_facts.h. */
#include "compare/task_facts.h"

#include <stdlib.h>
#include <string.h>

static int no_memory(sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "out of memory for the shapes of a model");
}

/* count 0, or from NULL: NULL. */
static int copy(size_t **out, const size_t *from, size_t count, sl_error *error) {
    *out = NULL;
    if (from == NULL || count == 0)
        return 0;
    *out = malloc(count * sizeof *from);
    if (*out == NULL)
        return no_memory(error);
    memcpy(*out, from, count * sizeof *from);
    return 0;
}

static double samples_of(void *context, uint32_t rank) {
    const double *samples = context;
    return samples[rank];
}

/* f->samples is filled in from now on. */
static int open_samples(task_facts *f, size_t count, sl_error *error) {
    f->sample_count = count;
    f->samples = count > 0 ? calloc(count, sizeof *f->samples) : NULL;
    f->task.context = f->samples;
    f->task.samples = count > 0 ? samples_of : NULL;
    return count > 0 && f->samples == NULL ? no_memory(error) : 0;
}

int task_facts_take(task_facts *out, const sl_task *task, uint32_t nodes, double operations,
                    sl_error *error) {
    task_facts f = {.known = true, .operations = operations};
    f.task = (sl_task){.dimension = task->dimension,
                       .rounds = task->rounds,
                       .gradient_seconds = task->gradient_seconds,
                       .epoch_rounds = task->epoch_rounds,
                       .tensor_count = task->tensor_ends != NULL ? task->tensor_count : 0};
    int result = copy(&f.ends, task->tensor_ends, f.task.tensor_count, error);
    if (result == 0)
        result = copy(&f.rows, task->tensor_rows, f.task.tensor_count, error);
    if (result == 0)
        result = open_samples(&f, task->samples != NULL ? nodes : 0, error);
    for (uint32_t i = 0; i < f.sample_count && result == 0; i++)
        f.samples[i] = task->samples(task->context, i);
    f.task.tensor_ends = f.ends;
    f.task.tensor_rows = f.rows;
    if (result == 0)
        *out = f;
    else
        task_facts_close(&f);
    return result;
}

static json_t *list_of(const size_t *numbers, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count && numbers != NULL; i++)
        json_array_append_new(list, json_integer((json_int_t)numbers[i]));
    return list;
}

json_t *task_facts_json(const task_facts *f) {
    if (!f->known)
        return json_null();
    json_t *samples = json_array();
    for (size_t i = 0; i < f->sample_count; i++)
        json_array_append_new(samples, json_real(f->samples[i]));
    return json_pack("{sI sI sf sI sf so so so}", "dimension", (json_int_t)f->task.dimension,
                     "rounds", (json_int_t)f->task.rounds, "gradient_seconds",
                     f->task.gradient_seconds, "epoch_rounds", (json_int_t)f->task.epoch_rounds,
                     "operations", f->operations, "tensor_ends",
                     list_of(f->ends, f->task.tensor_count), "tensor_rows",
                     list_of(f->rows, f->task.tensor_count), "samples", samples);
}

static int parse_list(size_t **out, json_t *list, size_t count, sl_error *error) {
    *out = NULL;
    if (json_array_size(list) != count || count == 0)
        return 0;
    *out = malloc(count * sizeof **out);
    if (*out == NULL)
        return no_memory(error);
    for (size_t i = 0; i < count; i++)
        (*out)[i] = (size_t)json_integer_value(json_array_get(list, i));
    return 0;
}

int task_facts_parse(task_facts *out, json_t *object, sl_error *error) {
    task_facts f = {.known = json_is_object(object)};
    json_t *ends = json_object_get(object, "tensor_ends"),
           *samples = json_object_get(object, "samples");
    f.operations = json_number_value(json_object_get(object, "operations"));
    f.task = (sl_task){
        .dimension = (size_t)json_integer_value(json_object_get(object, "dimension")),
        .rounds = (uint64_t)json_integer_value(json_object_get(object, "rounds")),
        .gradient_seconds = json_number_value(json_object_get(object, "gradient_seconds")),
        .epoch_rounds = (uint64_t)json_integer_value(json_object_get(object, "epoch_rounds")),
        .tensor_count = json_array_size(ends)};
    int result = parse_list(&f.ends, ends, f.task.tensor_count, error);
    if (result == 0)
        result =
            parse_list(&f.rows, json_object_get(object, "tensor_rows"), f.task.tensor_count, error);
    if (result == 0)
        result = open_samples(&f, json_array_size(samples), error);
    for (size_t k = 0; k < f.sample_count && result == 0; k++)
        f.samples[k] = json_number_value(json_array_get(samples, k));
    f.task.tensor_ends = f.ends;
    f.task.tensor_rows = f.rows;
    if (result == 0)
        *out = f;
    else
        task_facts_close(&f);
    return result;
}

void task_facts_close(task_facts *f) {
    free(f->ends);
    free(f->rows);
    free(f->samples);
    *f = (task_facts){0};
}

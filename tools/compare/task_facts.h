/* task_facts.h - what a table needs to know of a model and its data, without opening them again. */
#ifndef TASK_FACTS_H
#define TASK_FACTS_H

#include <jansson.h>

#include "starling/starling.h"

typedef struct task_facts {
    bool known;      /* else nothing below means anything */
    sl_task task;    /* dimension, rounds, tensors, times, `samples`; no other hook may be called */
    size_t *ends;    /* (task.tensor_count) owned; what the task borrows */
    size_t *rows;    /* (task.tensor_count) owned; NULL: none */
    double *samples; /* (sample_count) training samples of each node; owned; NULL: not needed */
    size_t sample_count;
    double operations; /* of a node's gradient in a round; 0: not known */
} task_facts;

/* nodes: whose samples are asked for; 0: nobody's. */
int task_facts_take(task_facts *out, const sl_task *task, uint32_t nodes, double operations,
                    sl_error *error);
/* New. */
json_t *task_facts_json(const task_facts *f);
/* Of null, or what is no such object: not known. */
int task_facts_parse(task_facts *out, json_t *object, sl_error *error);
void task_facts_close(task_facts *f);

#endif

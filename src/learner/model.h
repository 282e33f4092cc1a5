/* model.h - the models that an experiment can name, each a recipe of layers. */
#ifndef SL_LEARNER_MODEL_H
#define SL_LEARNER_MODEL_H

#include "learner/layers/layer.h"
#include "starling/model.h"

/* Builds the layers of config's model for inputs of this shape. A model of images refuses other
 * inputs; `data` names the data set in that error. */
int sl_model_build(sl_layers *out, const sl_model_config *config, sl_shape input, uint32_t classes,
                   const char *data, sl_error *error);
/* Does the model take images (rows, columns, channels)? */
bool sl_model_takes_images(sl_model_kind kind);
/* Does the model take a sequence of codes, and predict the next code at each position? */
bool sl_model_takes_text(sl_model_kind kind);
const char *sl_model_name(sl_model_kind kind);
/* Writes "mlp 784-256-10", "resnet20 32x32x3-10" or "lstm 2x256, 80 of 65 characters". */
void sl_model_describe(char *text, size_t size, const sl_model_config *config,
                       const sl_layers *table);

#endif

"""Stand-ins for Hugging Face's Trainer and Lightning's, written from their published interfaces:
which methods of a callback they call, in which order, with which arguments. They are put where the
real ones would be imported from."""

import sys
import types

import torch
from _models import backward, sgd


class Accelerated(torch.optim.Optimizer):
    """As AcceleratedOptimizer, which Trainer's callbacks get."""

    def __init__(self, inner):
        self.optimizer, self.scaler = inner, None

    param_groups = property(lambda self: self.optimizer.param_groups)

    def zero_grad(self, set_to_none=None):
        self.optimizer.zero_grad()

    def step(self, closure=None):
        self.optimizer.step(closure)


class TrainerCallback:
    """transformers.TrainerCallback: (args, state, control, **kwargs) each."""

    def on_train_begin(self, args, state, control, **kwargs):
        pass

    on_init_end = on_train_end = on_epoch_begin = on_epoch_end = on_train_begin
    on_step_begin = on_step_end = on_log = on_pre_optimizer_step = on_train_begin


class HuggingFace:
    """transformers.Trainer"""

    def __init__(self, model, rank, callbacks, steps):
        self.model, self.rank, self.callbacks, self.steps = model, rank, callbacks, steps
        self.optimizer = None
        self.call("on_init_end")

    def call(self, event, **more):
        args, state, control = types.SimpleNamespace(), types.SimpleNamespace(), object()
        given = dict(model=self.model, optimizer=self.optimizer, lr_scheduler=None)
        given.update(processing_class=None, train_dataloader=None, eval_dataloader=None)
        for callback in self.callbacks:
            result = getattr(callback, event)(args, state, control, **given, **more)
            assert result is None or result is control, result

    def train(self):
        self.optimizer = Accelerated(sgd(self.model.parameters()))
        self.call("on_train_begin")
        self.call("on_epoch_begin")
        for step in range(self.steps):
            self.call("on_step_begin")
            self.optimizer.zero_grad()
            backward(self.model, self.rank, step)
            self.call("on_pre_optimizer_step")
            self.optimizer.step()
            self.call("on_optimizer_step")  # newer than the base class above
            self.call("on_step_end")
            self.call("on_log", logs={"loss": 1.0})
        self.call("on_epoch_end")
        self.call("on_train_end")


class LightningCallback:
    """lightning.pytorch.Callback: (trainer, module) each, setup and teardown with a stage."""

    state_key = property(lambda self: type(self).__qualname__)

    def setup(self, trainer, pl_module, stage):
        pass

    teardown = setup

    def on_exception(self, trainer, pl_module, exception):
        pass

    def on_fit_start(self, trainer, pl_module):
        pass

    on_fit_end = on_train_start = on_train_end = on_train_epoch_start = on_fit_start
    on_train_epoch_end = on_sanity_check_start = on_sanity_check_end = on_fit_start

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        pass

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        pass

    def state_dict(self):
        return {}


class Lightning:
    """lightning.Trainer, with automatic optimization."""

    def __init__(self, rank, callbacks, steps, optimizers=1):
        self.rank, self.callbacks, self.steps, self.count = rank, callbacks, steps, optimizers
        self.precision_plugin = types.SimpleNamespace(scaler=None)
        for callback in callbacks:
            assert isinstance(callback, LightningCallback), "is_overridden() wants a parent"

    def call(self, hook, *arguments):
        for callback in self.callbacks:
            assert callback.state_key
            getattr(callback, hook)(self, self.module, *arguments)

    def fit(self, module):
        self.module = module
        try:
            self._fit()
        except BaseException as exception:
            self.call("on_exception", exception)
            raise
        self.call("teardown", "fit")

    def _fit(self):
        self.call("setup", "fit")
        self.optimizers = [sgd(self.module.parameters()) for _ in range(self.count)]
        for hook in ("on_fit_start", "on_sanity_check_start", "on_sanity_check_end"):
            self.call(hook)
        self.call("on_train_start")
        self.call("on_train_epoch_start")
        for step in range(self.steps):
            self.call("on_train_batch_start", None, step)

            def closure():
                self.optimizers[0].zero_grad()
                backward(self.module, self.rank, step)

            self.optimizers[0].step(closure)
            self.call("on_train_batch_end", None, None, step)
        self.call("on_train_epoch_end")
        self.call("on_train_end")
        self.call("on_fit_end")


def install():
    """Where the real ones would be."""
    for name, base in (("transformers", TrainerCallback), ("lightning.pytorch", LightningCallback)):
        module = types.ModuleType(name)
        setattr(module, base.__name__.replace("Lightning", ""), base)
        sys.modules[name] = module


def remove():
    for name in ("transformers", "lightning.pytorch"):
        del sys.modules[name]

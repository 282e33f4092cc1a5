"""Gossip from inside the training loops of others: Hugging Face's Trainer, Lightning, accelerate.

Their callbacks are told of the same moments by methods of different names and arguments. One class
has those of all. Lightning wants its callbacks to be of a class of its own; that one, and Hugging
Face's, become bases where they have been imported.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from starling._join import join
from starling._library import Error
from starling._peer import Peer, why

BASES = (  # module, name in it
    ("lightning.pytorch", "Callback"),
    ("pytorch_lightning", "Callback"),
    ("transformers", "TrainerCallback"),
)


def _bases() -> list[type]:
    found = (getattr(sys.modules.get(module), name, None) for module, name in BASES)
    return [base for base in dict.fromkeys(found) if isinstance(base, type)]


def _again(experiment: Any, average: bool, options: dict[str, Any]) -> Callback:
    return Callback(experiment, average=average, **options)


class Callback:
    """Makes a training run of a framework a peer: joins when training begins, attaches to the
    optimizer, and when it ends loads the average of all peers into the model and leaves.

        transformers.Trainer(..., callbacks=[starling.Callback(experiment)])
        lightning.Trainer(..., callbacks=[starling.Callback(experiment)])

    With accelerate, which has no callbacks:

        model, optimizer, data = accelerator.prepare(model, optimizer, data)
        with starling.Callback(experiment).training(model, optimizer):
            ...

    experiment, options: what starling.join() takes. average: False leaves each peer its own model.
    Each peer is a run of the framework of its own: not one with DDP over all of them. Raises
    starling.Error when training begins, as join() and attach() do.
    """

    peer: Peer | None = None  #: while it trains, and after it

    def __new__(cls, *arguments: Any, **options: Any) -> Callback:
        """Of a class that the frameworks which were imported know as a callback of theirs."""
        bases = [base for base in _bases() if not issubclass(cls, base)]
        if bases:
            cls = types.new_class(cls.__name__, (cls, *bases))
        return super().__new__(cls)

    def __init__(self, experiment: Any, *, average: bool = True, **options: Any) -> None:
        """Keeps what join() will be told."""
        self._experiment, self._average, self._options = experiment, average, options
        self._model: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has not joined."""
        return _again, (self._experiment, self._average, self._options)

    def __getattr__(self, name: str) -> Any:
        """Moments of a framework that was imported later, and of which nothing is wanted."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    # ---- what all have in common ----

    def begin(self, model: Any, optimizer: Any, scaler: Any = None) -> Peer:
        """Joins with model, and attaches to optimizer."""
        if model is None or optimizer is None:
            missing = "model" if model is None else "optimizer"
            raise Error(f"Callback: training begins without its {missing}, and gossip needs it")
        if self.peer is not None:
            self.peer.abort("training has begun anew")
        self._check_alone()
        self._model = model
        self.peer = join(self._experiment, model, **self._options)
        try:
            self.peer.attach(optimizer, scaler)
        except BaseException as raised:
            self.peer.abort(why(raised))
            raise
        return self.peer

    def end(self) -> None:
        """Loads the average into the model, and leaves. Nothing where nothing has begun."""
        if self.peer is None or not self.peer.active:
            return
        if self._average:
            from starling._module import unwrapped

            unwrapped(self._model).load_state_dict(self.peer.average())
        self.peer.leave()

    def training(self, model: Any, optimizer: Any, scaler: Any = None) -> _Training:
        """For `with`: begin(), your loop, end(). Gives the peer."""
        return _Training(self, (model, optimizer, scaler))

    def _check_alone(self) -> None:
        distributed = sys.modules.get("torch.distributed")
        if self._options.get("group") is not None or distributed is None:
            return
        if distributed.is_available() and distributed.is_initialized():
            count = distributed.get_world_size()
            if count > 1:
                raise Error(
                    f"Callback: these {count} processes are one run already, which "
                    "torch.distributed (DDP) keeps equal: start each peer as a run of one process, "
                    "with STARLING_RANK, STARLING_SIZE and STARLING_MASTER=HOST:PORT in its "
                    "environment in place of torchrun's; or give group="
                )

    # ---- Hugging Face: (args, state, control, **more) ----

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **_: Any,
    ) -> None:
        """Hugging Face's Trainer begins to train."""
        self.begin(model, optimizer)

    # ---- both: Lightning's have (trainer, module) ----

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Training has ended."""
        self.end()

    # ---- Lightning ----

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Lightning's Trainer begins to train: its optimizers are there, checkpoints are loaded."""
        optimizers = list(trainer.optimizers)
        if len(optimizers) != 1:
            raise Error(
                f"Callback: {type(module).__name__} has {len(optimizers)} optimizers, and gossips "
                "from the steps of one; with several call starling.join() in on_train_start(), and "
                "peer.mix() after their steps"
            )
        precision = getattr(trainer, "precision_plugin", None)
        self.begin(module, optimizers[0], getattr(precision, "scaler", None))

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        """Tells the neighbours why this peer ends."""
        if self.peer is not None:
            self.peer.abort(why(exception))

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Nothing: the optimizer comes later."""

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        """Leaves, where training has ended by other ways."""
        if self.peer is not None:
            self.peer.leave()


def _nothing(*_: Any, **__: Any) -> None:
    pass


class _Training:
    """Callback.training()"""

    def __init__(self, callback: Callback, given: tuple[Any, Any, Any]) -> None:
        self._callback, self._given = callback, given

    def __enter__(self) -> Peer:
        return self._callback.begin(*self._given)

    def __exit__(self, kind: Any, exception: Any, trace: Any) -> None:
        if exception is None:
            self._callback.end()
        elif self._callback.peer is not None:
            self._callback.peer.abort(why(exception))

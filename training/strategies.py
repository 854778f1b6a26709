"""Where a training runs: on one device, on all of this machine, or on several machines.

N replicas take a share of the rows of every batch each, and come to the losses and weights of one
device on the same batches. Measured on Keras 3.15.1: what is overridden here on the instance of a
model, Keras does wrong under a strategy (`tests/training/test_strategies.py` has an eye on it).
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from seqkeras.runs import RunError
from seqkeras.targets import counts
from seqkeras.terminal import one_line
from seqkeras.training.cluster import VARIABLE, Cluster
from seqkeras.training.console import TYPED, console

if TYPE_CHECKING:
    from seqkeras.data.batches import Batches
    from seqkeras.training.options import FitOptions

__all__ = ["strategy"]

SECONDS_TO_CONNECT = 120  # for TensorFlow, after the workers have met


class OneDevice:
    """One device, as Keras takes it; and what the other strategies have in common.

    Attributes:
        num_replicas: the shares that a batch is divided into.
        num_processes: that train together.
        is_chief: whether this process writes and prints.
    """

    num_replicas = num_processes = 1
    is_chief = True

    def refuse(self, options: FitOptions) -> None:
        """Raise a `RunError` for options that do not go with the strategy; nothing is read yet."""

    def meet(self) -> None:
        """Wait until all processes are there."""

    def running(self) -> AbstractContextManager[Any]:
        """Return the context of the whole training."""
        return contextlib.nullcontext()

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which a model is made, not trained: what the chief alone makes
        while it trains, the others would wait for."""
        return contextlib.nullcontext()

    def require_same_step(self, step: int) -> None:
        """Raise a `RunError` if another process has the checkpoint of another step."""

    def prepare(self, model: keras.Model, batches: Batches) -> Any:
        """Make a compiled model ready for `fit`; returns the batches that `fit` takes."""
        return batches

    def folder(self, folder: Path) -> Path:
        """Return where this process writes what it makes while it trains: the run's, of the
        chief."""
        return folder

    def callbacks(self) -> list[keras.callbacks.Callback]:
        """Return what stands last in the callbacks of `fit`."""
        return []

    def part(self) -> keras.Model:
        """Wait until the chief has written all."""


ONE_DEVICE = OneDevice()


class DataParallel(OneDevice):
    """All devices of this machine, on JAX."""

    def __init__(self, devices: Any):
        self.num_replicas = len(devices)
        self.distribution = keras.distribution.DataParallel(devices=devices)

    def refuse(self, options: FitOptions) -> None:
        _refuse(self, options)

    def running(self) -> AbstractContextManager[Any]:
        return self.distribution.scope()


class Replicas(OneDevice):
    """Replicas of a `tf.distribute.Strategy`.

    Args:
        strategy: the strategy.
    """

    def __init__(self, strategy: Any):
        self.strategy, self.num_replicas = strategy, strategy.num_replicas_in_sync

    def refuse(self, options: FitOptions) -> None:
        _refuse(self, options)
        reasons = {
            "--gradient-accumulation": (
                options.gradient_accumulation > 1,
                "Keras can not leave out the update of several replicas; a larger --batch-size "
                "is the same",
            ),
            "--xla": (options.xla, "XLA can not compile the sum of their gradients"),
            "--mixed-precision float16": (
                options.mixed_precision == "float16",
                "a single one that overflows would stop the others; choose bfloat16",
            ),
            "--optimizer keras-adam": (
                options.optimizer == "keras-adam",
                "it clips the gradients of each alone; choose adam",
            ),
        }
        for name, (is_asked, reason) in reasons.items():
            if is_asked:
                raise RunError(f"{name}: not with several devices: {reason}.")

    def scope(self) -> AbstractContextManager[Any]:
        return self.strategy.scope()

    def prepare(self, model: keras.Model, batches: Batches) -> Any:
        import tensorflow as tf

        if not isinstance(batches, tf.data.Dataset):
            raise ValueError(
                "prepare: batches must be a tf.data.Dataset of (inputs, targets), as the method "
                f"dataset of seqkeras.data.batches.Batches gives; received {batches!r:.80}."
            )
        with self.scope():  # Keras's would build on the mean of the replicas' token ids
            model._symbolic_build(data_batch=next(iter(batches)))
        model._maybe_symbolic_build = lambda **_: None
        losses = model._compile_loss._flat_losses
        ignored = {part.path: getattr(part.loss, "ignore_class", None) for part in losses}
        if None in ignored.values():  # as many targets in every replica
            return batches
        losses[:] = [part._replace(loss=_summed(part.loss)) for part in losses]
        return _with_weights(batches, ignored)


class Workers(Replicas):
    """Processes on several machines; the strategy is there when they have met.

    Args:
        cluster: a `seqkeras.training.cluster.Cluster`.
        devices: that each of them has.
    """

    def __init__(self, cluster: Cluster, devices: Any):
        self.cluster, self.is_chief = cluster, cluster.is_chief
        self.num_processes = len(cluster.names)
        self.num_replicas = self.num_processes * devices
        console.quiet = not self.is_chief

    def meet(self) -> None:
        import tensorflow as tf

        self.cluster.meet(say=lambda line: print(f"{TYPED}: {line}", file=sys.stderr))
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        # TensorFlow keeps Python's lock while it waits, so that no handler of ours would run.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS_TO_CONNECT)
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        signal.alarm(0)
        for number, handler in handlers.items():  # TensorFlow takes SIGTERM
            signal.signal(number, handler)

    @contextlib.contextmanager
    def running(self) -> Iterator[Any]:
        import tensorflow as tf

        try:
            yield
        except tf.errors.OpError as error:
            raise RunError(
                f"{self.cluster.name}: stopped, as a worker was lost or failed "
                f"({_reason(error)}). Start all workers again: they go on from the last "
                "checkpoint, if there is one."
            ) from None

    def require_same_step(self, step: int) -> None:
        steps = self._of_all(step)
        if len(set(steps)) > 1:
            steps_by_worker = ", ".join(
                f"{name} {at:,}" for name, at in zip(self.cluster.names, steps)
            )
            raise RunError(
                f"{self.cluster.name}: the workers' checkpoints are of different steps: "
                f"{steps_by_worker}; all need the same folder as --out."
            )

    def prepare(self, model: keras.Model, batches: Batches) -> Any:
        batches = super().prepare(model, batches)
        # Keras takes a mean over the first axis of what a step returns.
        model.train_step = _with_an_axis(model.train_step)
        model.test_step = _with_an_axis(model.test_step)
        return batches

    def folder(self, folder: Path) -> Path:
        if self.is_chief:
            return folder
        self.temporary = tempfile.TemporaryDirectory()
        return Path(self.temporary.name)

    def callbacks(self) -> list[keras.callbacks.Callback]:
        return [_AsTheChief(self)]

    def part(self) -> keras.Model:
        self._of_all(0)

    def _of_all(self, number):
        """Return the number of each process."""
        import tensorflow as tf

        def gathered():
            return tf.distribute.get_replica_context().all_gather(tf.constant([number]), 0)

        [numbers, *_] = self.strategy.experimental_local_results(self.strategy.run(gathered))
        return ops.convert_to_numpy(numbers)[:: self.num_replicas // self.num_processes]


class _AsTheChief(keras.callbacks.Callback):
    """All workers stop when the chief does."""

    def __init__(self, workers: Workers):
        super().__init__()
        self.workers = workers

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = bool(self.workers._of_all(int(self.model.stop_training))[0])


def _with_weights(batches, ignored):
    """Return batches whose every target that counts has its share of the weights of the batch, for
    each output: 1 / (number of these), where the batch brings no weights.

    Args:
        batches: a `tf.data.Dataset`.
        ignored: path of an output -> the target that counts nothing there.
    """
    import tensorflow as tf

    def share(path, targets, *sample_weights):
        counted = tf.cast(counts(targets, ignored[path]), "float32")
        for weights in sample_weights:
            counted *= tf.cast(weights, "float32")
        return tf.math.divide_no_nan(counted, tf.reduce_sum(counted))

    def weigh(inputs, targets, *sample_weights):
        paths, leaves = zip(*keras.tree.flatten_with_path(targets), strict=True)
        leaves = map(share, paths, leaves, *map(keras.tree.flatten, sample_weights))
        return inputs, targets, keras.tree.pack_sequence_as(targets, list(leaves))

    return batches.map(weigh)


def _summed(loss):
    """Return a loss that sums weighted losses, as the weights of a batch come to 1 over all
    replicas; Keras would take the mean of the replicas' means."""
    total = copy.copy(loss)
    total.reduction = "sum"

    def call(y_true, y_pred, sample_weight=None):
        kind = loss if sample_weight is None else total
        return kind(y_true, y_pred, sample_weight)

    return call


@contextlib.contextmanager
def operations(xla: bool) -> Iterator[None]:
    """Let TensorFlow compute by deterministic operations meanwhile; Keras takes no XLA beside them.

    Args:
        xla: whether XLA compiles the steps, by whatever operations.
    """
    if keras.backend.backend() != "tensorflow":
        yield
        return
    from tensorflow.python.framework import config

    switches = {True: config.enable_op_determinism, False: config.disable_op_determinism}
    before = config.is_op_determinism_enabled()
    switches[not xla]()
    try:
        yield
    finally:
        switches[before]()


def strategy(name: str) -> OneDevice:
    """Return the strategy of a name; TensorFlow or JAX are asked for what devices there are.

    Args:
        name: "auto", "one", "mirrored", "multi-worker" or "tpu".

    Returns:
        The strategy, a `OneDevice` or a subclass.

    Raises:
        RunError: if the machine or the backend does not have it.

    Example:
        >>> from seqkeras.training.strategies import strategy
        >>> devices = strategy("one")
        >>> devices.num_replicas, devices.is_chief
        (1, True)
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        return _on_tensorflow(name)
    if backend == "jax" and name != "one":
        return _on_jax(name)
    if name not in ("auto", "one"):
        raise RunError(f"--strategy {name}: not on the backend {backend}, only one device there.")
    return ONE_DEVICE


def _on_tensorflow(name):
    import tensorflow as tf

    if name == "auto":
        if VARIABLE in os.environ and len(Cluster.of_environment().names) > 1:
            name = "multi-worker"
        elif tf.config.list_physical_devices("TPU"):
            name = "tpu"
        else:
            name = "mirrored" if len(tf.config.list_physical_devices("GPU")) > 1 else "one"
    if name == "multi-worker":
        gpus = tf.config.list_physical_devices("GPU")
        return Workers(Cluster.of_environment(), max(1, len(gpus)))
    if name == "mirrored":
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        if len(devices) < 2:
            raise RunError(f"--strategy mirrored: needs two devices; there is {devices[0].name}.")
        return _mirrored(*(device.name for device in devices))
    if name == "tpu":
        return Replicas(tf.distribute.TPUStrategy(_tpu()))
    return ONE_DEVICE


@functools.cache  # two of them in a process would take each other's sums
def _mirrored(*devices):
    import tensorflow as tf

    return Replicas(tf.distribute.MirroredStrategy(devices))


def _tpu():
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, OSError, RuntimeError, ValueError) as error:
        raise RunError(
            f"--strategy tpu: no TPU can be reached ({one_line(error):.200}). Run on a machine of "
            "a TPU, or name one in the environment variable TPU_NAME."
        ) from None
    return resolver


def _on_jax(name):
    if name == "multi-worker":
        raise RunError("--strategy multi-worker: not on the backend jax; choose tensorflow's.")
    devices = keras.distribution.list_devices("tpu" if name == "tpu" else None)
    if len(devices) > 1:
        return DataParallel(devices)
    if name == "auto":
        return ONE_DEVICE
    device = devices[0] if devices else "none"
    raise RunError(f"--strategy {name}: needs two devices; there is {device}.")


def _refuse(devices, options):
    """Refuse a batch that the replicas can not share."""
    if options.batch_tokens is not None:
        raise RunError(
            "--batch-tokens: not with several devices: its batches have different numbers of rows, "
            "which can not all be shared alike; choose a --batch-size, or --strategy one."
        )
    if options.batch_size % devices.num_replicas:
        raise RunError(
            f"--batch-size {options.batch_size}: must divide by the {devices.num_replicas} "
            "devices of the strategy, each of which takes as many rows; choose another, or "
            "--strategy one."
        )


def _reason(error):
    """Return what an OpError says, without the traceback that TensorFlow writes around it."""
    lines = [line for line in error.message.splitlines() if line.strip()]
    reasons = [line for line in lines if "aborted by" in line] or lines[-1:]
    return one_line(" ".join(reasons))[-200:]


def _with_an_axis(step):
    return lambda data: {name: value[None] for name, value in step(data).items()}

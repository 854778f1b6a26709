"""Losses and metrics of a model of several outputs where a batch has labels for some of them.

Keras wants labels for every output that `compile` names. Here an output without them counts
nothing: neither in the loss, nor in a metric.
"""

import contextlib

import keras
from keras import ops, tree


class PartialLabels:
    """A part of `keras.Model` whose outputs are a dictionary."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss of the outputs that have labels."""
        y = _labelled(y, y_pred)
        missing = _missing(y, y_pred)
        if self._compile_loss is None or not missing:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        weights = self._compile_loss._user_loss_weights
        found = _losses(self.loss, y, y_pred, sample_weight, weights)
        # A gradient of zero, and not none, of which Keras warns.
        nothing = [0.0 * ops.sum(each) for name in missing for each in tree.flatten(y_pred[name])]
        return sum([*found, *self.losses, *nothing])

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """What the metrics say, each told of the batches that have its labels."""
        y = _labelled(y, y_pred)
        metrics, missing = self._compile_metrics, _missing(y, y_pred)
        if metrics is None or not missing:
            return super().compute_metrics(x, y, y_pred, sample_weight)
        whole = y | {name: y_pred[name] for name in missing}
        if not metrics.built:
            self._require_objects(metrics, missing)
            metrics.build(whole, y_pred)
        if isinstance(sample_weight, dict):
            none = {name: tree.map_structure(lambda _: None, y_pred[name]) for name in missing}
            sample_weight = sample_weight | none
        with _left_out(metrics, missing, y_pred):
            metrics.update_state(whole, y_pred, sample_weight)
        return self.get_metrics_result()

    def _require_objects(self, metrics, missing):
        """Which metric a name stands for, Keras sees in the first labels."""
        for given in (metrics._user_metrics, metrics._user_weighted_metrics):
            for name in missing:
                of_one = given.get(name) if isinstance(given, dict) else given
                for metric in tree.flatten(of_one or []):
                    if isinstance(metric, str):
                        raise ValueError(
                            f"{type(self).__name__}: metrics of a head whose labels may be missing "
                            "must be objects, as keras.metrics.SparseCategoricalAccuracy(); "
                            f"received {metric!r} for {name!r}."
                        )


def _labelled(y, y_pred):
    """The labels without those that are None."""
    if not isinstance(y, dict) or not isinstance(y_pred, dict):
        return y
    return {name: each for name, each in y.items() if each is not None}


def _missing(y, y_pred):
    """The outputs without labels."""
    if not isinstance(y, dict) or not isinstance(y_pred, dict):
        return []
    return [name for name in y_pred if name not in y]


def _losses(loss, y, y_pred, sample_weight, weights):
    """The losses of the outputs that have labels, each times its weight."""
    if isinstance(y_pred, dict):

        def part(given, name):
            return given.get(name) if isinstance(given, dict) else given

        return [
            found
            for name in y_pred
            if name in y
            for found in _losses(
                part(loss, name),
                y[name],
                y_pred[name],
                part(sample_weight, name),
                part(weights, name),
            )
        ]
    if loss is None:
        return []
    value = _object(loss)(y, y_pred, sample_weight)
    return [value if weights is None else weights * value]


def _object(loss):
    """A loss as a `keras.losses.Loss`, which has a mean."""
    loss = keras.losses.get(loss)
    return loss if isinstance(loss, keras.losses.Loss) else _FunctionLoss(loss)


class _FunctionLoss(keras.losses.Loss):
    """The mean of a function of labels and predictions."""

    def __init__(self, function):
        super().__init__(name="function_loss")
        self.function = function

    def call(self, y_true, y_pred):
        return self.function(y_true, y_pred)


@contextlib.contextmanager
def _left_out(metrics, missing, y_pred):
    """Keras's metrics of `compile`, without those of the missing outputs."""
    names = metrics._resolved_output_names
    if names is None:  # outputs of parts, in the order of the tree
        marks = {
            name: tree.map_structure(lambda _, name=name: name, each)
            for name, each in y_pred.items()
        }
        names = tree.flatten(marks)
    kept = {field: getattr(metrics, field) for field in ("_flat_metrics", "_flat_weighted_metrics")}
    try:
        for field, flat in kept.items():
            some = [None if name in missing else each for name, each in zip(names, flat)]
            setattr(metrics, field, some)
        yield
    finally:
        for field, flat in kept.items():
            setattr(metrics, field, flat)

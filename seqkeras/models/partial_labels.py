"""Losses and metrics of a model with several outputs if a batch has labels for only some.

Keras demands labels for every output that `compile` names. Here an output without labels does not
count in the loss, in metrics, or in the logs of the batch.
"""

import contextlib
from itertools import compress

from keras import ops, tree


class PartialLabels:
    """A part of `keras.Model` whose outputs are a dictionary."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Return the loss of the outputs that have labels."""
        loss, missing = self._compile_loss, self._missing(y, y_pred)
        if loss is None or not missing:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        y, sample_weight = _whole(y, y_pred), _whole_weights(sample_weight, y_pred)
        if not loss.built:  # with all its trackers, as TensorFlow makes variables in one call only
            self._require_known_loss(loss, missing)
            loss.build(y, y_pred)
        with _losses_left_out(loss, missing):
            total = super().compute_loss(x, y, y_pred, sample_weight, training)
        # A gradient of zero, because Keras warns of a missing one.
        return total + sum(0.0 * ops.sum(output) for output in missing.values())

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Return the results of the metrics, each updated with the batches that have its labels."""
        metrics, missing = self._compile_metrics, self._missing(y, y_pred)
        if not missing:
            return super().compute_metrics(x, y, y_pred, sample_weight)
        absent = []
        if self._compile_loss is not None:
            flat = self._compile_loss._flat_losses or []
            absent = [f"{output.name}_loss" for output in flat if _path(output.path) in missing]
        if metrics is not None:
            y, sample_weight = _whole(y, y_pred), _whole_weights(sample_weight, y_pred)
            if not metrics.built:
                self._require_objects(metrics, missing)
                metrics.build(y, y_pred)
            with _metrics_left_out(metrics, missing, y_pred):
                metrics.update_state(y, y_pred, sample_weight)
                reported = {id(metric) for metric in metrics.metrics}
            names = zip(metrics.result(), metrics.metrics, strict=True)
            absent += [name for name, metric in names if id(metric) not in reported]
        results = self.get_metrics_result()
        return {name: value for name, value in results.items() if name not in absent}

    def _missing(self, y, y_pred):
        """Return outputs without labels by path; a ValueError if labels are of something else."""
        if not isinstance(y, dict) or not isinstance(y_pred, dict):
            return {}
        outputs, labels = _leaves(y_pred), _leaves(y)
        above = {path.rpartition("/")[0] for path in outputs}
        wrong = [
            path
            for path, label in labels.items()
            if path not in outputs and not (label is None and path in above)
        ]
        missing = {path: output for path, output in outputs.items() if labels.get(path) is None}
        if wrong or len(missing) == len(outputs):
            raise ValueError(
                f"{type(self).__name__}: labels must be of one of {list(outputs)} at least, and of "
                f"nothing else; received {wrong or 'none'}."
            )
        return missing

    def _require_known_loss(self, loss, missing):
        """Refuse the loss "crossentropy": Keras sees only in the first labels which loss that
        is."""
        for path in missing:
            name = _part(loss._user_loss, path)
            if name in ("crossentropy", "ce"):
                raise ValueError(
                    f"{type(self).__name__}: the loss of a head whose labels may be missing must "
                    "say what the labels are, as 'sparse_categorical_crossentropy'; "
                    f"received {name!r} for {path!r}."
                )

    def _require_objects(self, metrics, missing):
        """Refuse a metric by name: Keras sees only in the first labels what the name stands for."""
        for nested in (metrics._user_metrics, metrics._user_weighted_metrics):
            for path in missing:
                for metric in tree.flatten(_part(nested, path) or []):
                    if isinstance(metric, str):
                        raise ValueError(
                            f"{type(self).__name__}: metrics of a head whose labels may be missing "
                            "must be objects, as keras.metrics.SparseCategoricalAccuracy(); "
                            f"received {metric!r} for {path!r}."
                        )


def _path(names):
    return "/".join(map(str, names))


def _leaves(outputs, names=()):
    """Return the leaves of nested dictionaries by path, such as "span/start_logits"."""
    if not isinstance(outputs, dict):
        return {_path(names): outputs}
    parts = [_leaves(output, (*names, name)) for name, output in outputs.items()]
    return {path: leaf for part in parts for path, leaf in part.items()}


def _like(outputs, value, names=()):
    """Return value(path) instead of each output."""
    if not isinstance(outputs, dict):
        return value(_path(names))
    return {name: _like(output, value, (*names, name)) for name, output in outputs.items()}


def _part(nested, path):
    """Return the argument for one output, where one argument may be given for several."""
    for name in path.split("/"):
        nested = nested.get(name) if isinstance(nested, dict) else nested
    return nested


def _whole(y, y_pred):
    """Return the labels, with the outputs themselves as unused placeholders for missing ones."""
    outputs = _leaves(y_pred)
    labels = {path: label for path, label in _leaves(y).items() if label is not None}
    return _like(y_pred, lambda path: labels.get(path, outputs[path]))


def _whole_weights(sample_weight, y_pred):
    """Return weights of rows by output, None where there are none."""
    if not isinstance(sample_weight, dict):
        return sample_weight
    return _like(y_pred, lambda path: _part(sample_weight, path))


@contextlib.contextmanager
def _replaced(owner, **fields):
    originals = {field: getattr(owner, field) for field in fields}
    try:
        for field, value in fields.items():
            setattr(owner, field, value)
        yield
    finally:
        for field, value in originals.items():
            setattr(owner, field, value)


def _losses_left_out(loss, missing):
    """Return Keras's losses of `compile`, without those of the missing outputs."""
    labelled = [_path(part.path) not in missing for part in loss._flat_losses]
    fields = ("_flat_losses", "_metrics")  # a loss that is alone has no tracker
    return _replaced(
        loss, **{field: [*compress(getattr(loss, field), labelled)] for field in fields}
    )


def _metrics_left_out(metrics, missing, y_pred):
    """Return Keras's metrics of `compile`, without those of the missing outputs."""
    paths = metrics._resolved_output_names or tree.flatten(_like(y_pred, lambda path: path))
    fields = ("_flat_metrics", "_flat_weighted_metrics")
    return _replaced(
        metrics,
        **{
            field: [
                None if path in missing else entry
                for path, entry in zip(paths, getattr(metrics, field), strict=True)
            ]
            for field in fields
        },
    )

"""`Forecast` while it trains: rows of a table to the values that follow them."""

import numpy as np

from seqkeras.decoding import in_batches
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.pipelines.forecast import Settings, forecasting_of
from seqkeras.training.compiling import OncePerModel


class Forecast:
    """Rows to `Forecasting`s.

    Args:
        run: a `seqkeras.runs.RunFiles`, with rows in its settings.
    """

    def __init__(self, run):
        settings = Settings(**parse_fields(Settings, run.record.settings, "settings", []))
        self.rows, self.quantiles = settings.rows, settings.quantiles
        self.values = OncePerModel(_values_of)

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to rows.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        given = [self._arrays(text, model.output_shape[1]) for text in texts]
        [values] = in_batches(self.values(model), given, _stacked, advance=advance)
        return [forecasting_of(row, self.quantiles, self.rows) for row in np.asarray(values)]

    def fits(self, text):
        """Return whether rows are taken: those of a run are."""
        return True

    def _arrays(self, text, horizon):
        given = text if isinstance(text, dict) else {"series": text, "known": None}
        window, last = self.rows.window(given["series"], "series")
        if not self.rows.num_known:
            return window, np.empty((horizon, 0), "float32")
        return window, self.rows.future(given["known"], last, horizon, "known")


def _stacked(rows):
    windows, known = zip(*rows)
    return np.stack(windows), np.stack(known)


def _values_of(model):
    names = [tensor.name for tensor in model.inputs]

    def values(window, known):
        given = {"window": window, "known": known}
        return (model({name: given[name] for name in names}, training=False),)

    return values

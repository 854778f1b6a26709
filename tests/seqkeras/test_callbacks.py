import keras
import numpy as np
import pytest

from seqkeras.callbacks import AnswerMetrics
from seqkeras.metrics import exact_match


def model():
    built = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
    built.compile("sgd", "mse")
    return built


def fit(*callbacks, epochs=3):
    x = np.array([[1.0], [2.0]], "float32")
    return model().fit(x, x, epochs=epochs, verbose=0, callbacks=[*callbacks]).history


def measured(answers, **options):
    """A callback to whose inputs these are the answers, epoch by epoch."""
    rows = iter(answers)
    return AnswerMetrics(
        lambda model, inputs: next(rows), ["a", "b"], ["x", "y"], {"right": exact_match}, **options
    )


def test_what_stands_behind_it_reads_its_metrics(tmp_path):
    callback = measured([["x", "no"], ["x", "y"], ["no", "y"]])
    best = keras.callbacks.ModelCheckpoint(
        tmp_path / "{epoch}.keras", "val_right", mode="max", save_best_only=True
    )
    assert fit(callback, best)["val_right"] == [0.5, 1, 0.5]
    assert {path.name for path in tmp_path.iterdir()} == {"1.keras", "2.keras"}


def test_samples_are_appended_to_a_file_or_printed(tmp_path, capsys):
    file = tmp_path / "samples.txt"
    fit(measured([["x", "no\nno"], ["x", "y"]], samples=1, file=file), epochs=2)
    sample = "epoch {}\n  input   a\n  target  x\n  answer  x\n\n"
    assert file.read_text() == sample.format(1) + sample.format(2)
    fit(measured([["x", "no\nno"]], samples=2), epochs=1)
    assert "  input   b\n  target  y\n  answer  no no\n" in capsys.readouterr().out


def test_what_does_not_fit_together_is_refused():
    message = r"^AnswerMetrics: there must be as many targets as inputs, .* received 1 and 2\.$"
    with pytest.raises(ValueError, match=message):
        AnswerMetrics(lambda model, inputs: inputs, [1, 2], [1], {})
    message = r"^AnswerMetrics: answer must give an answer for each of 2 inputs; received 1\.$"
    with pytest.raises(ValueError, match=message):
        fit(measured([["x"]]))

"""A run is read whatever its model was compiled with."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from seqkeras import losses
from seqkeras.export import save_run
from seqkeras.models import RNNSeq2Seq
from seqkeras.schedules import InverseSigmoidDecay
from tests.conftest import run_python

READ = """
import sys
from pathlib import Path
import numpy as np
from seqkeras.export.run import read_run

for run in sys.argv[1:]:
    model = read_run(Path(run)).model
    inputs = dict(np.load(Path(run) / "inputs.npz"))
    expected = np.load(Path(run) / "outputs.npy")
    np.testing.assert_allclose(model(inputs), expected, rtol=1e-6)
    print(model.compiled)
"""


@keras.saving.register_keras_serializable("tests")
class OwnMetric(keras.metrics.Mean):
    """Known to the training script alone."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(ops.abs(y_pred), sample_weight)


class OwnSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Not even registered."""

    def __call__(self, step):
        return 1e-3 / (ops.cast(step, "float32") + 1)

    def get_config(self):
        return {}


def own_loss(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


def functional(**arguments):
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    x = layers.GlobalAveragePooling1D()(layers.Embedding(11, 7)(token_ids))
    model = keras.Model({"token_ids": token_ids}, layers.Dense(5)(x))
    model.compile(**arguments)
    return model, {"token_ids": np.array([[1, 2, 3], [4, 5, 6]])}


def forced():
    model = RNNSeq2Seq.bahdanau(11, 13, 3, 5, 7, teacher_forcing=InverseSigmoidDecay(7.0))
    inputs = {
        "token_ids": np.array([[1, 2, 3], [4, 5, 0]]),
        "lengths": np.array([3, 2]),
        "target_ids": np.array([[2, 4], [2, 5]]),
    }
    model.compile("adam", losses.SmoothedCrossEntropy(ignore_class=0), run_eagerly=True)
    model.train_on_batch(inputs, np.array([[4, 3], [5, 3]]))
    return model, inputs


@pytest.mark.long
def test_a_run_is_read_whatever_its_model_was_compiled_with(tmp_path):
    runs = {
        "schedule": functional(optimizer=keras.optimizers.Adam(OwnSchedule()), loss="mse"),
        "metric": functional(loss="mse", metrics=[OwnMetric()]),
        "loss": functional(loss=own_loss),
        "forced": forced(),
    }
    for name, (model, inputs) in runs.items():
        given = "Classify", [{"input": "a"}], {"source_length": 3}
        save_run(tmp_path / name, model, *given, check_export=False)  # no pipeline serves it
        np.savez(tmp_path / name / "inputs.npz", **inputs)
        np.save(tmp_path / name / "outputs.npy", model(inputs))
    finished = run_python("-c", READ, *(tmp_path / name for name in runs))
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["False"] * len(runs)

"""The parts of models that torch has too, at larger sizes."""

import numpy as np
import pytest
from keras import ops

from seqkeras.embeddings import CharacterCNN
from seqkeras.models.bilm import ProjectedLSTM
from tests.arrays import close, numbers, randomize
from tests.autodiff import gradients_of
from tests.seqkeras.models.support import needs_float64
from tests.vectors import models


def ratio(actual, expected):
    """The largest difference over the largest value."""
    return np.abs(actual - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize(
    "dtype, limit", [("float32", 1e-5), pytest.param("float64", 1e-9, marks=needs_float64)]
)
def test_a_projected_lstm_and_its_gradients_are_what_torch_says(dtype, limit):
    expected = models.projected_lstm(7, 61, 128, 256, 64, seed=1, dtype=dtype)
    values = [expected[name] for name in ["sequences", *models.OURS]]

    def outputs_of(values):
        layer = ProjectedLSTM(256, 64, dtype=dtype)
        for name, value in zip(models.OURS, values[1:]):
            setattr(layer, name, value)
        layer.built = True
        return layer(values[0])

    outputs = numbers(outputs_of([ops.convert_to_tensor(each) for each in values]))
    assert ratio(outputs, expected["outputs"]) < limit
    actual = gradients_of(lambda values: ops.sum(ops.sin(outputs_of(values))), values)
    rivals = [expected[f"gradient/{name}"] for name in ["sequences", *models.OURS]]
    largest = max(np.abs(each).max() for each in rivals)
    for gradient, rival in zip(actual, rivals, strict=True):
        assert np.abs(gradient - rival).max() / largest < limit


def test_the_characters_of_a_word_are_what_a_torch_convolution_says():
    import torch

    layer = CharacterCNN(61, 16, [1, 2, 3, 5], [32, 32, 64, 128])
    random = np.random.default_rng(0)
    lengths = random.integers(1, 12, (8, 31))
    ids = random.integers(1, 61, (8, 31, 11)) * (np.arange(11) < lengths[..., None])
    layer.build(ids.shape)
    table, *weights = randomize(layer).get_weights()
    real = (ids != 0).reshape(-1, 1, 11)
    embedded = torch.tensor(np.transpose(table[ids].reshape(-1, 11, 16), (0, 2, 1)) * real)
    largest = []
    for H, b in zip(weights[::2], weights[1::2], strict=True):
        padded = torch.nn.functional.pad(embedded, (0, len(H) - 1))
        kernel = torch.tensor(np.transpose(H, (2, 1, 0)).copy())
        windows = torch.nn.functional.conv1d(padded, kernel, torch.tensor(b))
        windows = windows.masked_fill(torch.tensor(~real), -torch.inf)
        largest.append(torch.tanh(windows.max(dim=-1).values))
    expected = torch.cat(largest, dim=-1).numpy().reshape(8, 31, -1)
    close(layer(ids), expected, atol=1e-5)

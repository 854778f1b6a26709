"""The head that tells what is far from all examples, against loops in float64."""

import numpy as np
import pytest

from seqkeras.models import OpenClassificationHead
from tests.arrays import floats, numbers, randomize

B, D, K, N, R = 7, 11, 5, 13, 3


def of_definition(head, pooled, beside):
    """The logits of one row, from the formula."""
    kernel, bias = (numbers(weight).astype("float64") for weight in head.output_layer.weights)
    z = pooled @ kernel + bias + beside
    projected = [sum(x * p for x, p in zip(pooled, column)) for column in head.projection.numpy().T]
    length = sum(number**2 for number in projected) ** 0.5
    unit = [number / length for number in projected]
    distance = min(
        sum((number - other) ** 2 for number, other in zip(unit, example)) ** 0.5
        for example in head.examples.numpy().T.astype("float64")
    )
    none = z[K] if head.learned else max(z[:K])
    far = distance - float(head.share) * max(beside[:K])
    return [*z[:K], none + float(head.slope) * (far - float(head.threshold))]


@pytest.mark.parametrize("learned", [True, False])
def test_the_last_logit_is_that_of_the_definition(learned):
    head, pooled = OpenClassificationHead(K, N, dim=R, learned=learned), floats(B, D)
    head.build((None, D))
    randomize(head)
    head.examples.assign(head.examples / np.linalg.norm(head.examples, axis=0))
    beside = floats(B, K + learned)
    for more in (None, beside):
        actual = numbers(head(pooled, more))
        assert actual.shape == (B, K + 1)
        added = 0 * beside if more is None else beside
        for row, others, logits in zip(pooled.astype("float64"), added, actual, strict=True):
            expected = of_definition(head, row, others)
            np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)


def test_a_summary_of_zeros_has_no_direction_and_a_finite_logit():
    head = OpenClassificationHead(K, N, dim=R)
    head.build((None, D))
    randomize(head)
    assert np.isfinite(numbers(head(np.zeros((1, D), "float32")))).all()


def test_what_is_compared_does_not_learn():
    head = OpenClassificationHead(K, N, dim=R, learned=True)
    head.build((None, D))
    assert [weight.name for weight in head.trainable_weights] == ["kernel", "bias"]
    assert head.output_layer.kernel.shape == (D, K + 1)


@pytest.mark.parametrize("arguments", [(0, N), (K, 0), (K, N, 0)])
def test_sizes_are_positive(arguments):
    with pytest.raises(ValueError, match="OpenClassificationHead: .* must be"):
        OpenClassificationHead(*arguments)

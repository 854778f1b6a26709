import json
import math

import keras
import numpy as np
import pytest

from seqkeras.schedules import Constant, InverseSigmoidDecay, LinearDecay
from tests.arrays import numbers
from tests.refusals import refusals

SCHEDULES = {
    Constant(0.3): lambda i: 0.3,
    LinearDecay(0.9, 0.01): lambda i: max(0.0, 0.9 - 0.01 * i),
    LinearDecay(1.0, 0.05, floor=0.25): lambda i: max(0.25, 1.0 - 0.05 * i),
    InverseSigmoidDecay(20): lambda i: 20 / (20 + math.exp(i / 20)),
}
every_schedule = pytest.mark.parametrize(
    "schedule, formula", SCHEDULES.items(), ids=map(str, SCHEDULES)
)


@every_schedule
def test_a_schedule_is_the_papers_formula(schedule, formula):
    for step in (0, 1, 7, 100, 300):
        value = schedule(step)
        assert value.shape == ()
        assert keras.backend.standardize_dtype(value.dtype) == "float32"
        np.testing.assert_allclose(numbers(value), formula(step), rtol=1e-5)


def test_the_inverse_sigmoid_ends_at_zero_where_the_exponential_overflows():
    assert numbers(InverseSigmoidDecay(10)(100_000)) == 0
    np.testing.assert_allclose(numbers(InverseSigmoidDecay(10)(10 * math.log(10))), 0.5, rtol=1e-5)


@every_schedule
def test_a_schedule_is_made_again_from_its_config(schedule, formula):
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(schedule)))
    assert config["registered_name"] == f"seqkeras>{type(schedule).__name__}"
    assert keras.saving.deserialize_keras_object(config) == schedule


test_numbers_out_of_range_are_refused = refusals(
    (lambda: Constant(1.1), "Constant: k must be from 0 to 1; received {'k': 1.1}"),
    (lambda: LinearDecay(-0.1, 0), "LinearDecay: k must be from 0 to 1"),
    (lambda: LinearDecay(1, -0.1), "LinearDecay: c must be at least 0"),
    (lambda: LinearDecay(0.5, 0, 0.6), "LinearDecay: floor must be from 0 to k"),
    (lambda: InverseSigmoidDecay(0.9), "InverseSigmoidDecay: k must be at least 1"),
)

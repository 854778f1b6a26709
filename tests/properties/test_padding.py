import keras
import numpy as np
import pytest
from keras import tree

from tests.arrays import close, numbers, right_padded
from tests.catalogue import CASES, call, options_long, seq2seq
from tests.catalogue.attention import ATTENTIONS
from tests.catalogue.case import S
from tests.catalogue.recurrent import BIDIRECTIONAL, RECURRENT
from tests.conftest import others_long

PADDED = [case for case in CASES if case.lengths]
MASKED = [case for case in CASES if case.mask]
MASKS = {
    "holes": np.array([[1, 0, 1, 1, 0], [0, 1, 0, 0, 1]], bool),
    "right": right_padded([5, 3], S),
    "left": right_padded([5, 3], S)[:, ::-1],
}


def cut(array, like):
    return array[tuple(slice(size) for size in like.shape)]


@options_long(PADDED)
def test_padding_changes_nothing(case):
    layer, inputs = case.built(), case.inputs()
    expected = numbers(call(layer, inputs))
    actual = numbers(call(layer, case.padded(inputs, steps=2)))
    close(tree.map_structure(cut, actual, expected), expected)


def in_numbers(case):
    return any(case.inputs()[name].dtype.kind == "f" for name in case.lengths)


@options_long([case for case in PADDED if in_numbers(case)])  # integers are always numbers
def test_padding_may_hold_no_numbers(case):
    layer, inputs = case.built(), case.inputs()
    expected = numbers(call(layer, inputs))
    actual = numbers(call(layer, case.padded(inputs, steps=2, number=np.nan)))
    close(tree.map_structure(cut, actual, expected), expected)


@options_long(MASKED)
@pytest.mark.parametrize("policy", others_long(["float32", "mixed_float16"]))
def test_a_fully_masked_row_gives_zeros(case, policy, restored):
    keras.config.set_dtype_policy(policy)
    layer, inputs = case.built(), case.inputs()
    mask = inputs[case.mask].copy()
    mask[1] = False
    outputs = numbers(call(layer, inputs | {case.mask: mask}))
    whole = numbers(call(layer, inputs))
    for each, other in zip(tree.flatten(outputs), tree.flatten(whole), strict=True):
        assert np.all(each[1] == 0)
        close(each[0], other[0], atol=1e-6 if policy == "float32" else 1e-2)


@options_long(seq2seq.CASES)
def test_a_source_without_a_token_gives_numbers(case):
    layer, inputs = case.built(), case.inputs()
    inputs["lengths"] = np.array([5, 0])
    assert np.all(np.isfinite(numbers(call(layer, inputs))))


@pytest.mark.parametrize("mask", others_long(MASKS.values()), ids=MASKS)
@options_long(RECURRENT + BIDIRECTIONAL)
def test_masked_steps_give_zeros_and_keep_the_state(case, mask):
    layer, sequence = case.built(), case.inputs()["sequences"]
    outputs, *states = numbers(call(layer, {"sequences": sequence, "mask": mask}))
    assert np.all(outputs[~mask] == 0)
    for row, kept in enumerate(mask):
        alone, *final = numbers(call(layer, {"sequences": sequence[row : row + 1, kept]}))
        close(outputs[row, kept], alone[0])
        close([state[row] for state in states], [state[0] for state in final])


@options_long(ATTENTIONS)
def test_no_weight_lies_where_attention_is_not_allowed(case):
    layer, inputs = case.built(), case.inputs()
    mask = inputs["attention_mask"]
    _, weights = numbers(call(layer, inputs))
    assert np.all(weights[~mask] == 0)
    close(weights.sum(axis=-1), np.ones(mask.shape[:2]))

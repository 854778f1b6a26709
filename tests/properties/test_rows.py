import keras
import pytest

from tests.arrays import close, numbers
from tests.catalogue import B, CASES, call


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rows_of_a_batch_do_not_meet(case):
    layer, inputs = case.build(), case.inputs()
    together = numbers(call(layer, inputs))
    for row in range(B):
        alone = call(layer, keras.tree.map_structure(lambda each: each[row : row + 1], inputs))
        close(alone, keras.tree.map_structure(lambda each: each[row : row + 1], together))

from keras import tree

from tests.arrays import close, numbers
from tests.catalogue import CASES, call, options_long
from tests.catalogue.case import B


def only(row, batch):
    return tree.map_structure(lambda each: each[row : row + 1], batch)


@options_long(CASES)
def test_rows_of_a_batch_do_not_meet(case):
    layer, inputs = case.built(), case.inputs()
    together = numbers(call(layer, inputs))
    for row in range(B):
        close(call(layer, only(row, inputs)), only(row, together))

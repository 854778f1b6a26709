import pytest

from seqkeras.models import TreeClassifier
from tests.agreement import DTYPES
from tests.catalogue import trees
from tests.complex_step import assert_equals_loops
from tests.references.tree import tree_classifier
from tests.refusals import refusals

CASES = [case for case in trees.CASES if case.name.startswith("TreeClassifier")]


def weights_of(model):
    """The model's weights as the reference names them."""
    return {
        "embeddings": model.embedding.embeddings,
        "layer": model.encoder.weights,
        "output": model.output_layer.weights,
    }


def expected_logits(model, weights, inputs):
    given = {name: inputs[name] for name in ("token_ids", "lengths", "children")}
    return tree_classifier(**given, cell=model.cell_name, **weights)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_and_gradients_are_the_papers_formula_node_by_node(case, dtype):
    assert_equals_loops(case.build, dtype, case.inputs(), weights_of, expected_logits)


test_what_can_not_be_a_classifier_is_refused = refusals(
    (lambda: TreeClassifier(7, 5, 3, 2, cell="gru"), "TreeClassifier: cell must be one of ...; re")
)

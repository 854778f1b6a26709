"""Random inputs: Keras, SavedModel, `serving` and its HTTP server give the same answers.

`python -m tests.random_inputs --minutes 60` draws new inputs for as long, and says how many each
pipeline and host has answered.
"""

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.conftest import others_long
from tests.random_inputs.cases import CASES, FIRST, TEMPORARY
from tests.random_inputs.checking import check

EXAMPLES = 8  # lists of inputs of one case


@pytest.mark.parametrize("case", others_long(CASES, short=FIRST), ids=lambda case: case.name)
def test_every_host_answers_as_keras_does(case, request):
    folder = Path(TEMPORARY.name, case.name)
    if case.name == "classify" and not folder.exists():
        bundle = request.getfixturevalue("classifier_bundle")
        folder.mkdir()
        (folder / "run").symlink_to(bundle.parent / "run")
        (folder / "bundle").symlink_to(bundle)

    @hypothesis.settings(max_examples=EXAMPLES)
    @hypothesis.given(st.lists(case.inputs, min_size=1, max_size=4))
    def hosts_agree(values):
        check(case, values)

    hosts_agree()

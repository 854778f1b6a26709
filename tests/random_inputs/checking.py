"""One list of inputs, answered by every host."""

import collections
import itertools
import json
import re

import numpy as np
import tensorflow as tf

from seqkeras.export.pipelines import record_of
from seqkeras.export.text_graphs.row_errors import ERROR
from seqkeras.serving.lines import from_json
from seqkeras.serving.printing import as_content
from tests.random_inputs.by_keras import CLOSE, same_content
from tests.random_inputs.cases import opened

SURROGATE = re.compile("[\ud800-\udfff]")
TRIED = collections.Counter()  # (case, host) -> inputs


def check(case, values, *folder):
    """Ask every host for the answers, and compare them.

    Args:
        case: a `Case`.
        values: a list of its inputs.
        folder: of its bundle, if that is to be kept.

    Raises:
        AssertionError: if a host answers otherwise than Keras, or refuses what another answers.
    """
    bundle = opened(case.name, *folder)
    values = [from_json(json.loads(json.dumps(value))) for value in values]
    alone = [_asked(bundle.pipeline, value) for value in values]
    good = [place for place, answer in enumerate(alone) if not isinstance(answer, ValueError)]
    _check_together(bundle, values, alone, good)
    _check_http(case, bundle, values, alone)
    for place in good:
        _check_strings(case, bundle, values[place], alone[place])
        if case.keras is not None:
            given = bundle.pipeline(values[place], **case.options) if case.options else alone[place]
            case.keras(bundle, values[place], given)
            TRIED[case.name, "Keras"] += 1
    TRIED[case.name, "serving"] += len(values)
    TRIED[case.name, "refused"] += len(values) - len(good)


def _asked(pipeline, value):
    """The answer, or the ValueError of a refusal; any other error is a fault."""
    try:
        return pipeline(value)
    except ValueError as error:
        assert str(error).strip()
        assert "\n" not in str(error).strip()
        return error


def _check_together(bundle, values, alone, good):
    """A batch answers each input as it is answered alone."""
    answers = bundle.pipeline([values[place] for place in good])
    for place, answer in zip(good, answers, strict=True):
        same_content(as_content(answer), as_content(alone[place]))


def _refused(name):
    raise AssertionError(f"{name} is no JSON")


def _posted(case, bundle, values):
    body = json.dumps({"inputs": values}).replace("Infinity", "1e400")
    return bundle.client.post(
        f"/v1/bundles/{case.name}", content=body, headers={"content-type": "application/json"}
    )


def _check_http(case, bundle, values, alone):
    """A number that no JSON can answer is refused with its request, and answered by no host."""
    is_finite = ["Infinity" not in json.dumps(value) for value in values]
    if not all(is_finite):
        assert _posted(case, bundle, values).status_code == 400
        assert all(finite or isinstance(own, ValueError) for finite, own in zip(is_finite, alone))
        values, alone = (list(itertools.compress(each, is_finite)) for each in (values, alone))
    response = _posted(case, bundle, values)
    assert response.status_code == 200, response.text
    content = json.loads(response.text, parse_constant=_refused)
    answers = zip(values, content["answers"], alone, strict=True)
    for value, answer, expected in answers:
        if isinstance(expected, ValueError):
            assert answer.get("error"), (answer, expected)
        else:
            given = answer.pop("input", value)
            assert json.dumps(given) == json.dumps(value)
            same_content(answer, json.loads(json.dumps(as_content(expected))))
    TRIED[case.name, "HTTP"] += len(values)


def _check_strings(case, bundle, value, answer):
    """The SavedModel on strings; an input that it refuses by its documentation is left out."""
    outputs = _by_signature(bundle, value)
    if outputs is None:
        return
    TRIED[case.name, "SavedModel"] += 1
    record = record_of(bundle.manifest.pipeline)
    if record.expected is None:
        assert outputs["text"].decode() == answer.text
        return
    if record.expected_by:
        answer = bundle.pipeline(value, **record.expected_by)
    found = record.expected(outputs, answer, bundle.pipeline, value)
    assert found.actual == found.expected or found.is_tie, found
    expected = np.asarray(found.expected_numbers, "float64")
    np.testing.assert_allclose(np.asarray(found.numbers, "float64"), expected, **CLOSE)


def _by_signature(bundle, value):
    """The outputs of the signature that takes an input's parts; None if it refuses them.

    A lone surrogate, which a table of characters reads as an unknown one, has no UTF-8.
    """
    parts = value
    if isinstance(value, str):
        if SURROGATE.search(value):
            return None
        parts = {"text": value}
    elif isinstance(value, tuple):
        fields = getattr(bundle.pipeline, "fields", ())
        parts = dict(zip(fields, value, strict=False)) if len(value) == len(fields) else {}
    for function in bundle.signatures.get("saved_model_text", {}).values():
        if set(function.structured_input_signature[1]) == set(parts):
            outputs = function(**{name: tf.constant([part]) for name, part in parts.items()})
            outputs = {name: tensor.numpy()[0] for name, tensor in outputs.items()}
            return None if outputs.pop(ERROR) else outputs
    return None

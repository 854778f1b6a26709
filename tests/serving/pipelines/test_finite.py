"""An answer has finite numbers, or the input is refused; the others of its list are answered."""

import json

import numpy as np
import pytest
from starlette.testclient import TestClient

from seqkeras import serving
from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.manifest import NoFiniteNumber
from tests.serving.pipelines.toys import TOKENS, Toy, forecaster, load, write_bundle
from tests.serving.zoo import SPANS, TAGS

LABELS = ["x", "y", "z"]


def asked(context):
    return {"question": "who ?", "context": context}


# Pipeline, outputs, graph, settings, name of the second input, one that is well, and the other.
KINDS = {
    "classes": ("Classify", 3, "pooled", {"labels": LABELS}, "texts[1]", "the cat", "paris"),
    "several": (
        *("Classify", 3, "pooled", {"labels": LABELS, "multi_label": True}),
        *("texts[1]", "the cat", "to paris"),
    ),
    "one logit": ("Classify", 1, "pooled", {"labels": LABELS[:2]}, "texts[1]", "a cat", "paris"),
    "windows": (
        *("Classify", 3, "pooled", {"labels": LABELS, "stride": 5, "pairs": False}),
        *("texts[1]", "the cat", "the cat sat " * 20 + "paris"),
    ),
    "number": ("Classify", 1, "pooled", {}, "texts[1]", "the cat", "paris"),
    "tags": ("Tag", 3, "tokens", {"labels": TAGS}, "texts[1]", "the cat", "the dog ran to paris"),
    "chain": ("Tag", 3, "chain", {"labels": TAGS}, "texts[1]", "the cat", "the dog ran to paris"),
    "answers": (
        *("Answer", 2, "span", SPANS, "inputs[1]"),
        *(asked("the cat sat"), asked("the dog ran to paris")),
    ),
    "no answers": (
        *("Answer", 2, "span", SPANS | {"no_answer": True}, "inputs[1]"),
        *(asked("the cat sat"), asked("paris")),
    ),
    "choices": (
        *("Choose", 1, "choice", {}, "inputs[1]"),
        *({"text": "the cat", "choices": ["sat", other]} for other in ("ran", "paris")),
    ),
    "vectors": ("Embed", 5, "pooled", {}, "texts[1]", "the cat", "paris"),
    "masks": (
        "FillMask",
        len(TOKENS),
        "tokens and pooled",
        {},
        "texts[1]",
        "the [MASK]",
        "[MASK] paris",
    ),
    "normalized": ("Embed", 5, "pooled", {"normalize": True}, "texts[1]", "the cat", "paris"),
}
REASON = "the model gives no finite number for it."


def graph_of(outputs, kind, number):
    """A model that gives this number where a text has "paris"."""
    toy = Toy(outputs)
    toy.E[TOKENS.index("paris")] = number
    return toy.graph(kind)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", KINDS)
def test_an_input_without_a_finite_number_is_refused_alone(name, number, tmp_path):
    pipeline, outputs, kind, settings, second, good, bad = KINDS[name]
    answer = load(tmp_path / "toy", pipeline, graph_of(outputs, kind, number), settings)
    with pytest.raises(NoFiniteNumber) as refused:
        answer([good, bad, good])
    assert str(refused.value) == f"{pipeline}: {second}: {REASON}"
    first, error, last = answer.answers_or_errors([good, bad, good])
    assert isinstance(error, NoFiniteNumber) and REASON in str(error)
    assert type(first) is type(last) is type(answer(good))


def test_a_label_that_no_order_ranks_is_not_hidden_behind_the_top(tmp_path):
    toy = Toy(3)
    toy.W[:, 1] = np.nan
    settings = {"labels": LABELS, "multi_label": True}
    answer = load(tmp_path / "toy", "Classify", toy.graph("pooled"), settings)
    with pytest.raises(NoFiniteNumber):
        answer("the cat", top=1)


def test_numbers_that_overflow_in_the_model_are_refused(tmp_path):
    answer = load(tmp_path / "toy", "Forecast", forecaster(), tokenizer={})
    good, large = ((1.0, 2.0, 3.0),), ((3e38, 3e38, 3e38),) * 5
    with pytest.raises(NoFiniteNumber, match=r"^Forecast: series\[1\]: the model gives no finite"):
        answer([good, large])
    assert np.isfinite(answer.answers_or_errors([good, large])[0].values).all()


def test_a_vector_of_large_numbers_keeps_its_direction(tmp_path):
    toy = Toy(5)
    toy.E[TOKENS.index("paris")] *= 1e30
    folder = write_bundle(tmp_path / "toy", "Embed", toy.graph("pooled"), {"normalize": False})
    answer = serving.load(folder, threads=1)
    large = answer("paris")
    np.testing.assert_allclose(np.linalg.norm(answer("paris", normalize=True).vector), 1, rtol=1e-5)
    assert large.similarity(large) == pytest.approx(1)


def strict(response):
    """Return the content of JSON, which has no word for a number that is not finite."""
    return json.loads(response.text, parse_constant=lambda name: pytest.fail(name))


def test_a_server_answers_the_other_inputs(tmp_path):
    graph = graph_of(3, "pooled", np.nan)
    folder = write_bundle(tmp_path / "toy", "Classify", graph, {"labels": LABELS})
    tensor = {"name": "text", "datatype": "BYTES", "shape": [2], "data": ["the cat", "paris"]}
    with TestClient(Application(Service([("toy", folder)], log=False))) as client:
        response = client.post("/v1/bundles/toy", json={"inputs": ["the cat", "paris"]})
        good, bad = strict(response)["answers"]
        assert good["labels"] and bad == {"input": "paris", "error": f"Classify: text: {REASON}"}
        response = client.post("/v1/bundles/toy", json={"input": "paris"})
        assert (response.status_code, REASON in response.text) == (400, True)
        response = client.post("/v2/models/toy/infer", json={"inputs": [tensor]})
        columns = {output["name"]: output["data"] for output in strict(response)["outputs"]}
        assert columns["error"] == ["", f"Classify: text: {REASON}"] and columns["label"][1] == ""
        response = client.post("/v1/models/toy:predict", json={"instances": ["the cat", "paris"]})
        assert [row["error"] == "" for row in strict(response)["predictions"]] == [True, False]

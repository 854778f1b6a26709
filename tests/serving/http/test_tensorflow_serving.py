"""TensorFlow Serving's REST API: its documentation, its source, and a bundle's own SavedModel."""

import base64
import json

import numpy as np
import pytest

from seqkeras import serving


def predict(client, name, content, status=200):
    body = content if isinstance(content, bytes) else json.dumps(content)
    response = client.post(f"/v1/models/{name}:predict", content=body)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def test_rows_and_columns_have_the_forms_of_the_documentation(client, folders):
    embed, choose = (serving.load(folders[name], threads=1) for name in ("vectors", "choices"))
    vectors = [embed(text).vector.tolist() for text in ("the cat", "he")]
    for texts in (["the cat", "he"], [{"text": "the cat"}, {"text": "he"}]):
        rows = predict(client, "vectors", {"instances": texts})
        assert [*rows] == ["predictions"]
        found = [row["embedding"] for row in rows["predictions"]]
        np.testing.assert_allclose(found, vectors, rtol=1e-6)
        assert [row["error"] for row in rows["predictions"]] == ["", ""]
    for texts in (["the cat", "he"], {"text": ["the cat", "he"]}):
        columns = predict(client, "vectors", {"inputs": texts})
        assert [*columns] == ["outputs"]
        np.testing.assert_allclose(columns["outputs"]["embedding"], vectors, rtol=1e-6)
    expected = choose(("the cat", ["sat", "ran"]))
    row = {"text": "the cat", "choices": ["sat", "ran"]}
    [found] = predict(client, "choices", {"instances": [row]})["predictions"]
    assert found["choice"] == expected.text and found["index"] == expected.index
    np.testing.assert_allclose(found["scores"], expected.scores, rtol=1e-6)
    columns = {"inputs": {"text": ["the cat"], "choices": [["sat", "ran"]]}}
    found = predict(client, "choices", columns)["outputs"]
    assert found["choice"] == [expected.text]


def test_a_signature_may_be_named_and_strings_may_be_base64(client, folders):
    classify = serving.load(folders["classes"], threads=1)
    encoded = {"b64": base64.b64encode(b"the cat").decode()}
    alone = predict(client, "classes", {"instances": [encoded]})["predictions"][0]
    np.testing.assert_allclose(max(alone["scores"]), classify("the cat").score, rtol=1e-6)
    content = {"signature_name": "pair", "instances": [{"text": "the cat", "pair": "a dog"}]}
    pair = predict(client, "classes", content)["predictions"][0]
    assert pair["label"] == classify(("the cat", "a dog")).labels[0]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "JSON Parse error: The document is empty"),
        (b"{", "JSON Parse error: Expecting property name enclosed in double quotes at offset: 1"),
        (b"[]", "JSON Value: [] Is not object"),
        (b"{}", "Missing 'inputs' or 'instances' key"),
        ({"signature_name": 3, "inputs": []}, "not formatted correctly. 'signature_name' key must"),
        ({"signature_name": "x", "inputs": []}, 'Serving signature name: "x" not found in signatu'),
        ({"inputs": [], "instances": []}, "Not formatted correctly expecting only one of 'inputs'"),
        ({"instances": "a"}, "Excepting 'instances' to be an list/array"),
        ({"instances": []}, "No values in 'instances' array"),
        ({"inputs": {}}, "Missing named input: text in 'inputs' object."),
        ({"inputs": {"text": [3]}}, "JSON Value: 3 Type: Number is not of expected type: string"),
        ({"inputs": [True]}, "JSON Value: true Type: True is not of expected type: string"),
        ({"inputs": [None]}, "JSON Value: null Type: Null is not of expected type: string"),
        ({"inputs": {"text": [{"b64": "?"}]}}, "Unable to base64 decode"),
        ({"inputs": {"text": [{"b": "?"}]}}, "not formatted correctly for base64 data"),
        ({"instances": ["up|a", {"text": "up|a"}]}, "Expecting value/list but got object at item"),
        ({"instances": [{"text": "up|a"}, "up|a"]}, "Expecting object but got list at item 1 of i"),
        ({"instances": [{"words": "up|a"}]}, "Failed to process element: 0 key: words of 'instanc"),
        ({"instances": [{}]}, "Failed to process element: 0 of 'instances' list. JSON object: {}"),
        ({"instances": [["up|a"], ["up|a", "up|b"]]}, "Failed to process element: 1 of 'instances"),
        ({"inputs": [["up|a"], ["up|a", "up|b"]]}, "Encountered list at unexpected size: 2 at lev"),
        ({"inputs": [["up|a"], "b"]}, 'JSON Value: "b" found at incorrect level: 2 in the JSON'),
        ({"inputs": ["b", ["up|a"]]}, "Encountered list at unexpected level: 1 expected < 1"),
        ({"inputs": "up|a"}, "text must have shape (-1); received ()"),
        ({"inputs": [[["up|a"]]]}, "text must have shape (-1); received (1, 1, 1)"),
    ],
)
def test_errors_are_in_its_words(client, content, message):
    error = predict(client, "letters", content, 400)
    assert list(error) == ["error"] and message in error["error"]


def test_several_inputs_need_names(client):
    message = "expecting list of objects as multiple input tensors required as per tensorinfo_map"
    assert message in predict(client, "answers", {"instances": ["a"]}, 400)["error"]
    message = "expecting an object as multiple input tensors required as per tensorinfo_map"
    assert message in predict(client, "answers", {"inputs": ["a"]}, 400)["error"]
    uneven = {"inputs": {"question": ["who ?"], "context": ["he", "she"]}}
    assert "as many rows" in predict(client, "answers", uneven, 400)["error"]


@pytest.mark.parametrize(
    "line, status, message",
    [
        ("POST half:predict", 404, "Servable not found for request: Latest(half)"),
        ("POST tags/versions/2:predict", 404, "Servable not found for request: Specific(tags, 2)"),
        ("POST tags/labels/x:predict", 400, "Unrecognized servable version label: x"),
        ("POST tags:classify", 400, "Expected classify signature method_name to be tensorflow/ser"),
        ("POST tags", 400, "Malformed request: POST /v1/models/tags"),
        ("POST tags:what", 400, "Malformed request: POST /v1/models/tags:what"),
        ("GET tags:predict", 400, "Malformed request: GET /v1/models/tags:predict"),
        ("GET half", 404, "Could not find any versions of model half"),
        ("GET tags/versions/2", 404, "Could not find version 2 of model tags"),
        ("GET half/metadata", 404, "Servable not found for request: Latest(half)"),
    ],
)
def test_unknown_models_versions_and_verbs_are_told_as_there(client, line, status, message):
    method, path = line.split()
    response = client.request(method, f"/v1/models/{path}", content=b'{"instances": ["the cat"]}')
    assert response.status_code == status and response.json()["error"].startswith(message)


@pytest.mark.parametrize("path", ["letters", "letters_text", "letters/versions/1"])
def test_the_status_is_available(client, path):
    response = client.get(f"/v1/models/{path}")
    [status] = response.json()["model_version_status"]
    well = {"error_code": "OK", "error_message": ""}
    assert status == {"version": "1", "state": "AVAILABLE", "status": well}


def test_signatures_are_described(client):
    metadata = client.get("/v1/models/choices/metadata").json()["metadata"]
    signature = metadata["signature_def"]["signature_def"]["serving_default"]
    tensors = signature["inputs"] | signature["outputs"]
    kinds = {name: tensor["dtype"] for name, tensor in tensors.items()}
    texts = dict.fromkeys(["text", "choices", "choice", "error"], "DT_STRING")
    assert kinds == texts | {"index": "DT_INT32", "scores": "DT_FLOAT"}


def test_numbers_go_in_as_floats(client, folders):
    forecast = serving.load(folders["series"], threads=1)
    window = [[1, 2, 3], [4.5, 5, 6]]
    found = predict(client, "series", {"instances": [window]})["predictions"]
    np.testing.assert_allclose(found, [forecast(np.float32(window)).values], rtol=1e-6)
    for wrong, message in (
        ([["a", 2, 3]], 'JSON Value: "a" Type: String is not of expected type: float'),
        ([[1, 2]], "series must have shape (length, 3)"),
        ([[10**400, 2, 3]], "to float without loss of precision"),
        ([[1e39, 2, 3]], "must be finite numbers in float32"),
    ):
        assert message in predict(client, "series", {"instances": [wrong]}, 400)["error"]

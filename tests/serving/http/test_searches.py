"""Signatures of generation beside the default one: `n_best`, `sample`, and cut prompts."""

import json

import numpy as np
import pytest
from starlette.testclient import TestClient

from seqkeras import serving
from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.http.served_bundle import Opening
from seqkeras.serving.manifest import DecodingDefaults, SignatureSpec, TensorSpec, read_manifest
from seqkeras.serving.text import BOS, EOS
from tests.serving import toy_bundle, toy_language_model
from tests.serving.http.served import on_socket

COUNT = 3
TEXT, SCORE = TensorSpec("text", "string", ("batch",)), TensorSpec("score", "float32", ("batch",))
TEXTS = TensorSpec("texts", "string", ("batch", COUNT))
SEARCHES = {
    "saved_model_text/1": {
        "serving_default": SignatureSpec((TEXT,), (TEXT, SCORE)),
        "n_best": SignatureSpec((TEXT,), (TEXTS,)),
        "sample": SignatureSpec((TEXT,), (TEXT, SCORE)),
    }
}
ROWS = {  # how rows are drawn; the first is greedy
    "temperature": [1.0, 0.7, 0.7, 1.3, 0.7, 0.0, 1.0, 1.0],
    "top_k": [1, 0, 0, 5, 0, 0, -1, 0],
    "top_p": [1.0, 0.9, 0.9, 1.0, 0.9, 1.0, 1.0, 1.5],
    "seed": [0, 7, 7, -11, 8, 0, 0, 0],
}
WRONG = {5: "temperature", 6: "top_k", 7: "top_p"}
KINDS = [
    ("temperature", "float32", "FP32"),
    ("top_k", "int32", "INT32"),
    ("top_p", "float32", "FP32"),
    ("seed", "int64", "INT64"),
]
DTYPES = {"string": "DT_STRING", "float32": "DT_FLOAT", "int32": "DT_INT32", "int64": "DT_INT64"}


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Bundles with all searches: a language model, and a translator."""
    folder = tmp_path_factory.mktemp("searched")
    model, changes = toy_language_model.ToyLanguageModel(unknown=-1.0), {"saved_models": SEARCHES}
    return {
        "generator": toy_language_model.write_bundle(folder / "generator", model, **changes),
        "letters": toy_bundle.write_bundle(folder / "letters", **changes),
    }


@pytest.fixture(scope="module")
def service(searched):
    return Service([*searched.items()], Opening(threads=1), log=False)


@pytest.fixture(scope="module")
def client(service):
    with TestClient(Application(service)) as client:
        yield client


def predict(client, name, signature, inputs, status=200):
    content = {"signature_name": signature, "inputs": inputs}
    response = client.post(f"/v1/models/{name}:predict", content=json.dumps(content))
    assert response.status_code == status, response.text
    return response.json()["outputs"] if status == 200 else response.json()["error"]


@pytest.mark.parametrize("name", ["generator", "letters"])
def test_n_best_gives_as_many_answers_as_were_exported(client, searched, name):
    texts = {"generator": ["bad", "e"], "letters": ["up|bad", "up|a"]}[name]
    pipeline = serving.load(searched[name], threads=1)
    found = predict(client, name, "n_best", [*texts, "?"])
    for row, text in enumerate(texts):
        best = pipeline(text, num_beams=COUNT, n_best=COUNT)
        answers = [best, *best.alternatives]
        assert found["texts"][row] == [answer.text for answer in answers]
        scores = [answer.score for answer in answers]
        np.testing.assert_allclose(found["scores"][row], scores, rtol=1e-5)
    if name == "letters":
        assert found["texts"][-1] == COUNT * [""] and found["scores"][-1] == COUNT * [0]
        assert found["error"][:-1] == ["", ""] and "direction" in found["error"][-1]


def test_where_there_are_fewer_answers_scores_are_missing(searched, tmp_path):
    decoding = DecodingDefaults(start_id=BOS, end_id=EOS, regex="cb|a")
    folder = toy_bundle.write_bundle(tmp_path, saved_models=SEARCHES, decoding=decoding)
    with TestClient(Application(Service([("few", folder)], log=False))) as client:
        found = predict(client, "few", "n_best", ["up|bad"])
    assert sorted(found["texts"][0][:2]) == ["a", "cb"] and found["texts"][0][2] == ""
    assert found["scores"][0][2] is None  # JSON has no word for -inf


def test_each_row_is_drawn_by_its_own_options(client, searched):
    generate = serving.load(searched["generator"], threads=1)
    texts = len(ROWS["seed"]) * ["bad"]
    found = predict(client, "generator", "sample", {"text": texts, **ROWS})
    assert found["text"][0] == generate("bad").text
    for row, (temperature, top_k, top_p, seed) in enumerate(zip(*ROWS.values())):
        if row in WRONG:
            assert found["text"][row] == "" and f"Generate: {WRONG[row]} " in found["error"][row]
            continue
        expected = generate(
            "bad",
            sample=True,
            temperature=float(np.float32(temperature)),
            top_k=top_k or None,
            top_p=float(np.float32(top_p)),
            seed=seed % 2**64,
        )
        assert (found["text"][row], found["error"][row]) == (expected.text, "")
        assert found["score"][row] == pytest.approx(expected.score, rel=1e-4)
        alone = {"text": ["bad"]} | {name: [values[row]] for name, values in ROWS.items()}
        assert predict(client, "generator", "sample", alone)["text"] == [expected.text]
    assert found["text"][1] == found["text"][2] != found["text"][4]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"top_k": [1.5]}, "JSON Value: 1.5 Type: Number is not of expected type: int32"),
        ({"seed": [2**63]}, "Cannot convert JSON value: [9223372036854775808] to int64"),
        ({"temperature": ["x"]}, "is not of expected type: float"),
        ({"top_p": [1.0, 1.0]}, "all inputs must have as many rows"),
    ],
)
def test_options_of_a_wrong_type_are_refused(client, change, message):
    row = {"text": ["bad"], "temperature": [1], "top_k": [0], "top_p": [1], "seed": [0]}
    assert message in predict(client, "generator", "sample", row | change, 400)


@pytest.mark.parametrize("kind", ["", "n_best", "sample"])
def test_a_prompt_is_cut_and_what_fits_has_all_its_room(client, searched, kind):
    generate = serving.load(searched["generator"], threads=1)
    long, drawn, options = 5 * "badge", {}, {}
    if kind == "sample":
        drawn = {name: 2 * [values[0]] for name, values in ROWS.items()}
        options = {"sample": True, "top_k": 1}
    if kind == "n_best":
        options = {"n_best": COUNT, "num_beams": COUNT}
    signature = f"truncate_{kind}".strip("_")
    found = predict(client, "generator", signature, {"text": ["bad", long], **drawn})
    cut = generate(long, truncate=True, max_new_tokens=1, **options)
    expected = [generate("bad", **options), cut]
    given = [texts[0] for texts in found["texts"]] if kind == "n_best" else found["text"]
    assert given == [answer.text for answer in expected] and found["error"] == ["", ""]


def test_triton_finds_the_signature_by_its_inputs(service):
    triton = pytest.importorskip("tritonclient.http", reason="needs requirements-test.txt")
    inputs = []
    for name, kind, dtype in [("text", object, "BYTES"), *KINDS]:
        array = np.array({"text": ["bad"], **ROWS}[name][:1], kind)
        inputs.append(triton.InferInput(name, [1], dtype))
        inputs[-1].set_data_from_numpy(array)
    with on_socket(service) as port, triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        greedy = client.infer("generator", inputs[:1]).as_numpy("text")
        assert client.infer("generator", inputs).as_numpy("text") == greedy
        inputs[-1] = triton.InferInput("seed", [1], "FP32")
        inputs[-1].set_data_from_numpy(np.float32([1]))
        with pytest.raises(Exception, match="seed: datatype must be INT64; received 'FP32'"):
            client.infer("generator", inputs)


@pytest.mark.long
def test_searches_are_those_of_the_saved_model(tmp_path):
    """The same n best texts, the same columns, the same greedy row of `sample`."""
    import tensorflow as tf

    from seqkeras.export.__main__ import main
    from tests.export.test_searches import save_language_model

    save_language_model(tmp_path / "run", "abcd")
    folder = tmp_path / "bundle"
    assert main([str(tmp_path / "run"), str(folder), "--sampling", "--n-best", "4"]) == 0
    saved = tf.saved_model.load(str(folder / "saved_model_text/1")).signatures
    specs_of = read_manifest(folder).saved_models["saved_model_text/1"]
    texts = ["ab", "cab", 3 * "abcd", "", "é"]
    drawn = {"temperature": 1.0, "top_k": 1, "top_p": 1.0, "seed": 5}
    kinds = {name: kind for name, kind, _ in KINDS}
    service = Service([("lm", folder)], Opening(threads=1), log=False)
    with TestClient(Application(service)) as client:
        told = client.get("/v1/models/lm/metadata").json()["metadata"]["signature_def"]
        assert set(told["signature_def"]) == set(specs_of)
        for key, spec in specs_of.items():
            for part, specs in (("inputs", spec.inputs), ("outputs", spec.outputs)):
                described = told["signature_def"][key][part]
                assert {name: info["dtype"] for name, info in described.items()} == {
                    spec.name: DTYPES[spec.dtype] for spec in specs
                }
            rows = {name: len(texts) * [drawn[name]] for name in drawn if "sample" in key}
            given = {name: tf.constant(values, kinds[name]) for name, values in rows.items()}
            outputs = saved[key](text=tf.constant(texts), **given)
            found = predict(client, "lm", key, {"text": texts, **rows})
            assert [bool(error) for error in found["error"]] == [
                bool(error) for error in outputs["error"].numpy()
            ]
            name, score = ("texts", "scores") if "n_best" in key else ("text", "score")
            written = np.char.decode(outputs[name].numpy().astype(bytes), "utf-8")
            np.testing.assert_array_equal(found[name], written)
            np.testing.assert_allclose(found[score], outputs[score], rtol=1e-4, atol=1e-5)

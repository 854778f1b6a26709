"""The Open Inference Protocol, spoken by Triton's client."""

import json

import numpy as np
import pytest

from seqkeras import serving
from tests.serving.http.served import ask
from tests.serving.zoo import INPUTS, TAGS

triton = pytest.importorskip("tritonclient.http", reason="needs requirements-test.txt")
from tritonclient.utils import InferenceServerException  # noqa: E402


@pytest.fixture
def client(port):
    with triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        yield client


def tensor(name, values, datatype="BYTES", binary=True):
    array = np.array(values, object if datatype == "BYTES" else "float32")
    found = triton.InferInput(name, list(array.shape), datatype)
    found.set_data_from_numpy(array, binary_data=binary)
    return found


def test_the_server_and_its_models_are_live_and_described(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("letters") and client.is_model_ready("letters", "1")
    assert not client.is_model_ready("letters", "2") and not client.is_model_ready("nothing")
    about = client.get_server_metadata()
    assert about["name"] == "seqkeras-serving" and about["version"] == serving.__version__
    assert client.get_model_metadata("choices") == {
        "name": "choices",
        "versions": ["1"],
        "platform": "onnxruntime_onnx",
        "inputs": [
            {"name": "text", "datatype": "BYTES", "shape": [-1]},
            {"name": "choices", "datatype": "BYTES", "shape": [-1, -1]},
        ],
        "outputs": [
            {"name": "choice", "datatype": "BYTES", "shape": [-1]},
            {"name": "index", "datatype": "INT32", "shape": [-1]},
            {"name": "scores", "datatype": "FP32", "shape": [-1, -1]},
            {"name": "error", "datatype": "BYTES", "shape": [-1]},
        ],
    }


@pytest.mark.parametrize("binary", [True, False])
def test_strings_and_numbers_go_in_json_and_in_binary(client, folders, binary):
    pipeline = serving.load(folders["letters"], threads=1)
    texts = ["up|bad", "down|egad"]
    outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in ("text", "score")]
    inputs = [tensor("text", texts, binary=binary)]
    result = client.infer("letters", inputs, outputs=outputs, request_id="7")
    expected = pipeline(texts)
    decode = bytes.decode if binary else str
    assert [decode(text) for text in result.as_numpy("text")] == [a.text for a in expected]
    np.testing.assert_allclose(result.as_numpy("score"), [a.score for a in expected], rtol=1e-5)
    assert result.get_response()["id"] == "7"
    assert result.get_response()["model_version"] == "1"


def test_parameters_are_options_that_leave_all_labels_in_a_tensor(client, folders):
    pipeline = serving.load(folders["letters"], threads=1)
    parameters = {"num_beams": 3, "length_penalty": 0.5}
    result = client.infer("letters", [tensor("text", ["up|bad"])], parameters=parameters)
    expected = pipeline("up|bad", **parameters)
    assert result.as_numpy("score")[0] == pytest.approx(expected.score, rel=1e-5)
    with pytest.raises(InferenceServerException, match="POST /v1/bundles/classes gives") as error:
        client.infer("classes", [tensor("text", ["the cat"])], parameters={"top": 1})
    assert error.value.status() == "400"


def test_a_request_may_have_a_timeout_a_priority_and_a_sequence(client):
    inputs = [tensor("text", ["up|bad"])]
    others = {"priority": 3, "sequence_id": 7, "sequence_start": True}
    for timeout in (60_000_000, 10**400):
        result = client.infer("letters", inputs, timeout=timeout, **others)
        assert result.as_numpy("text") == [b"cbe"]
    many = [tensor("text", 1000 * ["up|bad"])]
    with pytest.raises(InferenceServerException, match="there was no answer in time") as error:
        client.infer("letters", many, timeout=1)
    assert error.value.status() == "504"
    for wrong in (-1, "x", True):
        message = "timeout must be a whole number of microseconds from 0; received"
        with pytest.raises(InferenceServerException, match=message):
            client.infer("letters", inputs, timeout=wrong)


def test_pipelines_give_their_columns(client, folders):
    answers = {name: serving.load(folders[name], threads=1) for name in INPUTS}

    def infer(name, **inputs):
        given = [tensor(key, values) for key, values in inputs.items()]
        return client.infer(name, given).as_numpy

    found = infer("classes", pair=["a dog"], text=["the cat"])
    expected = answers["classes"](("the cat", "a dog"))
    np.testing.assert_allclose(found("scores"), [[expected.scores[x] for x in "xyz"]], rtol=1e-5)
    assert found("label") == [expected.labels[0].encode()]
    found = infer("number", text=["the cat"])
    np.testing.assert_allclose(found("score"), [answers["number"]("the cat").score], rtol=1e-5)
    found, expected = infer("tags", text=["the dogs ran", "he"]), answers["tags"]("the dogs ran")
    assert found("tags")[0].tolist() == [word.tag.encode() for word in expected.words]
    assert set(found("tags")[0]) <= {tag.encode() for tag in TAGS}
    assert found("tags")[1, 1:].tolist() == [b"", b""]
    assert found("starts").tolist() == [[0, 4, 9], [0, -1, -1]]
    question, context = INPUTS["answers"][0]
    found = infer("answers", question=[question], context=[context])
    expected = answers["answers"]((question, context))
    assert found("answer") == [expected.text.encode()]
    assert (found("start"), found("end")) == ([expected.start], [expected.end])
    found = infer("masks", text=["the [MASK] ran to [MASK]", "a [MASK]"])
    expected = answers["masks"]("the [MASK] ran to [MASK]")
    assert found("text")[0] == expected.text.encode()
    tokens = [[filler.token.encode() for filler in mask] for mask in expected.masks]
    assert found("tokens")[0].tolist() == tokens
    assert found("tokens")[1, 1].tolist() == 5 * [b""] and not found("scores")[1, 1].any()
    window = np.float32([[[1, 2, 3], [4, 5, 6]]])
    result = client.infer("series", [tensor("series", window, "FP32")])
    expected = answers["series"](window[0])
    np.testing.assert_allclose(result.as_numpy("values"), [expected.values], rtol=1e-5)


def test_errors_are_told_to_the_client(client):
    text = [tensor("text", ["up|bad"])]
    wanted = {"outputs": [triton.InferRequestedOutput("logits")]}
    for name, inputs, options, message in (
        ("nothing", text, {}, "Request for unknown model: 'nothing' is not found"),
        ("letters", [tensor("words", ["a"])], {}, "inputs must be text; received words"),
        ("letters", [tensor("text", ["x", "y"])], {}, "Translate: text must begin with a directi"),
        ("letters", [tensor("text", [["a", "x"]])], {}, r"text must have shape \(-1\); received"),
        ("letters", [tensor("text", [1.5], "FP32")], {}, "text: datatype must be BYTES; received"),
        ("letters", text, wanted, "outputs must be of text, score, error; received"),
        ("letters", text, {"model_version": "3"}, "version 3 is not found"),
    ):
        with pytest.raises(InferenceServerException, match=message) as error:
            client.infer(name, inputs, **options)
        assert error.value.status() in ("400", "404")
    found = client.infer("letters", [tensor("text", ["up|bad", "x"])]).as_numpy
    assert found("text").tolist() == [b"cbe", b""] and found("score")[1] == 0
    well, refused = found("error")
    assert well == b"" and b"must begin with a direction" in refused


@pytest.mark.parametrize(
    "size, data, length, message",
    [
        (10, b"\x06\0\0\0up|bad", None, "data must be a list; received None"),
        (10, b"\x06\0\0\0up|bad", 9999, "must be from 0 to"),
        (10, b"\x07\0\0\0up|bad", 0, "the bytes end within a string of 7 bytes"),
        (13, b"\x06\0\0\0up|bad\x01\0\0", 0, "the bytes end within the length of a string"),
        (10, b"\x06\0\0\0up|b\xff\xff", 0, "the body must be UTF-8"),
        (99, b"\x06\0\0\0up|bad", 0, "must be from 0 to 10, the bytes that are left"),
        (-1, b"", 0, "must be from 0 to 0"),
        (0, b"", 0, r"shape [1] has 1 values; received 0"),
        (10, b"\x06\0\0\0up|badup|bad", 0, "6 bytes behind the JSON belong to no input"),
    ],
)
def test_binary_that_is_not_what_it_says_is_refused(port, size, data, length, message):
    given = {"name": "text", "shape": [1], "datatype": "BYTES"}
    if length is not None:
        given["parameters"] = {"binary_data_size": size}
    text = json.dumps({"inputs": [given]}).encode()
    headers = {} if length is None else {"Inference-Header-Content-Length": length or len(text)}
    body = text if length is None else text + data
    status, content = ask(port, "/v2/models/letters/infer", body, headers)
    assert status == 400 and message in content["error"]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"shape": None}, "text: shape must be a list of sizes; received None"),
        ({"shape": [-1]}, "shape must be a list of sizes"),
        ({"shape": [2]}, "shape [2] has 2 values; received 1"),
        ({"shape": 4 * [1 << 20]}, "values; received 1"),
        ({"data": [3]}, "data must be of BYTES; received int 3"),
        ({"data": "up|bad"}, "data must be a list"),
        ({"datatype": 7}, "datatype must be BYTES; received int 7"),
        ({"parameters": []}, "parameters must be an object"),
    ],
)
def test_a_wrong_tensor_is_refused(port, change, message):
    given = {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["up|bad"]}
    status, content = ask(port, "/v2/models/letters/infer", {"inputs": [given | change]})
    assert status == 400 and message in content["error"]


def test_a_row_of_one_string_may_have_an_axis_of_its_own(port):
    given = {"name": "text", "shape": [2, 1], "datatype": "BYTES", "data": [["up|bad"], ["up|ab"]]}
    status, content = ask(port, "/v2/models/letters/infer", {"inputs": [given]})
    assert status == 200 and content["outputs"][0]["data"] == ["cbe", "bc"]


def test_a_request_is_answered_by_the_bundle_that_it_was_read_for(folders):
    """Another bundle takes the place of the first between a request and its answer."""
    import asyncio

    from seqkeras.serving.http.application import Application, Service
    from seqkeras.serving.http.endpoint import Call
    from seqkeras.serving.http.open_inference import OpenInferenceApi
    from seqkeras.serving.pipelines import open_bundle

    application = Application(Service([("toy", folders["classes"])], log=False))
    [bundle] = application.bundles
    api = OpenInferenceApi(application.bundles)
    inputs = [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["the cat"]}]
    scope = {"headers": [], "path_params": {"name": "toy"}}
    call = Call(scope, json.dumps({"inputs": inputs}).encode())

    async def outputs():
        request = asyncio.create_task(api.infer(call))
        await asyncio.sleep(0)  # it is read, and waits
        bundle.worker.pipeline = open_bundle(folders["vectors"], threads=1)
        answers = [await request, await api.infer(call)]
        return [
            [output["name"] for output in json.loads(answer.body)["outputs"]] for answer in answers
        ]

    assert asyncio.run(outputs()) == [["scores", "label", "error"], ["embedding", "error"]]
    application.bundles.close()

import json

import pytest

from seqkeras import serving
from seqkeras.serving.__main__ import main
from tests.serving.answers import assert_same
from tests.serving.zoo import INPUTS


def post(client, name, content, status=200):
    body = content if isinstance(content, bytes) else json.dumps(content)
    response = client.post(f"/v1/bundles/{name}", content=body)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.text.count("\n") == 1 and response.text.endswith("\n")
    return response.json()


@pytest.mark.parametrize("name", INPUTS)
def test_answers_are_what_predict_prints(name, client, folders, capsys):
    inputs = [json.dumps(value) for value in INPUTS[name]]
    options = ["--json", "--json-input", "--threads", "1"]
    assert main(["predict", str(folders[name]), *options, *inputs]) == 0
    expected = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert post(client, name, {"inputs": []}) == {"answers": []}
    for value, answer in zip(INPUTS[name], expected, strict=True):
        assert_same(post(client, name, {"input": value}), answer)
    assert_same(post(client, name, {"inputs": INPUTS[name]}), {"answers": expected})


def test_options_are_those_of_the_pipeline(client, folders):
    pipeline = serving.load(folders["letters"], threads=1)
    best = pipeline("up|bad", num_beams=3, n_best=2)
    answer = post(client, "letters", {"input": "up|bad", "options": {"num_beams": 3, "n_best": 2}})
    assert answer["alternatives"][0]["text"] == best.alternatives[0].text
    forced = {"forced_tokens": {"0": "g"}, "max_new_tokens": 2}
    answer = post(client, "generator", {"input": "a", "options": forced})
    assert answer["finish"] == "length" and answer["text"].startswith("g")


def test_a_refused_input_of_a_list_is_its_own_error(client):
    inputs = ["up|bad", "sideways|bad", "", 5, "up|" + 20 * "a", "down|egad"]
    found = post(client, "letters", {"inputs": inputs})["answers"]
    alone = post(client, "letters", {"input": inputs[5]})["text"]
    assert [answer.get("text") for answer in found] == ["cbe", None, None, None, None, alone]
    errors = [answer["error"] for answer in found[1:5]]
    assert "unknown direction 'sideways'" in errors[0]
    assert errors[1] == "Translate: text is empty; write something to answer."
    assert errors[2] == "Translate: text must be a string; received int 5."
    assert "has 23 characters; the limit is 13" in errors[3]
    assert [answer["input"] for answer in found] == inputs


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "the body must be JSON; received nothing"),
        (b"{", "the body must be JSON; received '{'"),
        (b'"up|bad"', "the body must be a JSON object; received 'up|bad'"),
        (b'{"input": "\xff"}', "the body must be UTF-8; received byte 0xff at position 11"),
        (b"[" * 3000 + b"]" * 3000, "nested over 100 levels deep"),
        (b'{"input": ' + b"1" * 5000 + b"}", "a whole number may have 4,300 digits; it has 5,000"),
        (b"{}", 'the body must have either "input" or "inputs", e.g. {"input": "up|bad"}'),
        (b'{"input": "a", "inputs": []}', 'the body must have either "input" or "inputs"'),
        (b'{"text": "a"}', "the body must have input, inputs, options only; it has 'text'"),
        (b'{"inputs": "a"}', "inputs must be a list; received 'a'"),
        (b'{"inputs": [[1, NaN]]}', "its numbers must be finite, and null where one is missing; "),
        (3, "options must be an object; received int 3"),
        ({"beam": 3}, "Translate has no option 'beam'; it has num"),
        ({"token_budget": 3}, "has no option 'token_budget'"),
        ({"n_best": 9999}, "n_best must be a whole number from 1 to 64"),
        ({"truncate": 1}, "Translate: truncate must be True or False"),
    ],
)
def test_what_is_wrong_is_one_line(client, body, message):
    body = body if isinstance(body, bytes) else {"input": "up|bad", "options": body}
    error = post(client, "letters", body, 400)["error"]
    assert message in error and "\n" not in error and "Traceback" not in error


def test_a_byte_order_mark_before_a_body_says_nothing(client):
    body = json.dumps({"input": "up|bad"}).encode()
    assert post(client, "letters", b"\xef\xbb\xbf" + body) == post(client, "letters", body)


def test_an_unknown_bundle_and_a_wrong_method_are_told(client):
    response = client.post("/v1/bundles/nothing", content=b"{}")
    assert response.status_code == 404
    assert response.json()["error"].startswith("there is no bundle 'nothing'; th")
    response = client.delete("/v1/bundles/letters")
    assert response.status_code == 405 and response.headers["allow"] == "GET, POST"
    for path in ("/", "/v1/bundles/../manifest.json", "/manifest.json", "/v1/bundles/letters/onnx"):
        assert client.get(path).status_code == 404


def test_a_bundle_is_described(client, folders):
    response = client.get("/v1/bundles").json()["bundles"]
    assert {bundle["name"] for bundle in response} == {*folders}
    about = client.get("/v1/bundles/letters").json()
    assert about["pipeline"] == "Translate" and about["streams"]
    assert about["examples"] == ["up|bad", "up|cab", "down|egad"]
    assert "num_beams" in about["options"] and "token_budget" not in about["options"]


def events(text):
    """(name, content) of each server-sent event."""
    found = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields.get("event"), json.loads(fields["data"])))
    return found


@pytest.mark.parametrize("name, given", [("letters", "up|bad"), ("generator", "bad")])
def test_a_stream_has_the_pieces_of_the_pipeline(name, given, client, folders):
    pieces = list(serving.load(folders[name], threads=1).stream(given))
    response = client.post(f"/v1/bundles/{name}/stream", content=json.dumps({"input": given}))
    assert response.headers["content-type"].startswith("text/event-stream")
    assert events(response.text) == [*((None, {"text": piece}) for piece in pieces), ("end", {})]


def test_a_stream_that_is_refused_has_a_status(client):
    for name, content, message in (
        ("letters", {"input": "bad"}, "Translate: text must begin with a direction"),
        ("letters", {"input": "up|bad", "options": {"num_beams": 2}}, "Translate has no option"),
        ("generator", {"input": "a", "options": {"sample": 3}}, "Generate: sample must be True"),
        ("vectors", {"input": "the cat"}, "vectors does not stream: it is of Embed"),
        ("letters", {"inputs": ["up|bad"]}, 'the body must have "input"'),
    ):
        response = client.post(f"/v1/bundles/{name}/stream", content=json.dumps(content))
        assert response.status_code == 400 and message in response.json()["error"]

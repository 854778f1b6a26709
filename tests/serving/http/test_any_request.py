"""Whatever a client sends, it is answered: no input of any kind gives a 500."""

import json
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.http.served_bundle import Opening
from tests.conftest import others_long
from tests.serving.pipelines.test_finite import strict
from tests.serving.pipelines.toys import forecaster, frames_graph, write_bundle
from tests.serving.test_rows import CATEGORY, COUNTING, NUMBER
from tests.serving.zoo import INPUTS

OPTIONS = {
    **{"max_new_tokens": 3, "min_new_tokens": 1, "num_beams": 2, "n_best": 2, "top": 2, "top_k": 2},
    **{"length_penalty": 0.5, "temperature": 0.5, "top_p": 0.5, "repetition_penalty": 1.5},
    **{"early_stopping": True, "sample": True, "echo": True, "truncate": True, "strict": True},
    **{"banned_tokens": ["a"], "forced_tokens": {"0": "b", "2": 5}, "stop": ["c"], "seed": 3},
    **{"regex": "[ab]{1,3}", "choices": ["ab", "c"], "attention": True},
}
PROTOCOL = {
    **{"binary_data_output": False, "signature_name": "serving_default", "timeout": 10**7},
    **{"priority": 1, "sequence_id": "x"},
}
COLUMNS = {"answers": ("question", "context"), "choices": ("text", "choices")}
COLUMNS["series"] = ("series",)
COMPLETION = {
    **{"model": "generator", "prompt": ["bad", ""], "max_tokens": 2, "temperature": 0.5, "n": 2},
    **{"stop": ["c"], "echo": True, "stream": False, "top_p": 0.5, "seed": 3, "best_of": 1},
    **{"frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}, "logprobs": None},
    "suffix": "",
}
STREAM = {"prompt": "bad", "n": 1, "stream": True, "stream_options": {"include_usage": True}}
STATUSES = frozenset(range(200, 500)) | {503, 504}


def tensors(name):
    """The inputs of a bundle as the Open Inference Protocol has them, and as rows."""
    value = INPUTS[name][0]
    names = COLUMNS.get(name, ("text",))
    values = value if name in ("answers", "choices") else [value]
    found = []
    for column, own in zip(names, values, strict=True):
        array, shape = [own], [1]
        while isinstance(array[0], list):
            shape.append(len(array[0]))
            array = [inner for row in array for inner in row]
        datatype = "BYTES" if isinstance(array[0], str) else "FP32"
        found.append({"name": column, "shape": shape, "datatype": datatype, "data": array})
    return found, dict(zip(names, values, strict=True))


WIND = CATEGORY | {"categories": ["N", "S"]}
LOAD = NUMBER | {"may_be_missing": False}
TIME = {"columns": ["time"], "step": 86_400, "unit": "second", "cycles": []}
TABLES = {  # pipelines that read rows of a table, with their settings and a few rows
    "rows": ("Forecast", {"rows": {"columns": [LOAD, WIND], "time": TIME}}),
    "frames": ("Classify", {"labels": ["a", "b"], "rows": {"columns": [WIND]}}),
}
ROWS = [{"time": f"2024-01-0{day}", "load": day, "wind": "NS"[day % 2]} for day in (1, 2, 3)]


@pytest.fixture(scope="module")
def client(folders, tmp_path_factory):
    """A client of all toy bundles, and of those that read rows of a table."""
    folder, found = tmp_path_factory.mktemp("tables"), dict(folders)
    for name, (pipeline, settings_of) in TABLES.items():
        graph = forecaster() if pipeline == "Forecast" else frames_graph(COUNTING)
        found[name] = write_bundle(folder / name, pipeline, graph, settings_of, tokenizers={})
    with TestClient(
        Application(Service([*found.items()], Opening(threads=1), log=False))
    ) as client:
        yield client


def routes():
    """(path, a request's content with all its fields) of every route that reads a body."""
    for name in TABLES:
        yield f"/v1/bundles/{name}", {"input": ROWS, "options": {"strict": True, "top": 1}}
        yield f"/v1/bundles/{name}", {"inputs": [ROWS, [[*row.values()] for row in ROWS]]}
    for name, inputs in INPUTS.items():
        options = OPTIONS if name in ("letters", "generator") else {"truncate": True, "top": 2}
        yield f"/v1/bundles/{name}", {"input": inputs[0], "options": options}
        yield f"/v1/bundles/{name}", {"inputs": inputs, "options": {}}
        yield f"/v1/bundles/{name}/stream", {"input": inputs[0], "options": {}}
        columns, row = tensors(name)
        signature = "serving_default" if name == "series" else "truncate"
        yield f"/v1/models/{name}:predict", {"instances": [row], "signature_name": signature}
        yield f"/v1/models/{name}_text/versions/1:predict", {"inputs": {k: [row[k]] for k in row}}
        content = {"id": "1", "inputs": columns, "parameters": PROTOCOL | options}
        yield f"/v2/models/{name}/infer", content | {"outputs": [{"name": "text"}]}
        yield f"/v2/models/{name}/versions/1/infer", {"inputs": columns}
    yield "/v1/completions", COMPLETION
    yield "/v1/completions", COMPLETION | STREAM
    embeddings = {"model": "vectors", "input": ["the cat"], "encoding_format": "base64"}
    yield "/v1/embeddings", embeddings | {"dimensions": 5}


ROUTES = [*routes()]
NUMBERS = st.one_of(
    st.sampled_from([0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**25, 10**400, 1e308, -0.0]),
    st.floats(),
    st.integers(),
)
TEXTS = st.one_of(
    st.text(max_size=9),
    st.sampled_from(["", "\ud800", "a" * 5000, "(" * 300, "(){4000000000}", "\0", "[MASK]", "²"]),
    st.sampled_from([*"abcdefg", "the cat", "up|bad", "serving_default", "truncate", "BYTES"]),
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


def places(content, before=()):
    """All places within nested content, as keys and indices from its root."""
    yield before
    if isinstance(content, (dict, list)):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from places(value, (*before, key))


def changed(content, place, change):
    """A copy of the content with what stands at a place changed."""
    if not place:
        return change(content)
    key, *inner = place
    if isinstance(content, dict):
        return content | {key: changed(content[key], inner, change)}
    return [*content[:key], changed(content[key], inner, change), *content[key + 1 :]]


@st.composite
def changes(draw):
    """A change of a value: another one, nested, of another type, with a key more or less."""
    value = draw(VALUES)
    text = draw(TEXTS)
    deep = draw(st.integers(1, 200))

    def nested(content):
        for _ in range(deep):
            content = [content]
        return content

    def fewer(content):
        return dict([*content.items()][1:]) if isinstance(content, dict) else None

    def more(content):
        return content | {text: value} if isinstance(content, dict) else [content, value]

    return draw(st.sampled_from([lambda _: value, nested, fewer, more, json.dumps]))


@st.composite
def bodies(draw):
    """A path, a body and headers."""
    path, content = draw(st.sampled_from(ROUTES))
    kept = draw(st.sets(st.sampled_from([*OPTIONS, *PROTOCOL, *COMPLETION]), max_size=4))
    for key in ("options", "parameters"):
        if isinstance(content.get(key), dict):
            content = content | {key: {k: v for k, v in content[key].items() if k in kept}}
    if path == "/v1/completions":
        needed = kept | {"model", "prompt", *(STREAM if content["stream"] else ())}
        content = {name: value for name, value in content.items() if name in needed}
    for _ in range(draw(st.integers(0, 2))):
        content = changed(content, draw(st.sampled_from([*places(content)])), draw(changes()))
        if not isinstance(content, (dict, list)):
            break
    body = json.dumps(content).encode()
    kinds = ["application/json", "application/octet-stream", "text/plain", "", "\xff"]
    headers = {"content-type": draw(st.sampled_from(kinds))}
    form = draw(st.sampled_from(["json", "json", "json", "binary", "bytes", "cut"]))
    if form == "binary":
        behind = draw(st.one_of(st.binary(max_size=9), st.just(struct.pack("<I", 3) + b"bad")))
        length = draw(st.sampled_from([len(body), 0, len(body) + len(behind), -1, 2**70, "x"]))
        headers["inference-header-content-length"] = str(length)
        body += behind
    elif form == "bytes":
        body = draw(st.binary(max_size=40))
    elif form == "cut":
        body = body[: draw(st.integers(0, len(body)))]
    return path, body, headers


def require_answer(client, path, body, headers):
    sent = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    response = client.post(path, content=body, headers=sent)
    assert response.status_code in STATUSES, (path, body, response.text)
    if response.headers["content-type"].startswith("application/json"):
        assert strict(response) is not None
    else:
        assert b"the server failed" not in response.content


HEALTH = list(HealthCheck)


@pytest.mark.parametrize(("path", "content"), ROUTES, ids=lambda value: str(value)[:40])
def test_the_requests_that_are_changed_are_good(client, path, content):
    others = ("options", "parameters", "outputs")
    content = {name: value for name, value in content.items() if name not in others}
    streams = path.split("/")[3] in ("letters", "generator") if "/stream" in path else True
    assert client.post(path, json=content).status_code == (200 if streams else 400)


@pytest.mark.parametrize("count", others_long([100, 20_000]))
def test_every_request_is_answered(client, count):
    @settings(max_examples=count, deadline=None, suppress_health_check=HEALTH)
    @given(bodies())
    def every_request_is_answered(request):
        require_answer(client, *request)

    every_request_is_answered()


WRONG = [None, [], {}, [[]], {"a": [1]}, 1.5, -1, 10**30, True, "x", "\ud800"]
WRONG += [3e38, float("inf"), float("nan")]


@pytest.mark.parametrize("step", others_long([4, 1]))
@pytest.mark.parametrize(("path", "content"), ROUTES, ids=lambda value: str(value)[:40])
def test_every_field_of_a_wrong_type_is_answered(client, path, content, step):
    """`make test` puts every fourth of the wrong values into each place, and not the same ones."""
    for number, place in enumerate(places(content)):
        for value in WRONG[number % step :: step]:
            body = json.dumps(changed(content, place, lambda _: value))  # noqa: B023
            require_answer(client, path, body.replace("Infinity", "1e400").encode(), {})


@given(
    st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]),
    st.sampled_from(
        [
            *("/", "/metrics", "/page.json", "/page/", "/v1/models", "/v1/bundles", "/v2"),
            *("/v1/bundles/letters", "/v1/bundles/letters/files/", "/v1/models/letters"),
            *("/v1/models/letters/metadata", "/v2/models/letters", "/v2/models/letters/ready"),
            *("/v2/health/live", "/v2/health/ready", "/v2/models/letters/versions/"),
        ]
    ),
    st.sampled_from(["", "x", "/", "/..%2f..%2fetc", "%00", "%ff", "?a=1", ":predict"]),
    st.text(max_size=5),
)
@settings(deadline=None, max_examples=100, suppress_health_check=HEALTH)
def test_every_path_is_answered(client, method, path, behind, text):
    response = client.request(method, f"{path}{behind}{text!a}")
    assert response.status_code in STATUSES, (method, path, behind, text)

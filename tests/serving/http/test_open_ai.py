"""OpenAI's API, spoken by its client."""

import base64
import functools

import numpy as np
import pytest

from seqkeras import serving

openai = pytest.importorskip("openai", reason="needs requirements-test.txt")


@pytest.fixture
def client(port):
    with openai.OpenAI(
        base_url=f"http://127.0.0.1:{port}/v1", api_key="-", max_retries=0
    ) as client:
        yield client


@pytest.fixture
def complete(client):
    return functools.partial(client.completions.create, model="generator")


@pytest.fixture
def generate(folders):
    return serving.load(folders["generator"], threads=1)


def test_models_are_listed(client, folders):
    assert {model.id for model in client.models.list()} == {*folders}
    assert client.models.retrieve("letters").owned_by == "seqkeras"


def test_samples_are_those_of_the_pipeline(complete, generate):
    options = {"temperature": 0.7, "top_p": 0.9, "seed": 7}
    expected = generate("bad", max_new_tokens=6, sample=True, n_best=3, stop="f", **options)
    found = complete(prompt="bad", max_tokens=6, n=3, stop="f", **options)
    texts = [answer.text for answer in (expected, *expected.alternatives)]
    assert [choice.text for choice in found.choices] == texts
    echoed = complete(prompt="bad", max_tokens=1, temperature=0, echo=True)
    assert echoed.choices[0].text.startswith("bad")


def test_several_greedy_answers_are_one_answer_several_times(complete, generate):
    expected = generate(["bad", "cab"], max_new_tokens=5)
    found = complete(prompt=["bad", "cab"], max_tokens=5, temperature=0.0, n=3)
    texts = [answer.text for answer in expected for _ in range(3)]
    assert [choice.text for choice in found.choices] == texts
    assert [choice.index for choice in found.choices] == [*range(6)]
    assert found.object == "text_completion" and found.model == "generator"
    read = sum(len(generate.encode(prompt)) for prompt in ("bad", "cab"))
    new = 3 * sum(answer.num_new_tokens for answer in expected)
    assert found.usage.to_dict() == usage_of(read, new)


def usage_of(read, new):
    return {"prompt_tokens": read, "completion_tokens": new, "total_tokens": read + new}


# What ends it: the length, the end token, a stop string; and no more than the prompt.
ENDS = [
    ({"max_tokens": 3}, "length", 3),
    ({"max_tokens": 14}, "stop", 11),
    ({"max_tokens": 14, "stop": "b"}, "stop", 7),
    ({"max_tokens": 0}, "length", 0),
    ({"max_tokens": 0, "echo": True}, "length", 0),
    ({"max_tokens": 3, "echo": True}, "length", 3),
]


@pytest.mark.parametrize("options, reason, new", ENDS)
def test_a_stream_says_what_the_whole_answer_says(complete, generate, options, reason, new):
    asked = {"prompt": "bad", "temperature": 0, **options}
    whole = complete(**asked)
    [choice] = whole.choices
    text = "bad" if options.get("echo") else ""
    if options["max_tokens"]:
        stop = options.get("stop", ())
        text += generate("bad", max_new_tokens=options["max_tokens"], stop=stop).text
    assert choice.text == text
    assert choice.finish_reason == reason
    assert whole.usage.to_dict() == usage_of(len(generate.encode("bad")), new)
    chunks = [*complete(**asked, stream=True)]
    assert "".join(chunk.choices[0].text for chunk in chunks) == choice.text
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    assert reasons[-1] == reason and not any(reasons[:-1])
    assert all(chunk.usage is None for chunk in chunks)
    counted = complete(**asked, stream=True, stream_options={"include_usage": True})
    *chunks, last = counted
    assert last.choices == [] and last.usage == whole.usage
    assert all(chunk.usage is None and "usage" in chunk.model_fields_set for chunk in chunks)
    assert "".join(chunk.choices[0].text for chunk in chunks) == choice.text


def test_a_prompt_that_is_refused_is_refused_without_an_answer_too(complete):
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match="Generate: prompt has 40 tokens"):
            complete(prompt="a" * 40, max_tokens=0, stream=stream)


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_embeddings_are_the_vectors(client, folders, form):
    embed, texts = serving.load(folders["vectors"], threads=1), ["the cat", "he ran ."]
    options = {"encoding_format": form} if form else {}
    found = client.embeddings.create(model="vectors", input=texts, **options)
    for item, answer in zip(found.data, embed(texts), strict=True):
        vector = item.embedding
        if form == "base64":
            vector = np.frombuffer(base64.b64decode(vector), "<f4")
        np.testing.assert_allclose(vector, answer.vector, atol=1e-6)
    assert found.usage.prompt_tokens == sum(len(embed.encode(text)) for text in texts)
    assert len(client.embeddings.create(model="vectors", input="the cat", dimensions=5).data) == 1


def test_what_is_wrong_is_an_error_of_the_client(client, complete):
    with pytest.raises(
        openai.NotFoundError, match="'nothing' does not exist; there is letters, "
    ) as error:
        client.completions.create(model="nothing", prompt="a")
    assert error.value.code == "model_not_found"
    with pytest.raises(
        openai.BadRequestError, match="model must be one of letters, .*; received N"
    ):
        client.post("/completions", body={"prompt": "a"}, cast_to=object)
    with pytest.raises(openai.BadRequestError, match="there are no chats: POST /v1/completions"):
        client.chat.completions.create(model="generator", messages=[])
    with pytest.raises(openai.BadRequestError, match="letters is of Translate; this address need"):
        client.completions.create(model="letters", prompt="a")
    for wrong, message in (
        ({"logprobs": 3}, "logprobs is not served; received int 3"),
        ({"frequency_penalty": 1}, "frequency_penalty is not served"),
        ({"suffix": "x"}, "suffix is not served"),
        ({"max_tokens": -1}, " - max_tokens must be a whole number of at least 1"),
        ({"temperature": 2.5}, "temperature must be a number from 0 to 2; received float 2.5"),
        ({"temperature": True}, "temperature must be a number from 0 to 2; received bool True"),
        ({"echo": "no"}, "echo must be True or False; received 'no'"),
        ({"stream_options": {"include_usage": True}}, "stream_options need stream: true"),
        ({"stream": True, "stream_options": {"usage": True}}, "stream_options must be an object o"),
        ({"n": 1000}, "n must be a whole number from 1 to 64"),
        ({"prompt": [[1, 2]]}, "prompt must be a text, or a list of texts"),
        ({"prompt": "a" * 40}, "Generate: prompt"),
        ({"prompt": ["a", "b"], "stream": True}, "a stream has one prompt"),
    ):
        with pytest.raises(openai.BadRequestError, match=message):
            complete(**({"prompt": "a"} | wrong))
    with pytest.raises(openai.BadRequestError, match="dimensions must be 5, the model's"):
        client.embeddings.create(model="vectors", input="the cat", dimensions=3)
    with pytest.raises(openai.BadRequestError, match="Embed: text is blank"):
        client.embeddings.create(model="vectors", input=["the cat", " "])

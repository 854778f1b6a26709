"""Whatever is written as text is answered or refused, in the same words by every pipeline."""

import json
import re

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving import BundleError
from seqkeras.serving.manifest import read_manifest
from seqkeras.serving.pipelines import Tag
from seqkeras.serving.printing import as_content
from seqkeras.serving.text import CharacterTable, Subwords
from tests.serving.answers import assert_same
from tests.serving.pipelines.toys import load, texts_of_many_lengths, write_bundle
from tests.serving.zoo import SINGLE_PASS, STRANGE

PIPELINES = {
    "classes": ("text", lambda text: text),
    "tags": ("text", lambda text: text),
    "vectors": ("text", lambda text: text),
    "masks": ("text", lambda text: text),
    "choices": ("input, text", lambda text: (text, ["the cat", "he ran"])),
    "answers": ("input, context", lambda text: ("who?", text)),
}


@pytest.fixture(scope="module", params=PIPELINES)
def pipeline(request, folders):
    name, given = PIPELINES[request.param]
    made = serving.load(folders[request.param], threads=1)
    return made, f"{type(made).__name__}: {name}", given


@pytest.mark.parametrize(
    "text, message",
    [
        (3, "must be a string; received int 3."),
        (None, "must be a string; received None."),
        (b"cat", "must be a string; received bytes b'cat'."),
        ("", "is empty; write something to answer."),
        (" \n\t", "is blank; write something to answer."),
        ("the \ud800 cat", "must hold no lone surrogate; received '\\ud800' at 4."),
    ],
)
def test_what_is_no_text_is_refused(pipeline, text, message):
    answer, name, given = pipeline
    with pytest.raises(ValueError, match=f"^{re.escape(f'{name} {message}')}$"):
        answer(given(text))
    several = re.sub("(text|input)", r"\1s[1]", name, count=1)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{several} {message}')}$"):
        answer([given("the [MASK]"), given(text)])


@pytest.mark.parametrize("text", [*STRANGE.values(), "x" * 10**5], ids=lambda text: ascii(text)[:9])
def test_any_other_text_is_answered(pipeline, text):
    answer, _, given = pipeline
    json.dumps(as_content(answer(given(f"{text} [MASK]"))), allow_nan=False)


@pytest.mark.parametrize("text", ["\0", "\u200b\u200d", "\ufeff"], ids=ascii)
def test_what_has_no_token_is_refused(pipeline, text):
    answer, name, given = pipeline
    message = f"^{name} has no token; write something to answer.$"
    for truncate in (False, True):
        with pytest.raises(ValueError, match=message):
            answer(given(text), truncate=truncate)
    if name.startswith("Choose"):
        with pytest.raises(ValueError, match=r"^Choose: input, choices\[1\] has no token; write"):
            answer(("the cat", ["sat", text]))


def test_wrong_options_of_every_pipeline_are_refused(pipeline):
    answer, name, _ = pipeline
    for options, message in (
        ({"token_budget": 0}, "token_budget must be a whole number of at least 1; received int 0."),
        ({"truncate": "no"}, "truncate must be True or False; received 'no'."),
    ):
        with pytest.raises(ValueError, match=f"^{name.partition(':')[0]}: {message}$"):
            answer([], **options)


def test_a_text_of_many_tokens_is_refused_unless_it_may_be_cut(pipeline):
    answer, name, given = pipeline
    if name.startswith("Answer"):
        return  # reads any context in windows
    text = "[MASK]" + " cat" * 5_000
    message = rf"^{name} has 50\d\d tokens; the limit is 31\. Nothing was truncated: shorten it,"
    with pytest.raises(ValueError, match=message) as caught:
        answer(given(text))
    assert "\n" not in str(caught.value)
    assert answer(given(text), truncate=True) is not None


def test_a_text_far_over_the_limit_is_refused_before_it_is_split(pipeline, monkeypatch):
    answer, name, given = pipeline
    if name.startswith("Answer"):
        name, given = "Answer: input, question", lambda text: (text, "the cat")
    split = Subwords._split

    def short_ones(tokenizer, text):
        assert len(text) < 10**4
        return split(tokenizer, text)

    monkeypatch.setattr(Subwords, "_split", short_ones)
    message = re.escape(f"{name} has 4800000 characters; the limit is ")
    with pytest.raises(ValueError, match=f"^{message}.* tokens. Nothing was truncated"):
        answer(given("the cat " * 600_000))


def test_a_batch_changes_no_answer(pipeline):
    answer, _, given = pipeline
    inputs = [given(f"{text} [MASK]") for text in texts_of_many_lengths(23, most=20)]
    together = as_content(answer(inputs))
    for budget in (1, 50):
        found = as_content(answer(inputs, token_budget=budget))
        assert_same(found, together, rel=1e-4)
    assert_same(as_content([answer(each) for each in inputs]), together, rel=1e-4)


def test_a_batch_holds_no_more_tokens_than_the_budget(pipeline, calls):
    answer, _, given = pipeline
    inputs = [given(f"{text} [MASK]") for text in texts_of_many_lengths(23, most=20)]
    runs = calls(answer._model, "_run")
    answer(inputs, token_budget=90)
    shapes = [fed["token_ids"].shape for [fed] in runs]
    assert all(shape[0] == 1 or np.prod(shape) <= 90 for shape in shapes)
    assert any(shape[0] > 1 for shape in shapes)


def test_a_bundle_without_a_tokenizer_or_with_one_of_characters_is_refused(tmp_path):
    _, graph, settings = SINGLE_PASS["tags"]
    with pytest.raises(BundleError, match="manifest.json: no text tokenizer is named"):
        load(tmp_path / "a", "Tag", graph, settings, tokenizers={})
    with pytest.raises(BundleError, match="must be one of subwords or a table of words; it is a C"):
        load(tmp_path / "b", "Tag", graph, settings, tokenizer=CharacterTable.learn(["abc"]))
    folder = write_bundle(tmp_path / "c", "Tag", graph, settings)
    (folder / "tokenizer/text.json").write_text("{}")
    with pytest.raises(BundleError, match="text.json: must hold .*. Export the bundle again.$"):
        Tag(folder, read_manifest(folder))

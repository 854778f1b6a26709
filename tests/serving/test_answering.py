"""An input without an answer fails alone: in a list, in `predict`, and in a table."""

import json

import numpy as np
import pytest

import seqkeras.serving.answering
from seqkeras import serving
from seqkeras.serving.bulk import BulkAnswers
from tests.serving.pipelines.toys import TOKENS, VOCAB_SIZE, Toy, write_bundle
from tests.serving.test_bulk import Table

# The graphs have no row for the last token, "old".
GRAPHS = {
    "Classify": (Toy(2, vocab_size=VOCAB_SIZE - 1).graph("pooled"), {"labels": ["a", "b"]}),
    "Tag": (Toy(2, vocab_size=VOCAB_SIZE - 1).graph("tokens"), {"labels": ["O", "B-X"]}),
    "Embed": (Toy(3, vocab_size=VOCAB_SIZE - 1).graph("pooled"), {}),
}
TEXTS = ["the cat", "a dog", "", "paris", "ran", "the old dog", "a mat", "old", "new york"]
REFUSED, BROKEN = [2], [5, 7]


@pytest.fixture(scope="module", params=GRAPHS)
def folder(request, tmp_path_factory):
    assert TOKENS[-1] == "old"
    graph, settings = GRAPHS[request.param]
    folder = tmp_path_factory.mktemp("broken") / request.param
    return write_bundle(folder, request.param, graph, settings)


def test_the_others_of_a_list_have_their_answers(folder):
    pipeline = serving.load(folder, threads=1)
    with pytest.raises(serving.BundleError, match="can not run it: .*out of data bounds"):
        pipeline([text for text in TEXTS if text])
    with pytest.raises(ValueError, match=r"texts\[2\] is empty"):
        pipeline(TEXTS)
    found = pipeline.answers_or_errors(TEXTS)
    assert len(found) == len(TEXTS)
    for place, (text, answer) in enumerate(zip(TEXTS, found)):
        if place in REFUSED:
            assert type(answer) is ValueError and "text is empty" in str(answer)
        elif place in BROKEN:
            assert isinstance(answer, serving.BundleError) and "\n" not in str(answer)
            assert "can not run it" in str(answer) and ": export the bundle again" in str(answer)
        else:
            assert repr(answer) == repr(pipeline(text))
    assert pipeline.answers_or_errors([]) == []


def test_what_is_wrong_with_all_is_an_error(folder):
    pipeline = serving.load(folder, threads=1)
    with pytest.raises(ValueError, match="token_budget must be a whole number"):
        pipeline.answers_or_errors(TEXTS, token_budget=0)
    with pytest.raises(ValueError, match="inputs must be a list; received 'the cat'"):
        pipeline.answers_or_errors("the cat")


def test_a_row_that_breaks_the_graph_costs_few_calls(folder):
    pipeline = serving.load(folder, threads=1)
    calls = []

    def counted(texts, **options):
        calls.append(texts)
        return pipeline(texts, **options)

    counted.encode = pipeline.encode
    texts = 128 * ["the cat"]
    texts[77] = "old"
    found = seqkeras.serving.answering.answers_or_errors(counted, texts, {})
    assert [isinstance(answer, Exception) for answer in found].index(True) == 77
    assert len(calls) < 30


@pytest.mark.parametrize("as_arguments", [False, True], ids=["lines", "arguments"])
def test_predict_answers_the_others_and_reports_each(folder, as_arguments, command):
    content, given = "".join(f"{text}\n" for text in TEXTS), TEXTS if as_arguments else ()
    status, output, error = command("predict", folder, "--json", *given, stdin=content)
    place = "argument " if as_arguments else "standard input, line "
    assert status == 1
    bad = [number for number, line in enumerate(output.splitlines()) if '"error"' in line]
    assert bad == REFUSED + BROKEN
    assert [line.partition(": text")[0] for line in error.splitlines()] == [
        f"seqkeras predict: {place}{1 + number}" for number in REFUSED + BROKEN
    ]
    answer = json.loads(output.splitlines()[-1])
    assert answer.pop("input") == TEXTS[-1] and answer


def test_a_table_has_the_answers_of_the_others(folder):
    found = BulkAnswers(folder)(Table(text=np.array(TEXTS, object)))
    assert [place for place, error in enumerate(found["error"]) if error] == REFUSED + BROKEN
    columns = zip(found["answer"], found["error"], strict=True)
    assert all((answer is None) == (error is not None) for answer, error in columns)

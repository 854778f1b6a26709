"""A language model tuned on prompts and answers: what it learns, leaves and refuses."""

import itertools
import json

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.runs import RunFiles
from seqkeras.serving.results import Generation
from seqkeras.training.parts.prompt_answer import NO_TARGET, Example
from seqkeras.training.tasks.prompt_answer import PromptAnswerOptions
from tests.arrays import floats
from tests.conftest import long_fixture
from tests.training.commands import exported, outcome, printed, refusal, scores_of
from tests.training.exporting import refusals_of_run

WORDS = ("ab", "ba", "aab", "abb", "bab")


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A run of a language model of characters."""
    folder = tmp_path_factory.mktemp("start")
    text = "".join(f"User:\n{word}\nAssistant:\n{word.upper()}\nSystem\n" for word in WORDS)
    (folder / "text.txt").write_text(text * 9, encoding="utf-8")
    sizes = "--hidden-dim 32 --num-heads 2 --num-layers 1 --context 48 --batch-size 3".split()
    options = [*sizes, "--max-steps", "3", "--out", str(folder / "run")]
    printed("language-model", folder / "text.txt", *options)
    return folder / "run"


@long_fixture
def tuned(start, tmp_path_factory):
    """A run that is tuned to answer by capitals, and its file."""
    folder = tmp_path_factory.mktemp("tuned")
    rows = [{"prompt": word, "answer": word.upper()} for word in WORDS]
    turns = [
        [
            {"role": "user", "content": first},
            {"role": "assistant", "content": first.upper()},
            {"role": "user", "content": second},
            {"role": "assistant", "content": second.upper()},
        ]
        for first, second in itertools.product(["a", "b"], repeat=2)
    ]
    rows = 8 * [*rows, *({"messages": messages} for messages in turns)]
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = "--learning-rate 0.01 --passes 24 --max-length 48 --user U: --assistant A:".split()
    printed("prompt-answer", file, "--start-from", start, *options, "--out", folder / "run")
    return folder / "run", file


def test_it_learns_to_answer_and_is_scored_by_its_answers(tuned):
    scores = scores_of(tuned[0])
    assert scores["exact_match"] == scores["rouge1"] == scores["rougeL"] == 1.0
    assert scores["examples"] == 10  # a tenth of 8 (5 + 2 * 4), rounded


def test_the_turns_are_part_of_the_run_and_export_takes_it(tuned):
    record = json.loads((tuned[0] / "run.json").read_text())
    turns = {"user": "U:", "assistant": "A:", "system": "System:\n", "end": "\n"}
    assert record["settings"] == {"turns": turns}
    examples = json.loads((tuned[0] / "validation.json").read_text())
    assert {type(example["input"]) for example in examples} == {str, dict}
    assert refusals_of_run(tuned[0]) == []


@pytest.fixture
def read(tuned, start):
    """A function of a file and of a text: the loss, the tokenizer and the arrays of an example."""

    def read(file, text=None):
        given = {"file": str(file), "start_from": str(start), "user": "U:", "assistant": "A:"}
        task, files = PromptAnswerOptions(**given).make(), RunFiles.read(tuned[0])
        examples = task.reading.examples_of([str(file)], {})
        example = next(own for own in examples if text in (None, own.text))
        inputs, targets, lengths = task.modelling.arrays([example], files)
        token_ids, labels = (rows[np.array([0])] for rows in (inputs["token_ids"], targets))
        return task.modelling.loss(), files.tokenizers["text"], token_ids, labels, lengths

    return read


def test_the_loss_is_that_of_the_answer_alone(tuned, read):
    loss, table, token_ids, labels, _ = read(tuned[1], "aab")
    whole = [*table.encode("U:aab\nA:AAB"), table.id_of("<eos>")]
    assert token_ids[0].tolist() == whole[:-1]
    assert labels[0].tolist() == [NO_TARGET] * 7 + whole[-4:]
    model = keras.models.load_model(tuned[0] / "model.keras")
    logits = model({"token_ids": token_ids}).numpy().astype("float64")
    log_probs = logits[0] - np.log(np.exp(logits[0]).sum(-1, keepdims=True))
    expected = -log_probs[range(7, 11), whole[-4:]].mean()
    np.testing.assert_allclose(loss(labels, logits), expected, rtol=1e-4)


def test_an_answer_of_weight_0_is_read_and_not_learned(read, tmp_path):
    turns = [("user", "a", {}), ("assistant", "B", {"weight": 0}), ("user", "b", {"name": "bob"})]
    turns.append(("assistant", "BA", {"weight": 1}))
    rows = {"messages": [{"role": role, "content": text, **more} for role, text, more in turns]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(rows), encoding="utf-8")
    loss, table, token_ids, labels, lengths = read(tmp_path / "rows.jsonl")
    whole = [*table.encode("U:a\nA:B\nU:b\nA:BA"), table.id_of("<eos>")]
    assert token_ids.tolist() == [whole[:-1]]
    assert labels.tolist() == [[NO_TARGET] * 13 + whole[-3:]]
    assert lengths.tolist() == [len(whole) - 1]
    logits = floats(1, len(whole) - 1, len(table))
    others = logits.copy()
    others[:, :13] = floats(1, 13, len(table), seed=1)
    assert loss(labels, logits) == loss(labels, others)


def test_samples_show_texts_and_an_empty_answer_as_one():
    task = PromptAnswerOptions(file="rows.jsonl", start_from="run").make()
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]
    samples = [
        task.scoring.sample(Example(text, "A"), Generation("", -1.0, "end"))
        for text in ("a", {"messages": turns})
    ]
    assert samples == [
        {"input": "a", "target": "A", "answer": ""},
        {"input": "system: Be brief. | user: a", "target": "A", "answer": ""},
    ]


ROW = '{"prompt": "a", "answer": "b"}\n'


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ('{"prompt": "a", "reply": "b"}\n', "", "rows.jsonl, line 1: expected an object of 'promp"),
        (ROW * 9, "--max-length 49", "has 48 positions, fewer than"),
        (ROW * 9, "--max-length 9", "0 examples are left for training and 0 for validation; each "),
    ],
)
def test_what_can_not_be_tuned_gets_one_line(rows, options, message, start, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(rows, encoding="utf-8")
    given = [file, "--start-from", start, *options.split()]
    assert message in refusal("prompt-answer", *given, out=tmp_path / "run")


def test_a_model_to_start_from_must_be_named(tmp_path):
    (tmp_path / "rows.jsonl").write_text(ROW)
    line = refusal("prompt-answer", tmp_path / "rows.jsonl", out=tmp_path / "run", status=2)
    assert "--start-from is missing: a run of language-model, or" in line


@pytest.mark.long
def test_what_is_served_answers_texts_and_conversations_by_their_turns(tuned):
    pipeline = serving.load(exported(tuned[0].parent))
    assert [answer.text for answer in pipeline([*WORDS])] == [word.upper() for word in WORDS]
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "A"},
        {"role": "user", "content": "b"},
    ]
    assert pipeline({"messages": messages}).text == "B"
    assert pipeline("ab", echo=True).text == "U:ab\nA:AB"
    with pytest.raises(ValueError, match="^Generate: prompt: the last message must be the user's"):
        pipeline({"messages": messages[:2]})


def test_examples_over_what_the_start_model_reads_are_left_out_in_its_name(start, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"prompt": "{"ab" * 30}", "answer": "b"}}\n' * 9)
    given = [file, "--start-from", start, "--out", tmp_path / "run"]
    status, lines, _ = outcome("prompt-answer", *given)
    assert status == 1
    assert f" examples have more than 48 tokens, all that {start} reads" in " ".join(lines)


@pytest.mark.parametrize("most, status", [("0.01", 1), ("0.8", 0)])
def test_answers_that_the_vocabulary_does_not_know_stop_the_training(start, tmp_path, most, status):
    rows = [json.dumps({"prompt": word, "answer": "12 ab 12"}) for word in WORDS * 3]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(rows))
    given = [file, "--start-from", start, "--max-steps", 1, "--unknown-targets", most]
    given += ["--batch-size", 2, "--max-length", 48, "--out", tmp_path / "run"]
    found, lines, errors = outcome("prompt-answer", *given)
    assert found == status
    told = "training: the vocabulary does not know 75.00% of the tokens of targets (' ',"
    assert told in " ".join(lines)
    if status:
        [error] = errors
        assert "more than --unknown-targets 0.01; an answer can not hold them" in error
        assert f"name by --start-from another model than {start}" in error
        assert not (tmp_path / "run").exists()

"""`seqkeras train describe`: tables of runs and published models."""

import re

import keras
import pytest

from seqkeras.tokenizers import read_tokenizer
from tests import zoo
from tests.training.commands import outcome, printed


def numbers(lines, part):
    [line] = [line for line in lines if part in line]
    return [int(text.replace(",", "")) for text in re.findall(r" ([\d,]+) ", line)]


def test_a_run_is_described_by_part_without_its_weights(tmp_path):
    zoo.classify(tmp_path)
    lines = printed("describe", tmp_path, "--length", 11)
    rows = len(read_tokenizer(tmp_path / "tokenizer" / "text.json")) + zoo.LIMIT + 2
    assert numbers(lines, "embeddings")[0] == rows * 16
    attention, feed_forward, head = 4 * (16 * 16 + 16), 2 * 16 * 24 + 24 + 16, 16 * 16 + 16 + 17 * 3
    assert numbers(lines, "attention")[:2] == [attention, 4 * attention]
    assert numbers(lines, "feed-forward")[0] == feed_forward
    assert numbers(lines, "heads and others")[0] == head
    products = 11 * (4 * 16 * 16 + 2 * 16 * 24 + 2 * 11 * 16) + 16 * 16 + 16 * 3
    assert lines[-1].startswith(f"{products / 11:,.0f} multiply-adds for each of 11 steps;")


def test_a_model_that_reads_more_than_a_text_has_no_count_of_operations(tmp_path):
    zoo.classify_trees(tmp_path)
    assert printed("describe", tmp_path)[-1] == (
        "operations are not counted: operations_of: the model reads more than a text or a window."
    )


@pytest.mark.parametrize("steps", [None, 11])
def test_a_functional_model_is_counted_over_its_steps_or_as_many_as_asked_for(steps, tmp_path):
    inputs = {"x": keras.Input((steps, 3), name="x"), "known": keras.Input((2,), name="known")}
    hidden = keras.layers.Dense(7)(keras.layers.LSTM(5)(inputs["x"]))
    model = keras.Model(inputs, keras.layers.Concatenate()([hidden, inputs["known"]]))
    model.save(tmp_path / "model.keras")
    lines = printed("describe", tmp_path, "--length", 13)
    assert numbers(lines, "recurrence")[0] == (3 + 5 + 1) * 4 * 5
    steps = steps or 13
    each = round((3 + 5) * 4 * 5 + 5 * 7 / steps)
    assert lines[-1].startswith(f"{each} multiply-adds for each of {steps} steps;")


REFUSED = [
    (
        "nothing",
        "nothing: no run, model.keras is missing, and no published model; choose a run, or",
    ),
    ("bert-base --length 513", "--length must be at most 512, as bert-base reads; received 513."),
]


@pytest.mark.parametrize("arguments, message", REFUSED)
def test_what_can_not_be_described_is_one_line(arguments, message):
    status, _, [line] = outcome("describe", *arguments.split())
    assert status == 1 and message in line


def test_a_damaged_model_is_one_line(tmp_path):
    (tmp_path / "model.keras").write_text("{}", encoding="utf-8")
    status, _, [line] = outcome("describe", tmp_path)
    assert status == 1 and "model.keras: can not be read (File is not a zip file)" in line

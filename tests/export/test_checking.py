"""What can not be a bundle is refused before anything is traced, with every reason."""

import json
import re

import pytest

from seqkeras.export import save_run
from seqkeras.export.__main__ import main
from seqkeras.models import (
    GPT,
    Bert,
    ClassificationHead,
    MultipleChoiceHead,
    RNNSeq2Seq,
    Transformer,
    WithHeads,
)
from seqkeras.tokenizers import CharacterTable
from seqkeras.tokenizers.learn import learn_byte_pairs, learn_word_piece
from tests.zoo import LIMIT, TEXTS

WORDS = learn_word_piece(TEXTS, 80)
BYTES = learn_byte_pairs(TEXTS, 300)
TABLE = CharacterTable.learn(TEXTS)


def examples(*inputs):
    return [{"input": each} for each in inputs or TEXTS]


def with_head(head, vocab_size=None):
    model = WithHeads(
        Bert(vocab_size or len(WORDS), 16, 1, 2, 24, max_length=LIMIT), {"head": head}
    )
    model.build({"token_ids": (None, None)})
    return model


def classify(folder, head=None, validation=None, **changes):
    given = {
        "limits": {"source_length": LIMIT},
        "tokenizers": {"text": WORDS},
        "settings": {"output": "head", "labels": ["low", "high"]},
        "check_export": False,
    }
    model = changes.pop("model", None) or with_head(head or ClassificationHead(2))
    save_run(folder, model, "Classify", validation or examples(), **given | changes)


def generate(folder, validation=None, **changes):
    given = {
        "limits": {"source_length": LIMIT, "target_length": LIMIT},
        "tokenizers": {"text": BYTES},
        "decoding": {"start_id": 0, "end_id": 1},
        "check_export": False,
    }
    model = GPT(len(BYTES), 16, 1, 2, 24, LIMIT)
    model.build()
    save_run(folder, model, "Generate", validation or examples(), **given | changes)


def translate(folder, model=None, validation=None, **changes):
    model = model or RNNSeq2Seq.bahdanau(len(TABLE), len(TABLE), 5, 7, 7)
    model.build()
    validation = validation or [{"text": text, "target": text[:5]} for text in TEXTS]
    given = {
        "limits": {"source_length": 40, "target_length": 11},
        "tokenizers": {"source": TABLE, "target": TABLE},
        "check_export": False,
    }
    save_run(folder, model, "Translate", validation, **given | changes)


def transformer():
    return Transformer(len(TABLE), len(TABLE), 16, 1, 2, 24, max_length=11)


def choose(folder, check_export=False):
    value = {"text": TEXTS[0], "choices": ["a model", "a " * 40]}
    given = {
        "limits": {"source_length": LIMIT},
        "tokenizers": {"text": WORDS},
        "settings": {"output": "a"},
        "check_export": check_export,
    }
    model = WithHeads(Bert(len(WORDS), 16, 2, 2, 24, max_length=LIMIT), {"a": MultipleChoiceHead()})
    model.build({"token_ids": (None, None, None)})
    save_run(folder, model, "Choose", examples(value), **given)


def edited(folder, make, **fields):
    """A run whose record says something else than `save_run` wrote."""
    make(folder)
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def exchanged(folder, model=None, validation=None):
    """A run with a model, or examples, that `save_run` has not seen."""
    classify(folder)
    if model:
        model.save(folder / "model.keras")
    if validation:
        (folder / "validation.json").write_text(json.dumps(validation))


LONG = "a few " * 40
CASES = [
    (
        lambda run: edited(run, classify, limits={"source_length": LIMIT + 1, "target_length": 1}),
        f"run.json: limits.source_length must be at most the model's positions, {LIMIT}; received",
    ),
    (
        lambda run: classify(run, settings={"output": "head", "labels": ["a", "b", "c"]}),
        "run.json: settings.labels names 3 labels; the model's output head has 2 logits",
    ),
    (
        lambda run: classify(run, settings={"output": "head", "labels": ["a", "b"], "label": 3}),
        "run.json: settings.label is unknown",
    ),
    (lambda run: classify(run, tokenizers={}), "run.json: no text tokenizer is named"),
    (
        lambda run: classify(run, tokenizers={"source": WORDS}),
        "run.json: no text tokenizer is named",
    ),
    (
        lambda run: exchanged(run, model=with_head(ClassificationHead(2), len(WORDS) - 30)),
        f"run.json: the text tokenizer must have at most the model's vocab_size, {len(WORDS) - 30},"
        f" tokens; it has {len(WORDS)}",
    ),
    (
        lambda run: exchanged(run, validation=examples("small", 3, LONG)),
        "validation.json[1] must be a string; received int 3; validation.json[2] has ",
    ),
    (
        lambda run: generate(run, validation=examples(*TEXTS[:4], LONG)),
        "validation.json[4] has 201 tokens; with 1 new ones the limit is 23. Save",
    ),
    (
        lambda run: generate(run, limits={"source_length": LIMIT, "target_length": 90}),
        "run.json: limits.target_length must be at most the model's room for tokens, 24; received",
    ),
    (
        lambda run: generate(run, limits={"source_length": LIMIT}),
        "run.json: limits.target_length must be at least 2, a prompt and what follows; received 1",
    ),
    (
        lambda run: generate(run, decoding={"start_id": 0, "end_id": 9999}),
        f"run.json: decoding.end_id must be an id, from 0 to {len(BYTES) - 1}; received 9999",
    ),
    (
        lambda run: edited(run, generate, decoding={}),
        "run.json: decoding.start_id is missing, the id that starts a text; run.json: decoding.end_"
        "id is missing, the id that ends a text",
    ),
    (
        lambda run: edited(run, translate, decoding={"start_id": 2, "end_id": 1}),
        "run.json: decoding.end_id must be an id that the model may generate; received 1, and nev",
    ),
    (
        lambda run: translate(run, decoding={"num_beams": 99}),
        f"run.json: decoding.num_beams must be at most the vocabulary's size, {len(TABLE)}; receiv",
    ),
    (
        lambda run: translate(
            run, transformer(), limits={"source_length": 40, "target_length": 50}
        ),
        "run.json: limits.target_length must be at most the model's room for tokens, 11; received",
    ),
    (
        lambda run: translate(run, validation=[{"input": "small"}]),
        "validation.json[0]: must have text and target",
    ),
    (choose, "validation.json[0], text has 51 tokens; the limit is 24. Save the run again."),
]


@pytest.mark.parametrize("make, message", CASES, ids=[each[1][:50] for each in CASES])
def test_a_run_that_can_not_be_served_is_refused_before_anything_is_traced(
    make, message, tmp_path, capsys
):
    make(tmp_path / "run")
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    output = capsys.readouterr()
    assert message in output.err
    assert output.err.startswith(f"export: {tmp_path / 'run'}: ")
    assert output.err.count("\n") == 1
    assert "partial" not in output.err and "manifest.json" not in output.err
    assert output.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_all_reasons_come_in_one_error(tmp_path, capsys):
    generate(
        tmp_path / "run",
        validation=examples(LONG, "small", *[LONG] * 4),
        limits={"source_length": LIMIT, "target_length": 90},
        decoding={"start_id": 0, "end_id": 9999, "num_beams": 999},
    )
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    error = capsys.readouterr().err
    for part in ("target_length", "end_id", "num_beams", r"json\[0\]", r"json\[3\]", "2 more like"):
        assert re.search(part, error), part


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"limits": {"source_length": "24"}}, "limits.source_length must be a whole number; rece"),
        ({"decoding": {"length_penalty": "x"}}, "decoding.length_penalty must be a number; recei"),
        ({"pipeline": "Clasify"}, "pipeline must be Translate, Generate, Classify, Tag, "),
        ({"inputs": {"token_ids": "int64"}}, "inputs[0].shape is missing"),
        ({"limits": {}, "decoding": {"beam": 2}}, "limits.source_length is missing; decoding.beam"),
    ],
)
def test_a_record_edited_by_hand_is_refused_in_words(fields, message, tmp_path, capsys):
    edited(tmp_path / "run", classify, **fields)
    path = tmp_path / "run/run.json"
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"export: {path}: ") and message in error

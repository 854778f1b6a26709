"""BERT from a user's text: what it learns, leaves, measures and refuses; fine-tuning from it."""

import random

import keras
import numpy as np
import pytest

from seqkeras.data.documents import Corpus
from seqkeras.data.masking import Masking
from seqkeras.data.pretraining import PretrainingBatches, ShardOrder
from seqkeras.data.sentence_pairs import SentencePairs
from seqkeras.data.token_records import TokenRecords, begin_records
from seqkeras.optimizers import SGD
from seqkeras.pretrained import load_hugging_face, save_hugging_face
from seqkeras.tokenizers import read_tokenizer, word_piece
from seqkeras.training.fit import summed
from seqkeras.training.parts.masked_samples import masked_samples
from seqkeras.training.parts.masked_sentences import masked_sentences
from seqkeras.training.tasks.bert_pretraining import BertPretrainingOptions
from tests.conftest import long_fixture
from tests.training.commands import (
    assert_goes_on,
    evaluated,
    exported,
    printed,
    refusal,
    refused_files,
    scores_of,
)

TINY = (
    "--vocab-size 90 --num-layers 1 --hidden-dim 24 --num-heads 3 --feed-forward-dim 37 "
    "--max-length 23 --positions 41 --batch-size 7 --dropout 0 --attention-dropout 0 "
    "--learning-rate 0.005 --held-out 0.1 --warmup-steps 10"
).split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"]
TOPICS = [("cat", "sat", "mat"), ("dog", "ran", "road"), ("bird", "flew", "sky")]


def text_file(path, documents=60):
    """Documents of a topic each, whose sentences have one form."""
    draw, found = random.Random(0), []
    for _ in range(documents):
        subject, verb, place = draw.choice(TOPICS)
        kinds = [draw.choice(["old", "red", "small"]) for _ in range(draw.randint(4, 7))]
        found.append("\n".join(f"the {kind} {subject} {verb} on the {place}." for kind in kinds))
    path.write_text("\n\n".join(found) + "\n", encoding="utf-8")
    return str(path)


@long_fixture
def trained(tmp_path_factory):
    """The folder of a run, of its bundle and of its file."""
    folder = tmp_path_factory.mktemp("bert")
    file = text_file(folder / "text.txt")
    options = [*TINY, "--passes", "50", "--steps-per-save", "100", "--looks", "2"]
    printed("bert-pretraining", file, *options, "--out", folder / "run")
    exported(folder)
    return folder


def test_it_learns_the_words_and_which_text_goes_on(trained):
    scores = scores_of(trained / "run")
    assert scores["validation_masked_accuracy"] > scores["most_frequent_token"] + 0.3
    assert scores["validation_next_accuracy"] > scores["majority"] + 0.1
    assert scores["words_right"] > scores["words_right_by_the_most_frequent"] + 0.2
    assert 0 < scores["most_frequent_token"] < 0.4 and 0.5 <= scores["majority"] < 0.75
    columns = (trained / "run/history.csv").read_text().splitlines()[0].split(",")
    names = [f"{head}_{kind}" for head in ("masked", "next") for kind in ("loss", "accuracy")]
    assert {*names, *(f"validation_{name}" for name in names)} <= {*columns}
    total = scores["validation_masked_loss"] + scores["validation_next_loss"]
    assert scores["validation_loss"] == pytest.approx(total, rel=1e-6)


def test_samples_have_the_probabilities_of_the_model():
    tokenizer = word_piece([*VOCABULARY, "sat", "##s"])
    the, cat, sat, ends = map(tokenizer.id_of, ("the", "cat", "sat", "##s"))
    inputs = {
        "token_ids": np.array([[2, the, 4, ends, 3, the, sat, 3, 0]]),
        "lengths": np.array([8]),
        "masked_positions": np.array([[2, 5, 0]]),
        "segment_ids": np.array([[0, 0, 0, 0, 0, 1, 1, 1, 0]]),
    }
    targets = {"masked": np.array([[cat, sat, -1]]), "next": np.array([1])}
    probabilities = np.full((1, 3, len(tokenizer)), 1e-9)
    probabilities[0, 0, [cat, sat, ends]] = 0.7, 0.2, 0.1
    probabilities[0, 1, [the, cat, sat]] = 0.25, 0.25, 0.5

    def model(given, training):
        assert given["token_ids"].shape == (1, 9) and not training
        return {"masked": np.log(probabilities), "next": np.log([[0.1, 0.9]])}

    [shown] = masked_samples(model, tokenizer, [(inputs, targets)], 5)
    assert shown == {
        "first": "[CLS] the [MASK] ##s [SEP]",
        "second": "‹the› sat [SEP]",
        "target": "cat | sat",
        "answer": "cat 70% sat 20% ##s 10% | sat 50% the 25% cat 25%",
        "pair": "another text; answer: another text 90%",
    }
    del inputs["segment_ids"], targets["next"]
    [shown] = masked_samples(model, tokenizer, [(inputs, targets)], 5)
    assert [*shown] == ["input", "target", "answer"]
    assert shown["input"] == "[CLS] the [MASK] ##s [SEP] ‹the› sat [SEP]"


def test_no_word_outside_the_vocabulary_is_asked_for():
    tokenizer = word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "she", "left", "in", "."])
    [found] = masked_sentences([["She left Oslo in May."]], tokenizer, share=1.0, max_length=23)
    assert found.text == "[MASK] [MASK] Oslo [MASK] May."
    assert found.target == ["she", "left", "in"]


def test_run_and_bundle_have_the_same_scores_of_another_file(trained, tmp_path):
    file = text_file(tmp_path / "other.txt", 9)
    of_run, of_bundle = (evaluated(trained / name, file) for name in ("run", "bundle"))
    assert of_run["words_right"] == of_bundle["words_right"] > 0.4
    names = {"validation_masked_accuracy", "validation_next_accuracy", "majority"}
    assert of_run.keys() - of_bundle.keys() >= names


def test_new_heads_are_put_on_the_encoder_as_it_was_trained(trained, tmp_path):
    kinds = {"cat": "near", "mat": "near", "dog": "far", "road": "far"}
    rows = [f"the {word},{label}" for word, label in kinds.items()]
    file = tmp_path / "labels.csv"
    file.write_text("text,label\n" + "\n".join(rows * 8), encoding="utf-8")
    options = ["--pretrained", trained / "run", *"--batch-size 8 --passes 1 --frozen true".split()]
    printed("classification", file, *options, "--out", tmp_path / "tuned")
    tuned = keras.models.load_model(tmp_path / "tuned/model.keras").encoder
    before = keras.models.load_model(trained / "run/model.keras").encoder
    same = {"name": "", "trainable": True}
    assert tuned.get_config() | same == before.get_config() | same
    for found, expected in zip(tuned.weights, before.weights, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert read_tokenizer(tmp_path / "tuned/tokenizer/text.json") == read_tokenizer(
        trained / "run/tokenizer/text.json"
    )


@pytest.mark.long
def test_hugging_face_s_format_holds_the_run_and_brings_it_back(trained, tmp_path):
    model = keras.models.load_model(trained / "run/model.keras")
    tokenizer = read_tokenizer(trained / "run/tokenizer/text.json")
    save_hugging_face(model, tmp_path / "folder", tokenizers={"text": tokenizer})
    again = load_hugging_face(tmp_path / "folder")
    assert [*again.heads] == ["masked", "next"]
    options = "--max-length 23 --batch-size 7 --held-out 0.1 --max-steps 1 --learning-rate 1e-9"
    given = ["--pretrained", tmp_path / "folder", *options.split(), "--out", tmp_path / "more"]
    printed("bert-pretraining", trained / "text.txt", *given)
    found, expected = scores_of(tmp_path / "more"), scores_of(trained / "run")
    for name in ("validation_masked_loss", "validation_next_loss"):
        assert found[name] == pytest.approx(expected[name], rel=1e-4)


@pytest.mark.long
def test_longer_rows_go_on_from_the_run_with_its_records(trained, tmp_path):
    options = [*TINY, "--max-length", 41, "--start-from", trained / "run", "--max-steps", 2]
    given = [trained / "run.records", *options, "--learning-rate", 1e-9]
    lines = "\n".join(printed("bert-pretraining", *given, "--out", tmp_path / "longer"))
    assert " rows of 41" in lines
    assert "run.records brings its own; --vocab-size, --held-out have no effect\n" in lines
    found = scores_of(tmp_path / "longer")
    assert found["validation_masked_accuracy"] > found["most_frequent_token"] + 0.2
    assert not (tmp_path / "longer.records").exists()


@pytest.mark.long
@pytest.mark.parametrize("given", ["", "--pairs false --masks spans"])
def test_a_stopped_training_goes_on_bit_for_bit(tmp_path, given):
    options = "--max-steps 12 --steps-per-save 4 --shard-megabytes 1".split()
    file = text_file(tmp_path / "text.txt")
    assert_goes_on(tmp_path, "bert-pretraining", file, *TINY, *options, *given.split())


@pytest.mark.long
def test_without_pairs_there_is_one_head_and_one_document_is_enough(tmp_path):
    lines = [f"the {kind} {word} is {kind}." for kind in ("old", "red") for word in "abcdefgh"]
    file, validation = tmp_path / "text.txt", tmp_path / "validation.txt"
    file.write_text("\n".join(lines * 4), encoding="utf-8")
    validation.write_text("\n".join(lines[::3]), encoding="utf-8")
    options = [*TINY, *"--pairs false --masks words --max-steps 3".split()]
    out = ["--validation", validation, "--out", tmp_path / "run"]
    printed("bert-pretraining", file, *options, *out)
    scores = scores_of(tmp_path / "run")
    assert {"validation_masked_loss", "most_frequent_token"} <= scores.keys()
    assert not {"validation_next_loss", "majority"} & scores.keys()
    model = keras.models.load_model(tmp_path / "run/model.keras")
    assert [*model.heads] == ["masked"] and model.encoder.pooler is None


def test_accumulated_batches_make_the_step_of_a_large_one(trained):
    """The mean over all masked tokens of both batches, and over all of their pairs."""
    task = BertPretrainingOptions(files=(str(trained / "run.records"),), short=0.5).make()
    task.reading.read()
    records = TokenRecords(trained / "run.records")
    rows = SentencePairs(records.shards, 23, 2, 3, short=0.5)
    batches = PretrainingBatches(
        rows, Masking(task.reading.tokenizer), ShardOrder(rows.counts, 5, 0), 23, True
    )
    single = [batch for _, batch in zip(range(2), batches.from_step(0))]
    group = [batch for _, batch in zip(range(2), batches.in_groups(2, -1).from_step(0))]
    both = [
        *map(
            lambda *parts: keras.tree.map_structure(lambda *each: np.concatenate(each), *parts),
            *single,
        )
    ]
    found = []
    for loss, steps, given in (
        (task.modelling.loss(), 1, [both]),
        (summed(task.modelling.loss()), 2, group),
    ):
        model = keras.models.load_model(trained / "run/model.keras", compile=False)
        model.encoder.dropout.rate = 0.0
        for block in model.encoder.encoder.blocks:
            block.trainable = False  # its dropout draws for a batch
        options = {"gradient_accumulation_steps": steps} if steps > 1 else {}
        model.compile(SGD(0.1, **options), loss)
        for batch in given:
            model.train_on_batch(*batch)
        found.append(model.get_weights())
    before = keras.models.load_model(trained / "run/model.keras", compile=False).get_weights()
    changed = 0
    for one, other, start in zip(*found, before, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
        changed += np.abs(one - start).max() > 1e-4
    assert changed > 5


@pytest.mark.long
def test_several_processes_make_the_records_of_one(tmp_path):
    file = text_file(tmp_path / "text.txt", 200)
    other = text_file(tmp_path / "other.txt", 90)
    contents = []
    for name, processes in (("one", 1), ("two", 2)):
        out = ["--max-steps", 1, "--processes", processes, "--out", tmp_path / name]
        printed("bert-pretraining", file, other, *TINY, *out)
        shards = sorted((tmp_path / f"{name}.records").glob("shard-*/*.npy"))
        contents.append([path.read_bytes() for path in shards])
    assert len(contents[0]) == 6 and contents[0] == contents[1]
    assert scores_of(tmp_path / "one") == scores_of(tmp_path / "two")


AB = "a b\n\n" * 40
test_a_text_that_can_not_be_learned_from_is_one_line = refused_files(
    "bert-pretraining",
    "text.txt",
    (" \n", "", "the file is empty"),
    ("a b c\nd e f\n" * 9, "", "two documents at least must be for training"),
    ("a\n\nb\n\nc", "", "two documents at least must be for validation; there are 0"),
    ("\u200b\n\n" * 40, "", "no word is left for validation"),
    (AB, "", "of 0% of the pairs the second text goes on with the first"),
    ("a b\nc d\n\n" * 60, "--held-out 0.99", "for training; there is 1 of 60. Set"),
    (AB, "--vocab-size 5", "text.txt: --vocab-size must be at least 7"),
    (AB, "--records .", "not empty, and no folder of records"),
    *(
        (AB, f"--vocabulary {{tmp_path}}/no-{token}.txt", f"no-{token}.txt: ...must hold [{token}]")
        for token in ("MASK", "CLS", "SEP", "UNK")
    ),
    options=" ".join(TINY),
    beside={
        f"no-{token[1:-1]}.txt": "\n".join(other for other in VOCABULARY if other != token)
        for token in VOCABULARY[1:5]
    },
)
test_options_that_do_not_go_together_are_one_line = refused_files(
    "bert-pretraining",
    "text.txt",
    (AB, "--held-out 0", "'--held-out': 0.0 is not in the range 0<x<1"),
    (AB, "--max-length 60", "--max-length 60: the model has fewer --positions"),
    (AB, "--num-heads 5", "--num-heads must divide --hidden-dim"),
    options=" ".join(TINY),
    status=2,
)


def test_records_say_how_their_documents_are_read(tmp_path):
    text = text_file(tmp_path / "text.txt", 20)
    corpus = Corpus.of_files([text], "prose", held_out=0.2)
    begin_records(tmp_path / "records", corpus, word_piece(VOCABULARY))
    records = (str(tmp_path / "records"),)
    assert BertPretrainingOptions(files=records).form == "prose"
    assert BertPretrainingOptions(files=(text,)).form == "lines"
    given = ["bert-pretraining", *records, "--form", "lines"]
    line = refusal(*given, out=tmp_path / "run", status=2)
    assert "--form lines: the documents of " in line


@pytest.mark.parametrize("name", ["run", "bundle"])
def test_a_text_without_a_word_to_mask_is_not_scored(trained, tmp_path, name):
    file = tmp_path / "other.txt"
    file.write_text("qqq xxx\n\nzzz\n", encoding="utf-8")
    line = refusal("evaluate", trained / name, "--data", file, out=tmp_path / "scores.json")
    assert f"{file}: no word is left for validation: none of its 2 sentences" in line


@pytest.mark.long
def test_lines_over_the_limit_are_read_in_parts(tmp_path):
    draw, words = random.Random(0), "the old cat sat on a red mat and then".split()
    lines = [" ".join(draw.choices(words, k=70)) for _ in range(30)]
    validation = text_file(tmp_path / "validation.txt", 9)
    (tmp_path / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    given = ["--max-steps", 2, "--validation", validation, "--out", tmp_path / "run"]
    told = printed("bert-pretraining", tmp_path / "text.txt", *TINY, *given)
    records = TokenRecords(tmp_path / "run.records")
    tokens, rows = records.num_tokens, SentencePairs(records.shards, 23, 2, 3)
    assert tokens >= 30 * 70 and sum(rows.counts) >= tokens / 20
    assert f"{tokens:,} tokens in " in " ".join(told)


def test_a_sentence_that_holds_a_mask_is_not_asked_for():
    tokenizer = word_piece([*VOCABULARY, "sat", "on", "."])
    documents = [["the cat [MASK] on.", "the cat sat on."]]
    first, second = masked_sentences(documents, tokenizer, share=0.5, max_length=23)
    assert (first.text, first.target) == ("", [])
    assert second.text.count("[MASK]") == len(second.target) > 0

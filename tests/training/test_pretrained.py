"""Fine-tuning from a folder: what is read, what is refused, which layers learn how fast."""

import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from seqkeras.models import ClassificationHead, TaggingHead, WithHeads
from seqkeras.pretrained import load_hugging_face
from seqkeras.runs import RunError, RunFiles
from seqkeras.tokenizers import special_ids
from seqkeras.training.layer_rates import rates_of_layers
from seqkeras.training.options.pretrained import PretrainedOptions
from seqkeras.training.parts.pretrained import Pretrained, inputs_of
from seqkeras.training.tasks.classification import ClassificationOptions
from tests.arrays import close, numbers
from tests.training.commands import assert_goes_on, evaluated, printed, refused_options
from tests.training.pretrained_folders import (
    VOCABULARY,
    google_folder,
    hugging_face_folder,
    keras_nlp_folder,
    tiny_bert,
)
from tests.training.test_distilling import reviews as rows_of_reviews

FAST = "--learning-rate 0.01 --batch-size 11 --steps-per-save 3".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return hugging_face_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    return rows_of_reviews(tmp_path_factory.mktemp("reviews") / "reviews.csv", 58)


def outputs(encoder, heads):
    """The hidden states and the pooled vectors of one text."""
    inputs = {"token_ids": np.array([[2, 5, 7, 3]]), "lengths": np.array([4])}
    return {name: numbers(value) for name, value in encoder(inputs).items() if name in heads}


@pytest.mark.parametrize("make", [hugging_face_folder, google_folder, keras_nlp_folder])
def test_every_kind_of_folder_gives_its_encoder_and_its_tokenizer(make, tmp_path):
    given = {} if make is hugging_face_folder else {"activation": "gelu_tanh"}
    found = Pretrained.read(make(tmp_path / "tiny", **given))
    model = found.with_heads({"label": ClassificationHead(3)})
    expected = outputs(tiny_bert(**given), ("hidden", "pooled"))
    for name, values in outputs(model.encoder, ("hidden", "pooled")).items():
        close(values, expected[name])
    encoding = found.tokenizer.analyze("The film", "a book")
    tokens = [found.tokenizer.token_of(token) for token in encoding.token_ids]
    assert tokens == ["[CLS]", "the", "film", "[SEP]", "a", "book", "[SEP]"]
    assert encoding.segment_ids == [0, 0, 0, 0, 1, 1, 1]
    assert special_ids(found.tokenizer).start_id == 2


def test_a_vocabulary_of_capitals_is_read_with_its_capitals(tmp_path):
    path = Path(google_folder(tmp_path / "tiny"))
    entries = (path / "vocab.txt").read_text().replace("oslo", "Oslo")
    (path / "vocab.txt").write_text(entries)
    tokenizer = Pretrained.read(str(path)).tokenizer
    place = VOCABULARY.index("oslo")
    assert tokenizer.encode("Oslo") == [place]
    assert tokenizer.encode("oslo") != [place]
    (path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert Pretrained.read(str(path)).tokenizer.encode("Oslo") != [place]


def test_heads_get_a_pooler_where_they_need_one_and_none_elsewhere(tmp_path):
    without = Pretrained.read(hugging_face_folder(tmp_path / "without", pooler=None))
    pooled = without.with_heads({"label": ClassificationHead(3)})
    assert pooled.encoder.config["pooler"] == "tanh"
    own = outputs(tiny_bert(pooler=None), ["hidden"])
    close(outputs(pooled.encoder, ["hidden"]), own)
    full = Pretrained.read(hugging_face_folder(tmp_path / "full"))
    mean = full.with_heads({"label": ClassificationHead(3)}, pooling="mean")
    assert mean.encoder.pooler is None
    tags = full.with_heads({"tag": TaggingHead(3)})
    assert tags.encoder.pooler is None
    close(outputs(tags.encoder, ["hidden"]), outputs(tiny_bert(), ["hidden"]))


def test_a_table_rounded_up_to_64_rows_has_the_vocabulary_of_its_tokenizer(tmp_path):
    path = hugging_face_folder(tmp_path / "tiny", vocab_size=64)
    assert len(Pretrained.read(path).tokenizer) == len(VOCABULARY)


def test_a_vocabulary_whose_only_capitals_are_special_is_of_small_letters(tmp_path):
    path = tmp_path / "chinese"
    hugging_face_folder(path)
    (path / "tokenizer.json").unlink()
    special = [*VOCABULARY[:5], "<S>", "<T>", *VOCABULARY[5:-2]]  # as bert-base-chinese has them
    (path / "vocab.txt").write_text("\n".join(special) + "\n")
    assert Pretrained.read(path).tokenizer.encode("Oslo") == [special.index("oslo")]


@pytest.mark.long
def test_frozen_and_whole_models_learn_what_they_should(folder, reviews, tmp_path):
    before = load_hugging_face(folder, heads=False).get_weights()
    for frozen in ("true", "false"):
        out = tmp_path / frozen
        arguments = [reviews, "--pretrained", folder, "--out", out, *FAST, "--passes", "1"]
        printed("classification", *arguments, "--frozen", frozen)
        model = keras.models.load_model(out / "model.keras", compile=False)
        assert isinstance(model, WithHeads)
        after = model.encoder.get_weights()
        same = sum(np.array_equal(own, other) for own, other in zip(before, after, strict=True))
        if frozen == "true":
            assert same == len(before)
        else:  # the gradient of key biases is 0
            assert same <= len(model.encoder.encoder.blocks)


def test_naming_the_folder_alone_gives_the_defaults_of_fine_tuning(folder, reviews, tmp_path):
    out = tmp_path / "run"
    common = [reviews, "--pretrained", folder, "--out", out]
    printed("classification", *common, "--batch-size", 5, "--passes", 1, "--max-steps", 1)
    found = json.loads((out / "options.json").read_text())
    given = {"batch_size": 5, "passes": 1, "warmup_steps": 100}
    expected = {**PretrainedOptions.DEFAULTS_WITH["pretrained"], **given}
    assert {name: found[name] for name in expected} == expected
    assert {*found["sha256"]} == {f"{folder}/model.safetensors", reviews}


@pytest.mark.long
def test_steps_of_warm_up_that_are_given_stand_before_the_share(folder, reviews, tmp_path):
    arguments = [reviews, "--pretrained", folder, "--out", tmp_path / "run", *FAST]
    printed("classification", *arguments, "--passes", "1", "--warmup-steps", "2")
    found = json.loads((tmp_path / "run/options.json").read_text())
    assert (found["warmup_steps"], found["warmup_share"]) == (2, None)


@pytest.mark.long
def test_a_finished_run_needs_the_folder_no_more_and_may_be_tuned_again(reviews, tmp_path):
    folder = Path(hugging_face_folder(tmp_path / "tiny"))
    printed("classification", reviews, "--pretrained", folder, "--out", tmp_path / "first", *FAST)
    shutil.rmtree(folder)
    evaluated(tmp_path / "first", reviews)
    first = keras.models.load_model(tmp_path / "first/model.keras", compile=False)
    again = Pretrained.read(tmp_path / "first")
    assert again.tokenizer == RunFiles.read(tmp_path / "first").tokenizers["text"]
    for own, other in zip(again.weights, first.encoder.get_weights(), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.long
def test_a_training_that_was_stopped_ends_as_one_that_was_not(folder, reviews, tmp_path):
    rates = "--optimizer adamw --weight-decay 0.1 --layer-decay 0.7 --unfreeze-every 4".split()
    assert_goes_on(tmp_path, "classification", reviews, "--pretrained", folder, *FAST, *rates)


def test_each_layer_has_its_rate_and_its_first_step(folder):
    model = Pretrained.read(folder).with_heads({"label": ClassificationHead(3)})
    assert rates_of_layers(model, ClassificationOptions()) is None
    rates = rates_of_layers(model, ClassificationOptions(layer_decay=0.5, unfreeze_every=7))
    found = {}
    for variable, rate in zip(model.trainable_variables, rates, strict=True):
        parts = ("block_0", "block_1", "pooler", "classification_head")
        part = next((part for part in parts if part in variable.path), "embeddings")
        found.setdefault(part, set()).add(rate)
    assert found == {
        "classification_head": {(1, 0)},
        "pooler": {(1, 0)},
        "block_1": {(0.5, 7)},
        "block_0": {(0.25, 14)},
        "embeddings": {(0.125, 21)},
    }


def test_pairs_of_an_encoder_without_segments_are_fed_without_them(tmp_path):
    pair = Pretrained.read(hugging_face_folder(tmp_path / "with"))
    encodings = [pair.tokenizer.analyze("a film", "a book")]
    assert list(inputs_of(encodings, True, pair)) == ["token_ids", "lengths", "segment_ids"]
    assert list(inputs_of(encodings, False, pair)) == ["token_ids", "lengths"]
    bare = Pretrained.read(hugging_face_folder(tmp_path / "bare", num_segments=0, pooler=None))
    assert list(inputs_of(encodings, True, bare)) == ["token_ids", "lengths"]
    model = bare.with_heads({"label": ClassificationHead(3)})
    assert model.encoder.config["pooler"] == "relu"  # as DistilBERT's classifier in transformers


test_options_that_contradict_the_folder_are_refused = refused_options(
    "classification {reviews} --pretrained {folder}",
    ("--vocab-size 99", "--vocab-size: --pretrained brings its own; leave it out."),
    ("--encoder gru", "--encoder: --pretrained brings its own; leave it out."),
    ("--lowercase false", "--lowercase: --pretrained brings its own; leave it out."),
    ("--frozen true --layer-decay 0.9", "--frozen: the encoder learns at no rate; leave "),
    ("--optimizer keras-adam --layer-decay 0.9", "keras-adam has one rate for all layers"),
    ("--numbers x --series-column y", "--pretrained: reads texts; sequences of numbers"),
    ("--warmup-steps 3 --warmup-share 0.5", "--warmup-share and --warmup-steps are two"),
    ("--pretrained {tmp_path}", "no pre-trained encoder: none of run.json, bert_config.json, "),
    ("--pretrained {tmp_path}/none", "/none: there is no such folder."),
)
test_options_of_fine_tuning_need_a_folder = refused_options(
    "classification {reviews}",
    *(
        (option, f"{option.split()[0]} needs --pretrained, the folder of an encoder.")
        for option in ("--frozen true", "--layer-decay 0.9", "--unfreeze-every 5", "--pooling mean")
    ),
)


def with_vocabulary(path, entries):
    """Replace the tokenizer of a folder by a list of entries."""
    (path / "tokenizer.json").unlink()
    (path / "vocab.txt").write_text("\n".join(entries) + "\n")


def with_config(path, **values):
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | values))


def with_more_words(path):
    content = json.loads((path / "tokenizer.json").read_text())
    content["model"]["vocab"].pop("oslo")
    content["model"]["vocab"] |= {f"word{number}": 30 + number for number in range(31)}
    (path / "tokenizer.json").write_text(json.dumps(content))


def with_another_vocabulary(path):
    words = [word.replace("oslo", "paris") for word in VOCABULARY]
    (path / "vocab.txt").write_text("\n".join(words) + "\n")


def sorted_by_the_alphabet(path):
    with_vocabulary(path, sorted(VOCABULARY))
    with_config(path, pad_token_id=0)


SIZE, OSLO = len(VOCABULARY), VOCABULARY.index("oslo") + 1
PAD_PLACE = sorted(VOCABULARY).index("[PAD]")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (with_more_words, f"the encoder {SIZE}: this vocabulary is not the checkpoint's.$"),
        (
            lambda path: with_vocabulary(path, VOCABULARY[:-1]),
            f"the tokenizer has {SIZE - 1} tokens and the encoder {SIZE}",
        ),
        (with_another_vocabulary, f"line {OSLO} of vocab.txt is 'paris', and tokenizer.json has "),
        (lambda path: with_config(path, num_hidden_layers=4), "(: missing; .*){3}and 29 more.$"),
        (
            lambda path: (path / "tokenizer.json").unlink(),
            "no tokenizer; expected tokenizer.json, or BERT's vocab.txt.$",
        ),
        (
            sorted_by_the_alphabet,
            rf"the tokenizer has \[PAD\] in place {PAD_PLACE}, and config.json in place 0: this ",
        ),
    ],
)
def test_a_folder_that_can_not_be_read_gets_one_line(spoil, message, folder, tmp_path):
    path = shutil.copytree(folder, tmp_path / "spoilt")
    spoil(path)
    with pytest.raises(RunError, match=message):
        Pretrained.read(path)


def test_an_encoder_reads_no_more_than_its_positions(folder):
    found = Pretrained.read(folder)
    with pytest.raises(RunError, match="--max-length 99: .* has 37 positions; choose at most as"):
        found.limit(99, 128)
    assert found.limit(None, 128) == 37

"""ELMo's language model of a user's text: what it learns, leaves, measures and refuses."""

import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.export.bundle import export
from seqkeras.tokenizers import CharacterTable, read_tokenizer, word_places
from tests.arrays import close
from tests.conftest import long_fixture
from tests.training.commands import (
    evaluated,
    exported,
    printed,
    refusal,
    refused_files,
    scores_of,
    scores_of_both,
)
from tests.training.test_language_model import text_file

TINY = (
    "--character-dim 5 --character-widths 2 --character-filters 3 --num-highways 1 --units 16 "
    "--num-layers 1 --projection-dim 11 --learning-rate 0.03 --batch-size 13"
).split()


@long_fixture
def trained(tmp_path_factory):
    """The folder of a run, of its bundle and of its file."""
    folder = tmp_path_factory.mktemp("bilm")
    file = text_file(folder / "text.txt")
    printed("bilm", file, *TINY, "--passes", 7, "--out", folder / "run")
    exported(folder)
    return folder


def test_its_scores_are_those_of_each_sentence_alone(trained):
    model = keras.models.load_model(trained / "run/model.keras")
    words, characters = (
        read_tokenizer(trained / f"run/tokenizer/{name}.json") for name in ("words", "characters")
    )
    costs, count = np.zeros(2), 0
    lines = Path(trained / "text.txt").read_text(encoding="utf-8").splitlines()
    for line in lines[-20:]:
        tokens = [line[start:end] for start, end in word_places(line)]
        ids = [2, *map(words.lookup, tokens), 3]  # <bos> and <eos>
        spelled = np.zeros((1, len(ids), max(map(len, tokens))), int)
        spelled[0, 0, 0], spelled[0, -1, 0] = 2, 3
        for place, token in enumerate(tokens, 1):
            spelled[0, place, : len(token)] = [characters.lookup(each) for each in token]
        logits = model({"character_ids": spelled})
        for place in range(len(ids) - 1):
            for side, (name, seen, told) in enumerate(
                [("forward", place, place + 1), ("backward", place + 1, place)]
            ):
                row = logits[f"{name}_logits"].numpy()[0, seen].astype("float64")
                costs[side] += np.log(np.exp(row).sum()) - row[ids[told]]
            count += 1
    expected = {
        "validation_loss": costs.mean() / count,
        "forward_perplexity": np.exp(costs[0] / count),
        "backward_perplexity": np.exp(costs[1] / count),
        "unknown_words": 0.0,
    }
    scores = scores_of(trained / "run")
    assert scores.keys() == expected.keys()
    np.testing.assert_allclose([*scores.values()], [*expected.values()], rtol=1e-4)


def test_both_directions_learn_the_form_of_a_sentence(trained):
    scores = scores_of(trained / "run")
    # Of seven targets four can not be told, of 2, 3, 3 and 2 equal chances: 36^(1/7) = 1.67.
    assert scores["forward_perplexity"] < 2 and scores["backward_perplexity"] < 2
    sample = (trained / "run/samples.txt").read_text(encoding="utf-8").split("\n\n")[-1]
    text, forward, back = (line.split(maxsplit=1)[1] for line in sample.strip().splitlines())
    before, _, expected = forward.partition("[")
    assert text.startswith(before) and {"is", "was"} == {*expected.split()[::2][:2]}
    assert text.endswith(back.partition("]")[2]) and back.startswith("[")


def test_the_bundle_gives_the_layers_that_keras_gives_a_text_between_its_ends(trained):
    embed = serving.load(trained / "bundle")
    answer = embed("Is the old house here?", words=True)
    assert [word.text for word in answer.words] == ["Is", "the", "old", "house", "here", "?"]
    model = keras.models.load_model(trained / "run/model.keras")
    characters = read_tokenizer(trained / "run/tokenizer/characters.json")
    spelled = np.zeros((1, 8, 5), int)
    spelled[0, 0, 0], spelled[0, -1, 0] = 2, 3
    for place, word in enumerate(answer.words, 1):
        spelled[0, place, : len(word.text)] = [characters.lookup(each) for each in word.text]
    plain = type(model).from_config(model.get_config() | {"boundary_ids": None})
    plain.build(None)
    plain.set_weights(model.get_weights())
    layers = plain.represent({"character_ids": spelled}).numpy()[0, :, 1:-1]
    close(np.stack([word.layers for word in answer.words], axis=1), layers, atol=1e-5)


def test_evaluate_scores_the_run_and_says_why_not_the_bundle(trained, tmp_path):
    lines = (trained / "text.txt").read_text(encoding="utf-8").splitlines()
    data = tmp_path / "held_out.txt"
    data.write_text("\n".join(lines[-20:]), encoding="utf-8")
    assert evaluated(trained / "run", data) == pytest.approx(scores_of(trained / "run"), rel=1e-5)
    assert refusal(
        "evaluate", trained / "bundle", "--data", data, out=tmp_path / "scores.json"
    ) == (
        f"seqkeras train: {trained / 'bundle'}: can not be scored: a bundle gives features of "
        "words, and does not tell the next ones; give the run."
    )


KINDS = {
    "DET": ["the", "a"],
    "ADJ": ["old", "red", "small"],
    "NOUN": ["house", "book", "child"],
    "VERB": ["is", "was"],
    "ADV": ["here"],
    "PUNCT": ["."],
}
SMALL = "--units 7 --embedding-dim 6 --learning-rate 0.03 --batch-size 13 --dropout 0.1".split()


@pytest.fixture(scope="module")
def tagged(trained, tmp_path_factory):
    """The folder of a tagger with features, of its bundle and of its file."""
    kind_of = {word: kind for kind, words in KINDS.items() for word in words}
    lines = (trained / "text.txt").read_text(encoding="utf-8").splitlines()[:90]
    words = [[line[start:end] for start, end in word_places(line)] for line in lines]
    sentences = ["".join(f"{word} {kind_of[word]}\n" for word in sentence) for sentence in words]
    folder = tmp_path_factory.mktemp("tagged")
    (folder / "words.conll").write_text("\n".join(sentences), encoding="utf-8")
    options = [*SMALL, "--features", trained / "run", "--vocab-size", "40", "--passes", "6"]
    printed("tagging", folder / "words.conll", *options, "--out", folder / "run")
    exported(folder)
    return folder


def test_the_mix_is_learned_and_what_it_mixes_is_frozen(tagged, trained):
    model = keras.models.load_model(tagged / "run/model.keras")
    features = model.get_layer("features")
    scores, gamma = (weight.numpy() for weight in features.mix.weights)
    assert np.abs(scores).max() > 1e-3 and abs(gamma - 1) > 1e-3
    bilm = keras.models.load_model(trained / "run/model.keras")
    for own, given in zip(features.bilm.weights, bilm.weights, strict=True):
        np.testing.assert_array_equal(own.numpy(), given.numpy())


def test_run_and_bundle_with_features_have_the_same_scores(tagged):
    scores = scores_of_both(tagged, tagged / "words.conll")
    assert scores["sentences"] == 90 and scores["accuracy"] == 1.0


@pytest.mark.long
def test_pairs_with_features_that_learn_too_are_served_in_every_form(trained, tmp_path):
    rows = [
        f"the {adjective} {noun}\tthe {other} {noun}\t{'same' if adjective == other else 'other'}"
        for adjective in KINDS["ADJ"]
        for other in KINDS["ADJ"]
        for noun in KINDS["NOUN"]
    ]
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join(["text\tpair\tlabel", *rows * 3]), encoding="utf-8")
    options = [*SMALL, *"--encoder transformer --num-heads 2 --pair-column pair --passes 4".split()]
    options += ["--features", trained / "run", "--train-features", "true"]
    printed("classification", file, *options, "--out", tmp_path / "first")
    features = keras.models.load_model(tmp_path / "first/model.keras").get_layer("features")
    bilm = keras.models.load_model(trained / "run/model.keras")
    kernels = (each.forward_layers[0].kernel.numpy() for each in (features.bilm, bilm))
    assert np.abs(np.subtract(*kernels)).max() > 1e-3
    file.write_text(file.read_text(encoding="utf-8") + "\na new child\ta new book\tother")
    start = ["--start-from", tmp_path / "first", "--out", tmp_path / "run"]
    printed("classification", file, *options, *start)
    export(tmp_path / "run", tmp_path / "bundle")  # which compares Keras, SavedModels and ONNX
    scores_of_both(tmp_path, file, "--pair-column", "pair")


@pytest.mark.parametrize(
    "options, message",
    [
        ("--features {cased} --lowercase true", "reads capitals, which this task would read as sm"),
        ("--features {tagger}", "expected a run of bilm; it is one of tagging, which Tag serves."),
        ("--train-features true", "--train-features is for the model of --features"),
    ],
)
def test_features_that_do_not_fit_are_refused_in_a_line(
    tagged, trained, tmp_path, options, message
):
    cased = tmp_path / "cased"
    (cased / "tokenizer").mkdir(parents=True)
    shutil.copy(trained / "run/run.json", cased)
    CharacterTable.learn(["Aa"]).to_file(cased / "tokenizer/characters.json")
    given = options.format(cased=cased, tagger=tagged / "run").split()
    status = 1 if "--features {" in options else 2
    line = refusal("tagging", tagged / "words.conll", *given, out=tmp_path / "run", status=status)
    assert message in line


@pytest.mark.long
def test_long_lines_are_read_in_parts_and_a_start_brings_what_it_knows(trained, tmp_path):
    file = tmp_path / "more.txt"
    file.write_text("the old house is new here.\n\n" * 9 + "the book was old " * 9, "utf-8")
    options = [*TINY, "--batch-size", 5, "--max-length", 5, "--max-steps", 2]
    start = ["--start-from", trained / "run", "--validation", file, "--out", tmp_path / "run"]
    told = " ".join(" ".join(printed("bilm", file, *options, *start)).split())
    assert "12 of 13 words entries, " in told  # all but "new"
    validation = json.loads((tmp_path / "run/validation.json").read_text())
    assert [example["input"] for example in validation[:2]] == ["the old house is new", "here."]
    assert validation[-1]["input"] == "old"  # the last of 36 words


test_a_text_that_can_not_be_learned_from_is_one_line = refused_files(
    "bilm",
    "text.txt",
    (" \n", "", "the file is empty"),
    ("\u200b\n" * 50, "", "no word is left for training"),
    ("one two\n", "", "--held-out 0.1 leaves nothing for training"),
)

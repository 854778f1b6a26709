"""ELMo's language model of a user's text: what it learns, leaves, measures and refuses."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest

import serving
from export.bundle import ExportOptions, export
from seqkeras.tokenizers import read_tokenizer, word_places
from tests.arrays import close
from tests.training.test_language_model import text_file
from training.__main__ import main

TINY = (
    "--character-dim 5 --character-widths 2 --character-filters 3 --num-highways 1 --units 16 "
    "--num-layers 1 --projection-dim 11 --learning-rate 0.03 --batch-size 13"
).split()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run, of its bundle and of its file."""
    folder = tmp_path_factory.mktemp("bilm")
    file = text_file(folder / "text.txt")
    assert main(["bilm", file, *TINY, "--passes", "7", "--out", str(folder / "run")]) == 0
    export(folder / "run", folder / "bundle", options=ExportOptions(saved_models=False))
    return folder


def scores_of(run):
    return json.loads((run / "scores.json").read_text())


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


def test_evaluate_scores_the_run_and_says_why_not_the_bundle(trained, tmp_path, capsys):
    lines = (trained / "text.txt").read_text(encoding="utf-8").splitlines()
    (tmp_path / "held_out.txt").write_text("\n".join(lines[-20:]), encoding="utf-8")
    data = ["--data", str(tmp_path / "held_out.txt"), "--out", str(tmp_path / "scores.json")]
    assert main(["evaluate", str(trained / "run"), *data]) == 0
    found = scores_of(tmp_path)
    np.testing.assert_allclose([*found.values()], [*scores_of(trained / "run").values()], rtol=1e-5)
    capsys.readouterr()
    assert main(["evaluate", str(trained / "bundle"), *data]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        f"training: {trained / 'bundle'}: can not be scored: a bundle gives features of words, "
        "and does not tell the next ones; give the run."
    )


@pytest.mark.long
def test_long_lines_are_read_in_parts_and_a_start_brings_what_it_knows(trained, tmp_path, capsys):
    file = tmp_path / "more.txt"
    file.write_text("the old house is new here.\n\n" * 9 + "the book was old " * 9, "utf-8")
    options = [*TINY, "--batch-size", "5", "--max-length", "5", "--max-steps", "2"]
    start = ["--start-from", str(trained / "run"), "--validation", str(file)]
    run = tmp_path / "run"
    assert main(["bilm", str(file), *options, *start, "--out", str(run)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "12 of 13 words entries, " in printed  # all but "new"
    validation = json.loads((run / "validation.json").read_text())
    assert [example["input"] for example in validation[:2]] == ["the old house is new", "here."]
    assert validation[-1]["input"] == "old"  # the last of 36 words


@pytest.mark.parametrize(
    "content, options, message",
    [
        (" \n", [], "the file is empty"),
        ("\u200b\n" * 50, [], "no word is left for training"),
        ("one\ntwo\n", [], "1 sentences are left for training, fewer than the 32 of a batch"),
        ("one two\n", [], "--held-out 0.1 leaves nothing for training"),
        ("one\n" * 50, ["--vocab-size", "4"], "--vocab-size"),
    ],
)
def test_a_text_that_can_not_be_learned_from_is_one_line(
    tmp_path, capsys, content, options, message
):
    path = tmp_path / "text.txt"
    path.write_text(content, encoding="utf-8")
    assert main(["bilm", str(path), *options, "--out", str(tmp_path / "run")]) != 0
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

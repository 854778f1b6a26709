"""What a Transformer attends to, from an option of the command to an answer that is served."""

import json

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.models import PermutedGPT
from seqkeras.runs import RunFiles
from seqkeras.tokenizers import BOS, EOS, read_tokenizer
from seqkeras.training.answering.generate import Generate
from tests.arrays import numbers
from tests.training import test_bert_pretraining as bert
from tests.training import test_language_model as language
from tests.training import test_translation as translation
from tests.training.commands import (
    assert_goes_on,
    evaluated,
    exported,
    printed,
    refused_options,
)

SHORT = "--max-steps 12 --steps-per-save 6 --batch-size 7".split()
LANGUAGE = "--num-layers 1 --hidden-dim 12 --num-heads 2 --context 23".split()
ENCODER = "--encoder transformer --embedding-dim 12 --num-heads 3".split()


def reviews(path):
    """Texts whose label a word tells, wherever it stands."""
    rows = [
        f"{'so ' * n}{word} {'it is ' * (5 - n)},{label}"
        for n in range(5)
        for word, label in [("fine", "good"), ("dear", "good"), ("dull", "bad"), ("sad", "bad")]
    ]
    path.write_text("\n".join(["text,label", *rows * 3]) + "\n")
    return str(path)


def model_of(run):
    return keras.models.load_model(run / "model.keras")


def continued(model, tokenizer, prompt_ids, count):
    """What the whole model says follows a prompt, a token at a time."""
    token_ids = list(prompt_ids)
    inputs = {}
    if getattr(model, "reads_prefix", False):
        inputs["prefix_lengths"] = np.array([len(prompt_ids)])
    for _ in range(count):
        logits = numbers(model({"token_ids": np.array([token_ids]), **inputs}))[0, -1]
        token_ids.append(int(logits.argmax()))
        if token_ids[-1] == EOS:
            token_ids.pop()
            break
    return tokenizer.decode(token_ids)[len(tokenizer.decode(prompt_ids)) :]


def translated(model, tokenizers, text, count):
    """What the whole model says is the most probable next token, again and again."""
    source, target_ids = tokenizers["source"].encode(text), [BOS]
    for _ in range(count):
        inputs = {"token_ids": [source], "lengths": [len(source)], "target_ids": [target_ids]}
        logits = numbers(model({name: np.array(value) for name, value in inputs.items()}))[0, -1]
        logits[model.never_generated] = -np.inf
        target_ids.append(int(logits.argmax()))
        if target_ids[-1] == EOS:
            return tokenizers["target"].decode(target_ids[1:-1])
    return tokenizers["target"].decode(target_ids[1:])


def proved_generator(folder, prompts=("the old house", "the red")):
    """The model of a run whose answers go on as the whole model does, and whose bundle's too."""
    model, run, prompts = model_of(folder / "run"), RunFiles.read(folder / "run"), [*prompts]
    served = serving.load(exported(folder), threads=1)(prompts, max_new_tokens=5)
    trained = Generate(run)(model, prompts)
    for prompt, answer, answered in zip(prompts, served, trained, strict=True):
        token_ids = Generate(run).token_ids(prompt)
        whole = continued(model, run.tokenizers["text"], token_ids, 5)
        assert answer.text == whole and answered.text.startswith(whole)
    return model


def tuned_to_answer(folder, *options, more=""):
    """A folder with a run that begins with the run in another, and answers."""
    rows = [
        json.dumps({"prompt": f"the {kind} {noun}{more}", "answer": f"is {kind}."})
        for kind in ("old", "red", "small")
        for noun in ("house", "book", "child")
    ]
    (folder / "answers.jsonl").write_text("\n".join(rows))
    (folder / "tuned").mkdir()
    given = [*"--user= --assistant= --max-steps 9 --batch-size 3".split(), *options]
    given += ["--start-from", folder / "run", "--out", folder / "tuned/run"]
    printed("prompt-answer", folder / "answers.jsonl", *given)
    return folder / "tuned"


def proved_translator(folder, *given):
    """The model of a training with these options, whose bundle answers as the whole model does."""
    file, text = translation.tab_separated(folder), "The old book is here."
    options = ["--hidden-dim", 12, "--num-layers", 1, "--num-heads", 2, "--tokens", "words"]
    options += ["--num-beams", 1, "--max-length", 9, *SHORT, *given]
    printed("translation", file, *options, "--out", folder / "run")
    model = model_of(folder / "run")
    tokenizers = {
        role: read_tokenizer(next((folder / "run/tokenizer").glob(f"{role}.*")))
        for role in ("source", "target")
    }
    answer = serving.load(exported(folder), threads=1)(text)
    assert answer.text == translated(model, tokenizers, text, 9)
    return model


@pytest.mark.long
def test_a_prompt_is_read_both_ways_in_training_in_the_run_and_in_the_bundle(tmp_path):
    file = language.text_file(tmp_path / "text.txt")
    options = [*LANGUAGE, *SHORT, "--mask", "prefix", "--attention-window", 4]
    printed("language-model", file, *options, "--out", tmp_path / "run")
    assert model_of(tmp_path / "run").config["attention_window"] == 4
    of_run, of_bundle = (evaluated(each, file) for each in (tmp_path / "run", exported(tmp_path)))
    assert of_run == pytest.approx(of_bundle, rel=1e-5)
    for folder in (tmp_path, tuned_to_answer(tmp_path, "--max-length", 23)):
        assert proved_generator(folder).reads_prefix


@pytest.mark.long
def test_a_permuted_model_goes_on_from_left_to_right_as_the_whole_model_does(tmp_path):
    file = language.text_file(tmp_path / "text.txt")
    options = [*LANGUAGE, *SHORT, "--mask", "permutation"]
    printed("language-model", file, *options, "--out", tmp_path / "run")
    (tmp_path / "tuned").mkdir()
    options = [*SHORT, "--context", 23, "--start-from", tmp_path / "run"]
    assert_goes_on(tmp_path / "tuned", "language-model", file, *options)
    (tmp_path / "tuned/stopped").rename(tmp_path / "tuned/run")
    for folder in (tmp_path, tmp_path / "tuned"):
        of_run, of_bundle = (evaluated(each, file) for each in (folder / "run", exported(folder)))
        assert of_run == pytest.approx(of_bundle, rel=1e-5)
        assert isinstance(proved_generator(folder), PermutedGPT)


test_a_mask_is_for_a_gpt_and_an_attention_to_the_past_for_a_state_of_its_parts = refused_options(
    "language-model {table}",
    ("--mask prefix --model gru", "--mask is for --model gpt; leave it out with --model gru."),
    (
        "--mask permutation --attention-window 3",
        "--attention-window: --mask permutation sees what is",
    ),
    ("--attention key-value", "--attention key-value is for recurrent models; leave it out wi"),
    (
        "--attention key-value-predict --model gru --hidden-dim 8",
        "--hidden-dim must be a multiple of 3 with --attention key-value-predict; received 8.",
    ),
)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["key-value", "key-value-predict"])
def test_a_recurrent_model_that_attends_to_its_past_goes_on_as_the_whole_model_does(kind, tmp_path):
    file = language.text_file(tmp_path / "text.txt")
    options = [*LANGUAGE, *SHORT, "--model", "lstm", "--attention", kind]
    printed("language-model", file, *options, "--attention-window", 3, "--out", tmp_path / "run")
    model = proved_generator(tmp_path)
    assert model.attention.window == 3 and kind in model.attention.name.replace("_", "-")
    shapes = {entry.name: entry.shape for entry in model.state_entries}
    assert shapes["keys"] == (3, 12 // model.attention.num_parts)  # whatever was read


@pytest.mark.long
def test_a_translator_of_a_window_answers_as_the_whole_model_does(tmp_path):
    model = proved_translator(tmp_path, "--attention-window", 2)
    assert model.block_options["attention_window"] == 2


@pytest.mark.long
def test_texts_are_read_in_windows(tmp_path):
    file = reviews(tmp_path / "reviews.csv")
    options = [*ENCODER, *SHORT, "--attention-window", "2", "--max-length", "1024"]
    printed("classification", file, *options, "--out", tmp_path / "run")
    model, text = model_of(tmp_path / "run"), "so so fine it is it is"
    [encoder] = [layer for layer in model.layers if hasattr(layer, "blocks")]
    assert encoder.blocks[0].attention_window == 2
    answer = serving.load(exported(tmp_path), threads=1)(text, truncate=True)
    token_ids = read_tokenizer(tmp_path / "run/tokenizer/text.json").analyze(text).token_ids
    logits = numbers(model({"token_ids": np.array([token_ids])}))[0]
    expected = np.exp(logits) / np.exp(logits).sum()
    assert sorted(answer.scores.values()) == pytest.approx(sorted(expected), abs=1e-5)


@pytest.mark.long
def test_a_bert_of_a_window_fills_masks_as_its_run_does_and_is_tuned(tmp_path):
    file = bert.text_file(tmp_path / "text.txt")
    options = [*bert.TINY, "--attention-window", "2", *SHORT]
    printed("bert-pretraining", file, *options, "--out", tmp_path / "run")
    assert model_of(tmp_path / "run").encoder.config["attention_window"] == 2
    of_run, of_bundle = (evaluated(each, file) for each in (tmp_path / "run", exported(tmp_path)))
    assert of_run["words_right"] == of_bundle["words_right"]
    tuned = ["--pretrained", tmp_path / "run", *SHORT, "--max-length", 23]
    file = reviews(tmp_path / "reviews.csv")
    printed("classification", file, *tuned, "--out", tmp_path / "tuned")
    assert model_of(tmp_path / "tuned").encoder.config["attention_window"] == 2


test_a_window_and_a_kind_of_positions_are_for_a_transformer = refused_options(
    "",
    *(
        (
            f"{given} {option}",
            f"{option.split()[0]} is for {models}; leave it out with {given.split('} ')[1]}",
        )
        for option in ("--attention-window 3", "--position-kind bias")
        for given, models in (
            ("language-model {table} --model gru", "--model gpt"),
            ("translation {table} --model luong", "--model transformer"),
            ("classification {table} --encoder qrnn", "--encoder transformer"),
            ("tagging {table} --encoder gru", "--encoder transformer"),
            ("forecasting --targets a {table} --model lstm", "--model transformer"),
        )
    ),
    *(
        (
            f"forecasting {{table}} --targets a --model transformer {option}",
            "--attention-window goes with --causal, which needs it with --model transformer.",
        )
        for option in ("--causal true", "--attention-window 3")
    ),
)

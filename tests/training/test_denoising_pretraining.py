"""A model that restores damaged text: what it learns, leaves, refuses, and what begins with it."""

import json
import random
import shutil
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.data.documents import Corpus
from seqkeras.data.token_records import begin_records, write_shard
from seqkeras.models import Transformer
from seqkeras.pretrained import load_hugging_face, save_hugging_face
from seqkeras.tokenizers import (
    learn_t5_pieces,
    learn_word_piece,
    read_tokenizer,
    special_ids,
    with_sentinels,
    word_piece,
)
from seqkeras.training.parts.denoising_pretraining import DenoisingPretrainingScoring
from seqkeras.training.tasks.denoising_pretraining import DenoisingPretrainingOptions
from tests.conftest import others_long
from tests.training.commands import (
    answers_of_run,
    assert_goes_on,
    evaluated,
    exported,
    printed,
    refusal,
    refused_files,
    scores_of,
)

TINY = (
    "--vocab-size 60 --num-layers 1 --hidden-dim 24 --num-heads 3 --feed-forward-dim 37 "
    "--max-length 31 --batch-size 7 --dropout 0 --attention-dropout 0 --learning-rate 0.01 "
    "--held-out 0.1 --warmup-steps 10 --looks 1 --tensorboard false"
).split()
TOPICS = [("cat", "sat", "mat"), ("dog", "ran", "road"), ("bird", "flew", "sky")]
NOISES = ("--noise-share 0.3", "--noise infilling --shuffle-sentences true")


def text_file(path, documents=60):
    """Documents of one or two sentences of a topic, of whose words each tells the others."""
    draw, found = random.Random(0), []
    for _ in range(documents):
        subject, verb, place = draw.choice(TOPICS)
        line = f"The {subject} {verb} on the {place}."
        found.append("\n".join([line] * draw.randint(1, 2)))
    path.write_text("\n\n".join(found) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run, of its bundle and of its file."""
    folder = tmp_path_factory.mktemp("denoising")
    file = text_file(folder / "text.txt")
    given = "--passes 120 --batch-size 17 --schedule cosine".split()
    printed("denoising-pretraining", file, *TINY, *given, "--out", folder / "run")
    return folder


def test_it_learns_to_restore_what_is_missing(trained):
    scores = scores_of(trained / "run")
    assert scores["validation_accuracy"] > scores["most_frequent_token"] + 0.4
    assert scores["restored"] > 0.5
    expected = np.exp(scores["validation_loss"])
    assert scores["validation_perplexity"] == pytest.approx(expected)
    columns = (trained / "run/history.csv").read_text().splitlines()[0].split(",")
    assert {"validation_loss", "validation_perplexity", "validation_accuracy"} <= {*columns}


def test_samples_show_the_damaged_text_the_target_and_the_answer(trained):
    last = (trained / "run/samples.txt").read_text(encoding="utf-8").split("step ")[-1]
    examples = [part.strip().splitlines() for part in last.split("\n", 1)[1].split("\n\n")]
    assert len(examples) == 5
    for example in examples:
        shown = dict(line.split(maxsplit=1) for line in map(str.strip, example))
        assert [*shown] == ["input", "target", "answer"]
        assert "<extra_id_0>" in shown["input"] and shown["target"].startswith("<extra_id_0>")


DAMAGED = "The bird <extra_id_0> on the sky."


def test_an_answer_holds_the_sentinels(trained):
    [answer] = answers_of_run(trained / "run", [DAMAGED])
    assert answer.text.startswith("<extra_id_0>")


@pytest.mark.long
def test_a_served_answer_is_keras_s(trained):
    exported(trained)
    [expected] = answers_of_run(trained / "run", [DAMAGED])
    assert serving.load(trained / "bundle", threads=1)(DAMAGED).text == expected.text
    file = text_file(trained / "other.txt", 20)
    of_run, of_bundle = (evaluated(trained / name, file) for name in ("run", "bundle"))
    assert of_run["restored"] == of_bundle["restored"] > 0.5
    assert {"validation_loss", "most_frequent_token"} <= of_run.keys() - of_bundle.keys()


def scores_of_answers(target, answer):
    modelling = SimpleNamespace(validation=None)
    scoring = DenoisingPretrainingScoring(DenoisingPretrainingOptions(files=()), None, modelling)
    pair = [SimpleNamespace(target=target)], [SimpleNamespace(text=answer)]
    return scoring.scores({"validation": pair})["restored"]


def test_spans_are_compared_by_their_sentinels():
    target = "<extra_id_0> the cat<extra_id_1> sat"
    assert scores_of_answers(target, target) == 1
    assert scores_of_answers(target, "<extra_id_1>sat <extra_id_0> the dog") == 0.5
    assert scores_of_answers(target, "the cat sat") == 0
    assert scores_of_answers("the cat sat", "the cat sat") == 1


@pytest.mark.parametrize("noise", others_long(NOISES, 0))
def test_a_stopped_training_goes_on_bit_for_bit(noise, tmp_path):
    options = "--max-steps 12 --steps-per-save 4".split()
    file = text_file(tmp_path / "text.txt")
    assert_goes_on(tmp_path, "denoising-pretraining", file, *TINY, *noise.split(), *options)


def test_translation_begins_with_its_weights_and_its_tokens(trained, tmp_path):
    file = tmp_path / "pairs.txt"
    lines = [f"The {subject} {verb}.\ton the {place}" for subject, verb, place in TOPICS]
    file.write_text("\n".join(lines * 5), encoding="utf-8")
    given = "--held-out 0.34 --batch-size 7 --max-length 40 --num-beams 2 --looks 1".split()
    given += ["--max-steps", "1", "--learning-rate", "1e-9", "--tensorboard", "false"]
    run = tmp_path / "run"
    printed("translation", file, "--start-from", trained / "run", *given, "--out", run)
    tuned, before = (
        keras.models.load_model(folder / "model.keras", compile=False)
        for folder in (run, trained / "run")
    )
    assert tuned.sizes["max_length"] == 40 > before.sizes["max_length"]
    for one, other in zip(tuned.get_weights(), before.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    for side in ("source", "target"):
        [tokenizers] = {
            read_tokenizer(folder / f"tokenizer/{side}.json") for folder in (run, trained / "run")
        }
    record = json.loads((run / "run.json").read_text())
    assert record["decoding"]["num_beams"] == 2 and record["task"] == "translation"


def test_targets_of_characters_that_the_run_does_not_know_are_refused(trained, tmp_path):
    file = tmp_path / "pairs.txt"
    file.write_text("the cat\tÑandú\nthe dog\tÑandú\n" * 5, encoding="utf-8")
    given = ["translation", file, "--start-from", trained / "run", "--held-out", "0.5"]
    line = refusal(*given, out=tmp_path / "run")
    assert f"The tokens are those of --start-from {trained / 'run'}; write the targets in" in line


@pytest.mark.long
def test_a_run_goes_on_with_its_records_by_another_noise(trained, tmp_path, capsys):
    given = "--max-length 31 --batch-size 7 --noise infilling --looks 1 --vocab-size 99".split()
    given += ["--max-steps", "1", "--learning-rate", "1e-9", "--start-from", trained / "run"]
    lines = printed(
        "denoising-pretraining", trained / "run.records", *given, "--out", tmp_path / "more"
    )
    assert any("run.records brings its own; --vocab-size has no effect" in line for line in lines)
    assert not (tmp_path / "more.records").exists()
    tuned, before = (
        keras.models.load_model(folder / "model.keras", compile=False).get_weights()
        for folder in (tmp_path / "more", trained / "run")
    )
    for one, other in zip(tuned, before, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_records_of_bert_pretraining_get_sentinels(tmp_path):
    file = text_file(tmp_path / "text.txt", 40)
    corpus = Corpus.of_files([file], held_out=0.2)
    tokenizer = learn_word_piece(file.read_text().splitlines(), 60)
    write_shard(tmp_path / "records", *begin_records(tmp_path / "records", corpus, tokenizer))
    task = DenoisingPretrainingOptions(files=(str(tmp_path / "records"),)).make()
    examples, _ = task.reading.read()
    tokenizers = task.reading.tokenizers(examples)
    assert tokenizers["source"] == with_sentinels(tokenizer) != tokenizer
    ids = special_ids(tokenizer)
    decoding = task.reading.record(examples, tokenizers)["decoding"]
    assert (decoding["start_id"], decoding["end_id"]) == (ids.start_id, ids.end_id)


T5 = {"positions": "bias", "pre_norm": True, "norm": "rms", "use_bias": False, "epsilon": 1e-6}
T5_IDS = {"decoder_start_token_id": 0, "eos_token_id": 3, "pad_token_id": 0}


def t5(folder, tokenizer, size):
    """A T5 folder of Hugging Face with random weights."""
    model = Transformer(
        size,
        size,
        hidden_dim=12,
        num_layers=1,
        num_heads=3,
        feed_forward_dim=23,
        **T5,
        shared_embeddings="all",
        scale_embeddings=False,
        never_generated=[0],
    )
    model.build(None)
    save_hugging_face(model, folder, T5_IDS, {"text": tokenizer})
    return folder


@pytest.mark.long
def test_a_t5_of_hugging_face_goes_on_and_goes_back(tmp_path):
    file = text_file(tmp_path / "text.txt")
    tokenizer = learn_t5_pieces(file.read_text().splitlines(), 60)
    folder = t5(tmp_path / "t5", tokenizer, len(tokenizer) + 5)
    given = "--max-length 31 --batch-size 7 --looks 1 --max-steps 3 --tensorboard false".split()
    run = tmp_path / "run"
    printed("denoising-pretraining", file, "--start-from", folder, *given, "--out", run)
    decoding = json.loads((run / "run.json").read_text())["decoding"]
    assert (decoding["start_id"], decoding["end_id"]) == (0, 3)
    assert read_tokenizer(run / "tokenizer/source.json") == tokenizer
    model = keras.models.load_model(run / "model.keras", compile=False)
    save_hugging_face(model, tmp_path / "back", T5_IDS, {"text": tokenizer})
    again = load_hugging_face(tmp_path / "back")
    for one, other in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_a_folder_without_room_for_sentinels_gets_one_line(tmp_path):
    folder, file = t5(tmp_path / "t5", WORDS, 7), text_file(tmp_path / "text.txt", 9)
    line = refusal("denoising-pretraining", file, "--start-from", folder, out=tmp_path / "run")
    assert "t5: its model has no embeddings for sentinels; start from a T5 folder" in line


WORDS = word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"])
AB = "a b\n\n" * 40
test_a_text_that_can_not_be_learned_from_is_one_line = refused_files(
    "denoising-pretraining",
    "text.txt",
    (" \n", "", "the file is empty"),
    ("a b c\nd e f\n" * 9, "", "one document at least must be for validation; there are 0"),
    (AB, "--vocab-size 5", "vocab_size must be at least 7"),
    (AB, "--vocabulary {tmp_path}/text.txt", "text.txt: "),
    ("the\n\n" * 40, "--vocabulary {tmp_path}/the.json", "no row of two tokens is left"),
    ("\u200b\n\n" * 40, "--vocabulary {tmp_path}/the.json", "left for validation; hold longer"),
    options=" ".join(TINY),
    beside={"the.json": WORDS.to_json()},
)
test_options_that_do_not_go_together_are_one_line = refused_files(
    "denoising-pretraining",
    "text.txt",
    (AB, "--shuffle-sentences true", "--shuffle-sentences is for --noise infilling"),
    (AB, "--num-heads 5", "--num-heads must divide --hidden-dim"),
    (AB, "--max-length 900 --noise-share 0.5 --span-length 1", "450 spans, and there are 100"),
    (AB, "--start-from {tmp_path}", "no encoder-decoder; expected a finished run, or a T5"),
    options=" ".join(TINY),
    status=2,
)


def test_options_that_a_run_brings_are_refused(trained, tmp_path):
    given = ["denoising-pretraining", trained / "text.txt", "--start-from", trained / "run"]
    for option in ("--hidden-dim 24", "--lowercase true", "--dropout 0.2", "--vocabulary x.json"):
        given_too = option.split()
        if option.startswith("--vocabulary"):
            given_too[1] = trained / "run/tokenizer/source.json"
        line = refusal(*given, *given_too, out=tmp_path / "run", status=2)
        assert "--start-from brings its" in line and option.split()[0] in line


@pytest.mark.parametrize("task", ["translation", "denoising-pretraining"])
def test_runs_that_can_not_be_begun_with_get_one_line(task, trained, tmp_path):
    start, file, run = tmp_path / "start", tmp_path / "pairs.txt", tmp_path / "run"
    shutil.copytree(trained / "run", start)
    file.write_text("a b\tc d\n\ne f\tg h\n\n" * 40, encoding="utf-8")
    given = [task, file, "--start-from", start]
    record = json.loads((start / "run.json").read_text())
    (start / "run.json").write_text(json.dumps(record | {"task": "own", "pipeline": "Generate"}))
    line = refusal(*given, out=run)
    assert f"{start}: expected a run of one text into another; own left this one" in line
    (start / "run.json").write_text(json.dumps(record))
    WORDS.to_file(start / "tokenizer/target.json")
    if task == "denoising-pretraining":
        line = refusal(*given, out=run)
        assert f"{start}: expected one tokenizer.json for sources and targets" in line
    (start / "model.keras").write_bytes(b"")
    assert f"{start}: damaged: " in refusal(*given, out=run)

"""Several tasks over one encoder: what they learn together, leave, answer and refuse."""

import json

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.data.stored import Stored
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.models import WithHeads
from seqkeras.runs import RunError
from seqkeras.training.parts.several import Example, Examples
from seqkeras.training.tasks.several import SeveralOptions
from tests.training.commands import (
    assert_goes_on,
    printed,
    refusal,
    refused_files,
    refused_options,
    scores_of,
)
from tests.training.pretrained_folders import hugging_face_folder
from tests.training.test_distilling import NUMBERS, named_people, reviews

FAST = "--learning-rate 0.01 --batch-size 11 --dropout 0 --looks 2".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an encoder, files of three tasks, and tables of two and of three."""
    path = tmp_path_factory.mktemp("several")
    hugging_face_folder(path / "tiny")
    reviews(path / "reviews.csv", count=165)
    named_people(path / "names.conll", 88)
    rows = [f"a {word},one {noun},{n}" for word, n in NUMBERS.items() for noun in ("film", "play")]
    (path / "rated.csv").write_text("text,pair,number\n" + "\n".join(rows * 11) + "\n")
    two = f"""
        [mood]
        task = "classification"
        file = "{path}/reviews.csv"

        [names]
        task = "tagging"
        file = "{path}/names.conll"
        weight = 2
    """
    three = f"""
        [rates]
        task = "regression"
        file = "{path}/rated.csv"
        pair_column = "pair"
    """
    (path / "two.toml").write_text(two)
    (path / "three.toml").write_text(two + three)
    return path


def trained(folder, out, tables="two.toml", *arguments):
    common = [folder / tables, "--pretrained", folder / "tiny", "--out", out, *FAST]
    return printed("several", *common, *arguments)


def test_examples_of_all_tasks_are_those_of_a_list():
    parts = {"moods": Stored(range(300)), "none": [], "names": ["Ada", "Bob"]}
    examples = Examples(parts)
    expected = [Example(name, own) for name, part in parts.items() for own in part]
    assert [*examples] == [examples[index] for index in range(len(examples))] == expected
    assert [examples[index] for index in range(-len(examples), 0)] == expected
    with pytest.raises(IndexError):
        examples[302]


@pytest.mark.long
def test_the_scores_of_each_task_are_calibrated(folder, tmp_path):
    tables = ""
    for name in ("one", "two"):
        file = reviews(tmp_path / f"{name}.csv", count=165)
        held = reviews(tmp_path / f"{name}-held.csv", count=90, wrong=0.3)  # it is too sure of
        tables += f'[{name}]\ntask = "classification"\nfile = "{file}"\nvalidation = "{held}"\n'
    tables += "calibrate = false\n"
    (tmp_path / "tables.toml").write_text(tables)
    out = ["--pretrained", folder / "tiny", "--out", tmp_path / "run"]
    printed("several", tmp_path / "tables.toml", *out, *FAST, "--passes", 15)
    run, scores = tmp_path / "run/tasks/one", scores_of(tmp_path / "run")
    calibration = scores["one"]["calibration"]
    assert "calibration" not in scores["two"]
    assert scores_of(run)["calibration"] == calibration and (run / "calibration.png").is_file()
    held, out = tmp_path / "one-held.csv", tmp_path / "held.json"
    printed("evaluate", run, "--data", held, "--out", out)
    told = json.loads(out.read_text())["calibration"]
    before, after = (
        calibration[when]["expected_calibration_error"] for when in ("before", "after")
    )
    assert told["answers"] == calibration["answers"]
    assert told["expected_calibration_error"] < before / 2 and after < before / 2


@pytest.mark.long
def test_sentences_and_words_are_learned_at_once_and_served_each_by_a_bundle(folder, tmp_path):
    lines = trained(folder, tmp_path / "run", "two.toml", "--passes", "15")
    mood, names = (tmp_path / "run/tasks" / name for name in ("mood", "names"))
    assert [line for line in lines if line.startswith("next: ")] == [
        f"next: seqkeras export {mood} bundles/mood",
        f"next: seqkeras export {names} bundles/names",
    ]
    found = scores_of(tmp_path / "run")
    assert found["mean"] == 1 and found["mood"]["accuracy"] == found["names"]["entity_f1"] == 1
    for name in ("mood", "names"):
        comparison = scores_of(tmp_path / "run/tasks" / name)["baselines"]
        assert comparison == found[name]["baselines"]
        assert f"  {comparison['summary']}" in lines[lines.index(f"{name}:") :]
    header = (tmp_path / "run/history.csv").read_text().splitlines()[0].split(",")
    expected = {"mean", "mood: validation examples right", "names: F1 of entities", "mood_loss"}
    assert expected | {"names_loss", "mood_accuracy", "names_accuracy"} <= {*header}
    bundles = {}
    for path, file in ((mood, "reviews.csv"), (names, "names.conll")):
        bundles[path] = tmp_path / path.name
        export(path, bundles[path], options=ExportOptions(saved_models=False))
        for subject in (path, bundles[path]):
            assert "100.00%" in printed("evaluate", subject, "--data", folder / file)[-1]
    assert serving.load(bundles[mood])("a dull film").labels == ("bad",)
    answer = serving.load(bundles[names])("the book lives in oslo")
    found = [(entity.text, entity.label) for entity in answer.entities]
    assert found == [("the book", "PER"), ("oslo", "LOC")]
    whole = "holds the runs of several tasks; choose one: tasks/mood, tasks/names."
    with pytest.raises(RunError, match=whole):
        export(tmp_path / "run", tmp_path / "whole")
    asked = ["evaluate", tmp_path / "run", "--data", folder / "reviews.csv"]
    assert refusal(*asked, out=tmp_path / "scores.json").endswith(whole)
    again = [folder / "reviews.csv", "--pretrained", tmp_path / "run", "--max-steps", "1"]
    printed("classification", *again, "--out", tmp_path / "again")


@pytest.mark.long
def test_rows_of_three_tasks_share_batches(folder, tmp_path):
    best = ["--best-by", "rates: Pearson's correlation"]
    trained(folder, tmp_path / "run", "three.toml", "--batches", "mixed", "--passes", "15", *best)
    found = scores_of(tmp_path / "run")
    assert found["mood"]["accuracy"] == found["names"]["entity_f1"] == 1
    assert found["rates"]["pearson_correlation"] > 0.95
    (tmp_path / "run/tasks/mood/notes.txt").write_text("mine")
    again = ["several", folder / "two.toml", "--pretrained", folder / "tiny", "--overwrite"]
    again += ["--max-steps", "1"]
    line = refusal(*again, out=tmp_path / "run")
    assert "holds 'tasks/mood/notes.txt', which no run writes" in line
    (tmp_path / "run/tasks/mood/notes.txt").unlink()
    printed(*again, "--out", tmp_path / "run")
    assert {path.name for path in (tmp_path / "run/tasks").iterdir()} == {"mood", "names"}


def read(folder, tables, **options):
    """A `Several` that has read its files, its run and its batches."""
    options = SeveralOptions(
        file=str(folder / tables), pretrained=str(folder / "tiny"), batch_size=11, **options
    )
    task = options.make()
    examples, validation = task.reading.read()
    run, _ = task.prepared(folder / "no", examples, validation, task.reading.tokenizers(examples))
    return task, run, task.modelling.batches(examples, run)


def test_each_batch_is_of_one_task_as_often_as_its_size_tells(folder):
    task, _, batches = read(folder, "three.toml", alpha=0.5)
    tasks, steps = [], batches.from_step(0)
    for _ in range(900):
        inputs, targets = next(steps)
        labelled = {"mood": targets["mood"] >= 0, "rates": ~np.isnan(targets["rates"][:, 0])}
        labelled["names"] = (targets["names"] >= 0).any(axis=1)
        [own] = [name for name, rows in labelled.items() if rows.any()]
        assert labelled[own].all()
        assert targets["names"].shape == inputs["token_ids"].shape == inputs["segment_ids"].shape
        assert inputs["segment_ids"].any() == (own == "rates")
        tasks.append(own)
    sizes = {"mood": 148, "names": 79, "rates": 79}
    total = sum(size**0.5 for size in sizes.values())
    for name, size in sizes.items():
        assert tasks.count(name) / len(tasks) == pytest.approx(size**0.5 / total, abs=0.05)
    assert task.modelling.num_steps(batches) == 3 * (13 + 7 + 7)


def test_a_batch_teaches_its_own_head_and_the_encoder(folder):
    task, run, batches = read(folder, "three.toml")
    model = task.modelling.model(run)
    model.compile(
        keras.optimizers.SGD(0.1),
        task.modelling.loss(),
        task.modelling.loss_weights(),
        task.modelling.metrics(),
    )
    steps = batches.from_step(0)
    for _ in range(7):
        inputs, targets = next(steps)
        own = "mood" if (targets["mood"] >= 0).any() else "names"
        own = own if (targets["names"] >= 0).any() or own == "mood" else "rates"
        before = {name: head.get_weights() for name, head in model.heads.items()}
        encoder = model.encoder.get_weights()
        logs = model.train_on_batch(inputs, targets, return_dict=True)
        assert np.isfinite(logs["loss"])
        for name, head in model.heads.items():
            changed = [
                not np.array_equal(new, old)
                for new, old in zip(head.get_weights(), before[name], strict=True)
            ]
            assert all(changed) if name == own else not any(changed), (name, own)
        assert not np.array_equal(model.encoder.get_weights()[0], encoder[0])


@pytest.mark.long
def test_a_training_that_was_stopped_ends_as_one_that_was_not(folder, tmp_path):
    command = ["several", folder / "two.toml", "--pretrained", folder / "tiny", *FAST]
    assert_goes_on(tmp_path, *command, "--max-steps", 9, "--steps-per-save", 4)
    model = keras.models.load_model(tmp_path / "whole/model.keras")
    assert type(model) is WithHeads and [*model.heads] == ["mood", "names"]


def test_a_file_of_which_nothing_can_be_held_out_names_the_line_of_its_table(folder, tmp_path):
    (tmp_path / "few.conll").write_text("Ada B-PER\nlives O\n\nBo O\nleft B-LOC\n")
    file, content = tmp_path / "few.toml", (folder / "two.toml").read_text()
    file.write_text(content.replace(f"{folder}/names.conll", f"{tmp_path}/few.conll"))
    given = ["several", file, "--pretrained", folder / "tiny", *FAST]
    assert refusal(*given, out=tmp_path / "run") == (
        f"seqkeras train: {tmp_path}/few.conll: each sentence has a tag that no other has, so that "
        f"none can be held out. Name a file by validation = … in the table [names] of {file}."
    )


TAGGING = '[a]\ntask = "tagging"\n'
test_tables_that_name_no_tasks_get_one_line = refused_files(
    "several",
    "tables.toml",
    ("[a", "", "tables.toml is not a TOML file: "),
    (TAGGING, "", "must hold a table for each of two tasks at least; found a"),
    ('a = 1\n[b]\ntask = "x"', "", "a: must be a table, and its name a letter and then "),
    ('[a]\ntask = "dates"\n[b]\n', "", "a: task must be one of classification, regression, ta"),
    (f"{TAGGING}passes = 3\n[b]\n", "", "a: 'passes' is an option of the command,"),
    (f"{TAGGING}numbers = 3\n[b]\n", "", "a: 'numbers' is unknown; known are "),
    (f"{TAGGING}[b]\n", "", "a: file is missing."),
    (f'{TAGGING}file = "no"\n[b]\n', "", "a: Invalid value for 'FILE': no: no s"),
    (f'{TAGGING}file = "x"\nweight = -1\n[b]\n', "", "a: weight: -1.0 is not in the range 0<x"),
    options="--pretrained {folder}/tiny",
    status=2,
)
TWO = "several {folder}/two.toml --pretrained {folder}/tiny"
test_options_that_do_not_go_together_get_one_line = refused_options(
    TWO,
    ("--gradient-accumulation 2", "--gradient-accumulation: batches have examples of "),
    ("--alpha 0.3 --batches mixed", "--alpha: draws the task of a batch; --batches mixe"),
)
test_a_score_that_nobody_measures_gets_one_line = refused_options(
    TWO,
    ("--best-by accuracy", "--best-by must be a validation score, mean, mood: valid"),
    status=1,
)

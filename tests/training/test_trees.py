"""Trees of a user's file: what is learned, left and refused."""

import json
import random

import pytest

from seqkeras import serving
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.serving.results import Classification
from seqkeras.training.__main__ import main
from seqkeras.training.parts.trees import binary_accuracy
from seqkeras.training.tasks.trees import TreesOptions
from tests.training.exporting import refusals_of_run

TINY = "--units 11 --embedding-dim 13 --learning-rate 0.03 --batch-size 7 --dropout 0.1".split()


def trees(path, count, labels="04", phrases=True):
    """A file of trees whose label is told by a word, which "not" turns round."""
    draw, lines = random.Random(count), []
    for _ in range(count):
        good = draw.random() < 0.5
        negated = draw.random() < 0.5
        word = f"({labels[good]} {draw.choice(['fine', 'great'] if good else ['bad', 'dull'])})"
        label = labels[good ^ negated]
        inner = label if phrases else ""
        tree = f"({inner} ({labels[0]} not) {word})" if negated else word
        lines.append(f"({label} (2 It) {tree})" if phrases else f"({label} (It) {tree})")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run and its bundle."""
    folder = tmp_path_factory.mktemp("trees")
    train, dev = trees(folder / "train.txt", 140), trees(folder / "dev.txt", 23)
    options = [*TINY, "--passes", "8"]
    command = ["trees", train, "--validation", dev, *options]
    assert main([*command, "--out", str(folder / "run")]) == 0
    export(folder / "run", folder / "bundle", options=ExportOptions(saved_models=False))
    return folder


def test_roots_and_nodes_are_learned_and_scored(trained):
    scores = json.loads((trained / "run" / "scores.json").read_text())
    assert scores["trees"] == 23
    assert scores["roots"]["accuracy"] == 1.0
    assert scores["all_nodes"]["accuracy"] > 0.9
    assert "binary_accuracy" not in scores["roots"]  # the labels are 0, 2 and 4 alone
    header = (trained / "run" / "history.csv").read_text().splitlines()[0].split(",")
    assert {"roots right", "all nodes right"} <= {*header}
    assert refusals_of_run(trained / "run") == []


def test_the_bundle_tells_the_class_of_every_node(trained):
    answer = serving.load(trained / "bundle")("((It) ((not) (bad)))", nodes=True)
    assert answer.labels == ("4",)
    assert [node.text for node in answer.nodes] == ["It not bad", "It", "not bad", "not", "bad"]
    assert answer.nodes[-1].labels == ("0",)


def test_run_and_bundle_have_the_same_scores_on_a_file(trained, tmp_path):
    data = trees(tmp_path / "test.txt", 31)
    found = []
    for name in ("run", "bundle"):
        out = tmp_path / f"{name}.json"
        assert main(["evaluate", str(trained / name), "--data", data, "--out", str(out)]) == 0
        found.append(json.loads(out.read_text()))
    assert {key: found[0][key] for key in found[1]} == found[1]
    assert found[1]["trees"] == 31 and found[1]["roots"]["accuracy"] == 1.0


@pytest.mark.parametrize("name", ["run", "bundle"])
def test_a_tree_that_the_model_does_not_take_is_one_line(trained, tmp_path, capsys, name):
    path = tmp_path / "test.txt"
    path.write_text("(4 (2 It) (2 is) (4 fine))\n", encoding="utf-8")
    assert main(["evaluate", str(trained / name), "--data", str(path)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"training: {path}: ") and "3" in line


def test_five_labels_of_sentiment_have_a_binary_accuracy_without_the_neutral_ones():
    def answer(*scores):
        return Classification((), 0.0, dict(zip("01234", scores)))

    rows = [
        (answer(0.3, 0.0, 0.3, 0.2, 0.2), "4"),  # right: 0.4 over 0.3
        (answer(0.3, 0.2, 0.1, 0.4, 0.0), "3"),  # wrong: 0.4 under 0.5
        (answer(0.1, 0.4, 0.1, 0.4, 0.0), "0"),  # right
        (answer(0.0, 0.0, 0.1, 0.4, 0.5), "2"),  # neutral
    ]
    assert binary_accuracy(rows) == pytest.approx(2 / 3)


@pytest.mark.long
@pytest.mark.parametrize("cell", ["child_sum", "tree_rnn"])
def test_other_cells_learn_from_roots_alone_and_nodes_of_three(tmp_path, cell):
    file = tmp_path / "train.txt"
    trees(file, 140, labels=("bad", "good"), phrases=False)
    content = file.read_text(encoding="utf-8").replace("(It)", "(It) (is)")
    file.write_text(content, encoding="utf-8")
    run = tmp_path / "run"
    options = [*TINY, "--passes", "12", "--cell", cell]
    assert main(["trees", str(file), *options, "--out", str(run)]) == 0
    assert json.loads((run / "scores.json").read_text())["roots"]["accuracy"] > 0.8
    assert refusals_of_run(run) == []


@pytest.mark.parametrize(
    "content, options, message",
    [
        ("(1 (2 a) (2 b))\n(1 (2 a)\n", [], "line 2: not a tree: expected 1 more closing brackets"),
        ("((2 a) (2 b))\n", [], "line 1: the root has no label"),
        ("(1 (2 a) (2 b) (0 c))\n" * 9, ["--batch-size", "2"], "a node has 3 children, and --cell"),
        ("(1 a)\n" * 9, ["--batch-size", "2"], "all nodes have the label '1'"),
        ("(1 a)\n" * 2, [], "1 tree is left for training, fewer than the 25 of a batch"),
        (
            "(1 (2 a) (2 b))\n",
            ["--max-nodes", "2"],
            "a tree of 3 nodes; the limit is --max-nodes 2",
        ),
    ],
)
def test_a_file_that_can_not_be_learned_from_is_one_line(
    tmp_path, capsys, content, options, message
):
    path = tmp_path / "train.txt"
    path.write_text(content, encoding="utf-8")
    assert main(["trees", str(path), *options, "--out", str(tmp_path / "run")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("training: ") and message in line
    assert not (tmp_path / "run").exists()


def test_a_label_that_only_the_validation_has_is_refused(tmp_path, capsys):
    (tmp_path / "train.txt").write_text("(1 (2 a) (2 b))\n" * 3, encoding="utf-8")
    (tmp_path / "dev.txt").write_text("(1 (2 a) (2 b))\n(9 (2 a) (2 b))\n", encoding="utf-8")
    files = [str(tmp_path / "train.txt"), "--validation", str(tmp_path / "dev.txt")]
    assert main(["trees", *files, "--batch-size", "2", "--out", str(tmp_path / "run")]) == 1
    assert "dev.txt, line 2: the label '9' is not among those that are trained, '1', '2'" in (
        capsys.readouterr().err
    )


def test_of_one_file_a_tree_with_a_label_of_its_own_stays_in_training(tmp_path, capsys):
    path = tmp_path / "train.txt"
    path.write_text("(1 (2 a) (2 b))\n" * 3 + "(9 (2 a) (2 b))\n", encoding="utf-8")
    for seed in range(5):
        options = TreesOptions(file=str(path), batch_size=1, held_out=0.25, seed=seed)
        train, validation = options.make().reading.read()
        assert [example.target for example in validation] == ["1"]
        assert "9" in {example.target for example in train}
    path.write_text("(1 (2 a) (2 b))\n(3 (4 a) (5 b))\n", encoding="utf-8")
    assert main(["trees", str(path), "--batch-size", "1", "--out", str(tmp_path / "run")]) == 1
    assert "each tree has a label that no other has" in capsys.readouterr().err


def test_unknown_words_are_one_word_and_rare_ones_are_unknown(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("(1 (2 A) (2 b))\n(1 (2 a) (2 c))\n", encoding="utf-8")
    task = TreesOptions(file=str(path), batch_size=1, held_out=0.0, min_count=2).make()
    examples = task.reading._examples(str(path))
    words = task.reading.tokenizers(examples)["words"]
    assert [words.lookup(word) for word in ("a", "A", "b", "c")] == [2, 2, 1, 1]

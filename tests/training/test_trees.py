"""Trees of a user's file: what is learned, left and refused."""

import random

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.results import Classification
from seqkeras.tokenizers import read_tokenizer
from seqkeras.training.parts.trees import binary_accuracy
from seqkeras.training.tasks.trees import TreesOptions
from tests.references import tree as references
from tests.training.commands import (
    evaluated,
    exported,
    printed,
    refusal,
    refused_files,
    scores_of,
    scores_of_both,
)
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
    printed("trees", train, "--validation", dev, *TINY, "--passes", 8, "--out", folder / "run")
    exported(folder)
    return folder


def test_roots_and_nodes_are_learned_and_scored(trained):
    scores = scores_of(trained / "run")
    assert scores["trees"] == 23
    assert scores["roots"]["accuracy"] == 1.0
    assert scores["all_nodes"]["accuracy"] > 0.9
    assert "binary_accuracy" not in scores["roots"]  # the labels are 0, 2 and 4 alone
    header = (trained / "run" / "history.csv").read_text().splitlines()[0].split(",")
    assert {"roots right", "all nodes right"} <= {*header}


def test_the_bundle_tells_the_class_of_every_node(trained):
    answer = serving.load(trained / "bundle")("((It) ((not) (bad)))", nodes=True)
    assert answer.labels == ("4",)
    assert [node.text for node in answer.nodes] == ["It not bad", "It", "not bad", "not", "bad"]
    assert answer.nodes[-1].labels == ("0",)


def test_run_and_bundle_have_the_same_scores_on_a_file(trained, tmp_path):
    data = trees(tmp_path / "test.txt", 31)
    of_run, of_bundle = (evaluated(trained / name, data) for name in ("run", "bundle"))
    assert {key: of_run[key] for key in of_bundle} == of_bundle
    assert of_bundle["trees"] == 31 and of_bundle["roots"]["accuracy"] == 1.0


@pytest.mark.parametrize("name", ["run", "bundle"])
def test_a_tree_that_the_model_does_not_take_is_one_line(trained, tmp_path, name):
    data = tmp_path / "test.txt"
    data.write_text("(4 (2 It) (2 is) (4 fine))\n", encoding="utf-8")
    line = refusal("evaluate", trained / name, "--data", data, out=tmp_path / "scores.json")
    assert line.startswith(f"seqkeras train: {data}: ") and "3" in line


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
    printed("trees", file, *TINY, "--passes", 12, "--cell", cell, "--out", tmp_path / "run")
    assert scores_of(tmp_path / "run")["roots"]["accuracy"] > 0.8
    assert refusals_of_run(tmp_path / "run") == []


def sentences(path, count):
    """A table of sentences whose label is told by a word."""
    draw, lines = random.Random(count), ["text,label"]
    for _ in range(count):
        word = draw.choice(["fine", "great", "bad", "dull"])
        label = "good" if word in ("fine", "great") else "poor"
        lines.append(f"It is{draw.choice([' not', ''])} {word}!,{label}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


SENTENCE = "It is not Fine!"  # by each shape of trees
NESTED = {
    "balanced": ((("it", "is"), "not"), ("fine", "!")),
    "left": (((("it", "is"), "not"), "fine"), "!"),
    "right": ("it", ("is", ("not", ("fine", "!")))),
}


def logits_of(model, table, nested):
    """The logits at the root of nested words, by a recursion over the nodes in NumPy."""
    words, children = [], []

    def add(part):
        place = len(words)
        words.append(0 if isinstance(part, tuple) else table.lookup(part))
        children.append([-1, -1])
        if isinstance(part, tuple):
            children[place] = [*map(add, part)]
        return place

    add(nested)
    layers = (model.encoder, model.output_layer)
    weights = ([weight.numpy() for weight in layer.weights] for layer in layers)
    [embeddings] = model.embedding.get_weights()
    given = np.array([words]), [len(words)], np.array([children]), "binary", embeddings
    return references.tree_classifier(*given, *weights)[0, 0]


@pytest.mark.long
@pytest.mark.parametrize(
    "task, options",
    [
        ("classification", "--encoder tree"),
        ("classification", "--encoder tree --tree-shape left"),
        ("trees", "--tree-shape balanced"),
        ("trees", "--tree-shape right"),
    ],
)
def test_plain_sentences_become_a_model_of_trees(task, options, tmp_path):
    file = sentences(tmp_path / "train.csv", 140)
    given = [*TINY, *options.split(), "--passes", 12, "--held-out", 0.2]
    if task == "classification":  # the recursion knows small letters and no temperature
        given += ["--lowercase", "true", "--calibrate", "false"]
    printed(task, file, *given, "--out", tmp_path / "run")
    bundle = serving.load(exported(tmp_path))
    shape = options.split()[-1].replace("tree", "balanced")
    model = keras.models.load_model(tmp_path / "run" / "model.keras", compile=False)
    table = read_tokenizer(tmp_path / "run" / "tokenizer" / "words.json")
    logits = (logits_of(model, table, nested) for nested in (NESTED[shape], "fine"))
    expected, of_one_leaf = (
        pytest.approx(dict(zip(["good", "poor"], np.exp(each) / np.exp(each).sum())), abs=1e-5)
        for each in logits
    )
    answer = bundle(SENTENCE, nodes=True)
    assert answer.scores == expected and bundle("Fine").scores == of_one_leaf
    assert answer.labels == ("good",)
    texts = [node.text for node in answer.nodes]
    assert (len(texts), texts[0], texts[-1]) == (9, "It is not Fine !", "!")
    scores_of_both(tmp_path, sentences(tmp_path / "test.csv", 31))


TREE = "(1 (2 a) (2 b))\n"
test_a_file_that_can_not_be_learned_from_is_one_line = refused_files(
    "trees",
    "train.txt",
    (f"{TREE}(1 (2 a)\n", "", "line 2: not a tree: expected 1 more closing brackets"),
    ("((2 a) (2 b))\n", "", "line 1: the root has no label"),
    ("(1 (2 a) (2 b) (0 c))\n" * 9, "--batch-size 2", "a node has 3 children, and --cell"),
    ("(1 a)\n" * 9, "--batch-size 2", "all nodes have the label '1'"),
    (TREE, "--max-nodes 2", "a tree of 3 nodes; the limit is --max-nodes 2"),
    (f"{TREE}(3 (4 a) (5 b))\n", "--batch-size 1", "each tree has a label that no other has"),
    (
        TREE * 3,
        "--validation {tmp_path}/dev.txt --batch-size 2",
        "dev.txt, line 2: the label '9' is not among those that are trained, '1', '2'",
    ),
    beside={"dev.txt": f"{TREE}(9 (2 a) (2 b))\n"},
)
test_a_table_that_can_not_be_learned_from_is_one_line = refused_files(
    "trees",
    "train.csv",
    ("text,label\n\u200b,a\n", "", "line 2: 'text' has no word, '\\u200b'."),
    ("text,sense\na b,a\n", "", "there is no column 'label'; there are 'text', 'sense'"),
    ("text,label\na b c,a\n", "--max-nodes 3", "line 2: a tree of 5 nodes; the limit is --max-n"),
    ("text,label\na,x\nb,x\n", "--batch-size 1", "all nodes have the label 'x'."),
    options="--tree-shape left",
)
test_options_that_trees_do_not_have_are_one_line = refused_files(
    "trees",
    "train.txt",
    (TREE, "--text-column a", "in brackets have no columns; leave it out, or choose"),
    (TREE, "--tree-shape up", "'up' is not one of 'brackets', 'balanced', 'left', 'right'."),
    status=2,
)
test_options_that_an_encoder_of_trees_does_not_have_are_one_line = refused_files(
    "classification",
    "train.csv",
    (
        "",
        "--encoder tree --num-layers 2",
        "--num-layers: --encoder tree has none; leave it or the encoder",
    ),
    ("", "--encoder tree --numbers x --series-column y", "--encoder tree reads words; sequen"),
    ("", "--encoder tree --pair-column x", "--pair-column: --encoder tree has none"),
    ("", "--tree-shape left", "--tree-shape is for --encoder tree; leave it out with --encoder"),
    status=2,
)


def test_of_one_file_a_tree_with_a_label_of_its_own_stays_in_training(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("(1 (2 a) (2 b))\n" * 3 + "(9 (2 a) (2 b))\n", encoding="utf-8")
    for seed in range(5):
        options = TreesOptions(file=str(path), batch_size=1, held_out=0.25, seed=seed)
        train, validation = options.make().reading.read()
        assert [example.target for example in validation] == ["1"]
        assert "9" in {example.target for example in train}


def test_unknown_words_are_one_word_and_rare_ones_are_unknown(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("(1 (2 A) (2 b))\n(1 (2 a) (2 c))\n", encoding="utf-8")
    task = TreesOptions(file=str(path), batch_size=1, held_out=0.0, min_count=2).make()
    examples = task.reading._examples(str(path), None)
    words = task.reading.tokenizers(examples)["words"]
    assert [words.lookup(word) for word in ("a", "A", "b", "c")] == [2, 2, 1, 1]

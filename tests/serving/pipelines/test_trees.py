import re

import numpy as np
import pytest

from seqkeras.serving import BundleError
from seqkeras.serving.printing import as_line
from seqkeras.serving.text import CharacterTable
from tests.serving.pipelines.toys import TREE, Toy, load, tree_graph
from tests.serving.pipelines.toys import TREE_WORDS as WORDS

LABELS = ["good", "bad"]


def classifier(folder, n=2, tokenizers=None, **settings):
    settings = {"labels": LABELS} | settings
    return load(
        folder, "Classify", tree_graph(n)[1], settings, tokenizer=tokenizers or {"words": WORDS}
    )


def test_a_tree_has_the_classes_of_its_root_and_on_request_those_of_its_nodes(tmp_path):
    classify, (E, _) = classifier(tmp_path), tree_graph()
    answer = classify(TREE, nodes=True)
    texts = "A good very unheard|A|good very unheard|good|very unheard|very|unheard"
    assert [node.text for node in answer.nodes] == texts.split("|")
    for node in answer.nodes:
        inner = " " in node.text
        logits = E[0 if inner else WORDS.lookup(node.text)] + inner * np.array([10, 0])
        expected = np.exp(logits) / np.exp(logits).sum()
        assert node.scores == pytest.approx(dict(zip(LABELS, expected)), abs=1e-5)
        assert node.labels == (LABELS[expected.argmax()],)
    root = answer.nodes[0]
    assert (answer.labels, answer.score, answer.scores) == (root.labels, root.score, root.scores)
    assert classify(TREE) == classify([TREE])[0]
    assert classify(TREE).nodes == ()
    lines = as_line(answer).split("\n")
    assert len(lines) == 8
    assert re.fullmatch(r"A good very unheard\tgood\t\d\.\d{4}", lines[0])
    assert as_line(classify(TREE)) == f"good\t{answer.score:.4f}"


def test_trees_of_many_sizes_are_answered_in_their_order(tmp_path):
    classify = classifier(tmp_path)
    trees = ["(film)", TREE, "((a) (very) (bad))", "(1 (bad))", TREE]
    together = classify(trees, nodes=True, token_budget=9)
    for tree, answer in zip(trees, together, strict=True):
        alone = classify(tree, nodes=True)
        assert [node.text for node in answer.nodes] == [node.text for node in alone.nodes]
        for node, other in zip(answer.nodes, alone.nodes, strict=True):
            assert node.scores == pytest.approx(other.scores)


@pytest.mark.parametrize(
    "tree, message",
    [
        ("a film", "text must be a tree in brackets, as (3 (2 A) (2 film)): expected a tree in"),
        ("(3 (2 a)", "text must be .*: expected 1 more closing brackets; received '(3 (2 a)'."),
        ("", "text is empty; write something to answer."),
        ("(a\ud800)", "text must hold no lone surrogate; received '\\ud800' at 2."),
        ("((a) (a) (a) (a))", "text has a node of 4 children; the model reads 3."),
        ("(" * 500_000 + "a" + ")" * 500_000, "text has 500000 nodes; the limit is 31. A tree is "),
    ],
)
def test_what_is_no_tree_is_refused_in_one_line(tmp_path, tree, message):
    classify = classifier(tmp_path)
    pattern = re.escape(message).replace(r"\.\*", ".*")
    for truncate in (False, True):
        with pytest.raises(ValueError, match=f"^Classify: {pattern}") as caught:
            classify(tree, truncate=truncate)
        assert "\n" not in str(caught.value)


def test_a_plain_text_is_a_tree_over_its_words(tmp_path):
    classify = classifier(tmp_path, tree_shape="left")
    answer = classify("A good, very (unheard)", nodes=True)
    texts = [
        "A good , very ( unheard )",
        "A good , very ( unheard",
        "A good , very (",
        "A good , very",
    ]
    assert [node.text for node in answer.nodes[:4]] == texts
    in_brackets = classifier(tmp_path / "written")("((((A) (good)) (very)) (unheard))", nodes=True)
    plain = classify("A good\tvery unheard", nodes=True)
    assert plain == in_brackets
    assert [node.text for node in classify("film", nodes=True).nodes] == ["film"]


def test_a_plain_text_over_the_limit_is_refused_or_cut(tmp_path):
    classify = classifier(tmp_path, tree_shape="balanced")  # 31 nodes are 16 words
    with pytest.raises(ValueError, match="^Classify: text has 17 words; the limit is 16"):
        classify("film " * 17)
    assert classify("film " * 16 + "a", truncate=True) == classify("film " * 16)
    for text, message in (
        ("", "is empty; write"),
        (" \u200b", "has no token; write"),
        (3, "string"),
    ):
        with pytest.raises(ValueError, match=f"^Classify: text .*{message}"):
            classify(text)


def test_what_is_no_bundle_of_trees_is_refused(tmp_path):
    shapes = "balanced, left, right or null; received 'up'"
    with pytest.raises(BundleError, match=f"settings.tree_shape must be {shapes}"):
        classifier(tmp_path / "f", tree_shape="up")
    with pytest.raises(BundleError, match="names 3 labels; the model's output has 2 logits"):
        classifier(tmp_path / "a", labels=["x", "y", "z"])
    with pytest.raises(BundleError, match="words.json: must be a WordTable; it is a CharacterTab"):
        classifier(tmp_path / "b", tokenizers={"words": CharacterTable.learn("abc")})
    with pytest.raises(ValueError, match="^Classify: nodes must be True or False; received 'no'."):
        classifier(tmp_path / "e")([], nodes="no")
    texts = load(tmp_path / "c", "Classify", Toy(2).graph("pooled"), {"labels": LABELS})
    with pytest.raises(ValueError, match="^Classify: only trees have nodes; this model reads t"):
        texts("the cat", nodes=True)
    graph = Toy(2).graph("pooled")
    with pytest.raises(BundleError, match=r"must be \(batch, nodes, 2\) to these settings"):
        settings = {"labels": LABELS}
        load(tmp_path / "d", "Classify", graph, settings, tokenizer={"words": WORDS})

"""Pipelines on exported models give the numbers of the Keras models."""

import keras
import numpy as np
import pytest

from seqkeras import models, serving
from seqkeras.data.trees import Tree, tree_arrays
from seqkeras.decoding import best_spans
from seqkeras.export.families import plan_export
from seqkeras.models import best_answers
from seqkeras.serving.manifest import Limits
from seqkeras.serving.text import CharacterTable, WordTable, word_piece, word_places
from seqkeras.serving.text.trees import parse_tree
from tests.arrays import numbers, randomize
from tests.serving.exported import export_graphs
from tests.serving.written import write

TOKENS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat ##s do ##g . , he big dog ran to paris new "
    "york ? who where old"
).split()
TOKENIZER = word_piece(TOKENS)
LIMIT = 29
TEXTS = [
    "The big dogs ran to Paris.",
    "he",
    "who sat on the old mat, the cat?",
    "New York, old cats",
]
PAIRS = [
    ("the cat sat", "he ran to new york"),
    ("who?", "the big dog"),
    ("to paris", "on the mats."),
]
LABELS, TAGS = ["good", "bad", "neither"], ["O", "B-X", "I-X", "B-Y", "I-Y"]


def bert():
    return models.Bert(len(TOKENS), 12, 2, 3, 17, max_length=LIMIT)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Export a model; its folder and graphs, which `load` makes bundles of."""

    def export(model):
        folder = tmp_path_factory.mktemp("bundle")
        return folder, export_graphs(folder, plan_export(model))

    return export


def load(exported, pipeline, settings, tokenizers=None):
    folder, graphs = exported
    tokenizers = tokenizers or {"text": TOKENIZER}
    write(folder, pipeline, graphs, tokenizers, limits=Limits(LIMIT), settings=settings)
    return serving.load(folder, threads=2)


@pytest.fixture(scope="module")
def with_heads(exported):
    keras.utils.set_random_seed(0)
    model = models.WithHeads(
        bert(),
        {
            "label": models.ClassificationHead(len(LABELS)),
            "number": models.RegressionHead(1),
            "tag": models.TaggingHead(len(TAGS)),
            "span": models.SpanHead(),
            "token": models.MaskedLMHead(len(TOKENS)),
        },
    )
    model(arrays([TOKENIZER.analyze("the cat")]))
    randomize(model)
    return model, exported(model)


def arrays(encodings):
    return {
        "token_ids": np.array([each.token_ids for each in encodings]),
        "lengths": np.array([len(each) for each in encodings]),
        "segment_ids": np.array([each.segment_ids for each in encodings]),
    }


def outputs_of(model, *texts):
    """What the Keras model gives for one text or pair, alone."""
    encoding = TOKENIZER.analyze(*texts)
    return encoding, {
        name: keras.tree.map_structure(lambda each: each[0], value)
        for name, value in numbers(model(arrays([encoding]))).items()
    }


def softmax(logits):
    exps = np.exp(logits.astype("float64"))
    return exps / exps.sum(axis=-1, keepdims=True)


def test_classes_and_numbers(with_heads):
    model, bundle = with_heads
    classify = load(bundle, "Classify", {"output": "label", "labels": LABELS})
    regress = load(bundle, "Classify", {"output": "number"})
    inputs = [*TEXTS, *PAIRS]
    for each, answer, number in zip(inputs, classify(inputs), regress(inputs), strict=True):
        _, outputs = outputs_of(model, *([each] if isinstance(each, str) else each))
        expected = dict(zip(LABELS, softmax(outputs["label"])))
        assert answer.scores == pytest.approx(expected, abs=1e-5)
        assert number.score == pytest.approx(outputs["number"][0], abs=1e-5)


def test_tags(with_heads):
    model, bundle = with_heads
    tag = load(bundle, "Tag", {"output": "tag", "labels": TAGS})
    for text, answer in zip(TEXTS, tag(TEXTS), strict=True):
        encoding, outputs = outputs_of(model, text)
        firsts = [
            place
            for place, token in enumerate(encoding.tokens)
            if encoding.offsets[place] and not token.startswith("##")
        ]
        scores = softmax(outputs["tag"][firsts])
        assert [word.tag for word in answer.words] == [TAGS[i] for i in scores.argmax(axis=-1)]
        assert [word.score for word in answer.words] == pytest.approx(scores.max(axis=-1), abs=1e-5)


def test_answers_and_none(with_heads):
    model, bundle = with_heads
    settings = {
        "start": "span_start_logits",
        "end": "span_end_logits",
        "question_length": 9,
        "answer_length": 3,
        "no_answer": True,
    }
    ask = load(bundle, "Answer", settings)
    seen = set()
    for (question, context), answer in zip(PAIRS, ask(PAIRS), strict=True):
        encoding, outputs = outputs_of(model, question, context)
        span = outputs["span"]
        second = np.cumsum([offset is None for offset in encoding.offsets]) == 2
        in_context = [second & [offset is not None for offset in encoding.offsets]]
        [start], [end], [score] = map(
            numbers,
            best_answers(
                span["start_logits"][None], span["end_logits"][None], np.array(in_context), 3
            ),
        )
        assert answer.margin == pytest.approx(score, abs=1e-5)
        seen.add(bool(answer.text))
        if score > 0:
            place = encoding.offsets[start][0], encoding.offsets[end][1]
            assert (answer.start, answer.end) == place
            assert answer.text == context[slice(*place)]
        else:
            assert (answer.text, answer.start) == ("", None)
    assert seen == {True, False}


def test_masks(with_heads):
    model, bundle = with_heads
    [spec] = [each for each in bundle[1]["model"].outputs if each.name == "token"]
    assert spec.shape == ("batch", "masks", len(TOKENS))  # no logits of what is no mask
    fill = load(bundle, "FillMask", {"output": "token"})
    texts = ["The [MASK] sat on the [MASK].", "[MASK] ran"]
    for text, answer in zip(texts, fill(texts, top_k=3), strict=True):
        encoding, outputs = outputs_of(model, text)
        masks = [place for place, token in enumerate(encoding.tokens) if token == "[MASK]"]
        for place, fillers in zip(masks, answer.masks, strict=True):
            scores = softmax(outputs["token"][place])
            best = np.argsort(-scores)[:3]
            assert [each.token for each in fillers] == [TOKENS[index] for index in best]
            assert [each.score for each in fillers] == pytest.approx(scores[best], abs=1e-5)


QUESTIONS = [
    ("Who sat on the mat?", "The big dog ran to Paris; the cat's on the old mat, says Åke."),
    ("where", "New York"),
    ("Is this extraordinarily long?", "no, unextraordinary: the old mat"),
    ("Who?", "cat."),
]


def words_of(text):
    return [text[start:end] for start, end in word_places(text)]


def ids_of(texts, words, characters, most):
    """The ids of the words and of the first characters of each, in loops."""
    split = [words_of(text) for text in texts]
    longest = max(map(len, split))
    width = max(min(len(word), most) for row in split for word in row)
    word_ids = np.zeros((len(texts), longest), int)
    character_ids = np.zeros((len(texts), longest, width), int)
    for row, own in enumerate(split):
        for place, word in enumerate(own):
            known = word.lower() in words.words
            word_ids[row, place] = words.id_of(word.lower()) if known else 1
            for at, character in enumerate(word[:most]):
                known = character in characters.characters
                character_ids[row, place, at] = characters.id_of(character) if known else 1
    return word_ids, character_ids, np.array([len(own) for own in split])


@pytest.mark.long
def test_answers_of_words_and_characters(exported):
    """BiDAF: the best spans by its own decoding, of all questions at once."""
    known = "the cat sat on old mat big dog ran to paris , . ? who where".split()
    words = WordTable.learn(known, lowercase=True)
    characters = CharacterTable.learn(["abcdefghijklmnoprstuwyNTPÅ,.?"])
    model = models.BiDAF(len(words), 7, len(characters), 5, 11, 6, character_width=3)
    inputs = {}
    for side, texts in zip(("query", "context"), zip(*QUESTIONS, strict=True), strict=True):
        found = ids_of(texts, words, characters, most=5)
        names = [f"{side}_{part}" for part in ("ids", "characters", "lengths")]
        inputs |= dict(zip(names, found, strict=True))
    model(inputs)
    randomize(model)
    settings = {
        "start": "start_logits",
        "end": "end_logits",
        "answer_length": 3,
        "word_length": 5,
        "question_length": 7,
    }
    tables = {"words": words, "characters": characters}
    ask = load(exported(model), "Answer", settings, tables)
    outputs = model(inputs)
    starts, ends, scores = map(
        numbers, best_spans(outputs["start_logits"], outputs["end_logits"], 3)
    )
    logits = {name: numbers(value).astype("float64") for name, value in outputs.items()}
    answers = ask(QUESTIONS, token_budget=8)
    assert [ask(each).text for each in QUESTIONS] == [answer.text for answer in answers]
    assert len({answer.text for answer in answers}) > 2
    for row, ((_, context), answer) in enumerate(zip(QUESTIONS, answers, strict=True)):
        places = word_places(context)
        assert (answer.start, answer.end) == (places[starts[row]][0], places[ends[row]][1])
        assert answer.text == context[answer.start : answer.end]
        start, end = logits["start_logits"][row], logits["end_logits"][row]
        spans = [
            start[i] + end[j] for i in range(len(places)) for j in range(i, min(i + 3, len(places)))
        ]
        best = start[starts[row]] + end[ends[row]]
        assert answer.score == pytest.approx(np.exp(best) / np.exp(spans).sum(), abs=1e-5)
    with pytest.raises(ValueError, match="^Answer: input, context has 30 words; the limit is 29. "):
        ask(("who", "cat " * 30))
    with pytest.raises(ValueError, match="^Answer: input, question has 8 words; the limit is 7. "):
        ask(("who " * 8, "cat"))
    with pytest.raises(ValueError, match="^Answer: input, context has no word; write something"):
        ask(("who", "\0"))
    expected = ask(("who " * 7, "cat " * 29))
    assert ask(("who " * 8, "cat " * 30), truncate=True) == expected


TREES = [
    "(3 (2 The) (4 (2 (2 old) (3 cat)) (1 -LRB-)))",
    "(sat)",
    "((the) ((unheard) (dog)))",
    "(S (NP (DT the) (NN cat)) (VP (VBD sat)))",
]


@pytest.mark.long
@pytest.mark.parametrize("cell", ["binary", "child_sum"])
def test_classes_of_trees_and_of_their_nodes(exported, cell):
    words = WordTable.learn(["the", "cat", "sat", "old", "dog", "("])
    model = models.TreeClassifier(len(words), 5, 7, len(LABELS), cell=cell)
    trees = [parse_tree(text) for text in TREES]
    ids = {word: words.id_of(word) for word in words.words[2:]}

    def numbered(tree):  # as the library's own trees are, which have numbers as labels
        return Tree(0, tuple(map(numbered, tree.children)), tree.word and tree.word.lower())

    own = [numbered(tree) for tree in trees]
    inputs = tree_arrays(own, ids)
    model(inputs)
    randomize(model)
    tables = {"words": WordTable(words.words, lowercase=True)}
    classify = load(exported(model), "Classify", {"labels": LABELS}, tables)
    expected = softmax(numbers(model(inputs)))
    for tree, each, answer, scores in zip(own, TREES, classify(TREES, nodes=True), expected):
        assert answer.scores == pytest.approx(dict(zip(LABELS, scores[0])), abs=1e-5)
        assert classify(each).labels == answer.labels
        assert classify(each).nodes == ()
        written = list(nodes_of(tree))
        assert len(answer.nodes) == len(written) == each.count("(")
        for (words_under, _), node in zip(written, answer.nodes, strict=True):
            assert node.text.lower() == words_under
        # Alone each part of the tree has the same classes: what is above changes nothing below.
        for (_, part), node in zip(written, answer.nodes, strict=True):
            [alone] = softmax(numbers(model(tree_arrays([part], ids)))[:, 0])
            assert node.scores == pytest.approx(dict(zip(LABELS, alone)), abs=1e-5)


def nodes_of(tree):
    """The words and the tree of each node, from the left and from above."""
    below = [each for child in tree.children for each in nodes_of(child)]
    leaves = [words for words, node in below if node.word]
    yield tree.word or " ".join(leaves), tree
    yield from below

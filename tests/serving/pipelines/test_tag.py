import json
import re

import numpy as np
import pytest

from seqkeras.serving import BundleError
from seqkeras.serving.entities import entities
from seqkeras.serving.manifest import Limits
from seqkeras.serving.pipelines.chains import marginals, most_probable
from tests.conftest import CHECKOUT
from tests.serving.pipelines.toys import TOKENIZER, Toy, load, of_bytes, sentence_pieces

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def tagger(folder, tags=TAGS, **settings):
    return load(folder, "Tag", Toy(len(tags)).graph("tokens"), {"labels": tags, **settings})


# Tags and their entities, to which the entities in JavaScript are held, too.
SPELLED = CHECKOUT / "serving/javascript/test/entities.json"


@pytest.mark.parametrize("tags, expected", json.loads(SPELLED.read_text("utf-8")).items())
def test_tags_spell_the_entities_that_conlleval_finds(tags, expected):
    expected = [*map(tuple, expected)]
    assert entities(tags.split()) == expected
    assert entities(tags.replace("E-", "L-").replace("S-", "U-").split()) == expected
    assert entities(tags.replace("I-", "M-").split()) == expected


def softmax_rows(logits):
    exps = np.exp(logits.astype("float64"))
    return exps / exps.sum(axis=-1, keepdims=True)


@pytest.fixture
def byte_tagger(tmp_path):
    """Makes a tagger of a token for each byte, with settings; and its toy."""
    toy = Toy(2, vocab_size=len(of_bytes()))
    given = {"labels": ["O", "B-X"], "scheme": None}
    return toy, lambda **settings: load(
        tmp_path / str(settings), "Tag", toy.graph("tokens"), given | settings, tokenizer=of_bytes()
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("model \n", ["model"]),
        ("  a  model\n\nor\ttwo ", ["a", "model", "or", "two"]),
        ("Zoe\u0308 e\u0301 \u0301x", ["Zoe\u0308", "e\u0301", "\u0301", "x"]),
        ("Zu\u0308rich, e\u0301!", ["Zu\u0308rich", ",", "e\u0301", "!"]),
        ("e\u0301te\u0301s1\u03012 a\u03013", ["e\u0301te\u0301s", "1\u03012", "a\u0301", "3"]),
        ("\u0645\u06cc\u200c\u062e\u0648 नमस्ते", ["\u0645\u06cc\u200c\u062e\u0648", "नमस्ते"]),
        ("น้ำใจ ok", ["น้ำใจ", "ok"]),
        ("k👍🏿yes 🇨🇭a", ["k", "👍🏿", "yes", "🇨🇭", "a"]),
    ],
)
def test_what_byte_level_bpe_splits_off_is_no_word(byte_tagger, text, words):
    answer = byte_tagger[1]()(text)
    assert [word.text for word in answer.words] == words
    assert [text[word.start : word.end] for word in answer.words] == words
    answer = byte_tagger[1](words="spaces")(text)
    assert [word.text for word in answer.words] == text.split()


def test_a_word_has_the_tag_of_its_first_byte_whatever_stands_in_it_and_before_it(byte_tagger):
    toy, make = byte_tagger
    text = "Zu\u0308rich e\u0301!"
    expected = softmax_rows(toy.tokens(of_bytes().analyze(text))).max(axis=-1)
    firsts = {word.text: word.score for word in make()(text).words}
    # Z, u, two bytes of a mark, r, i, c, h, a space, e, two bytes of a mark
    first = {"Zu\u0308rich": expected[0], "e\u0301": expected[8], "!": expected[12]}
    assert firsts == pytest.approx(first, rel=1e-5)
    tag = make(words="spaces")
    assert tag("  a").words[0].score == tag("a").words[0].score


def test_a_word_begins_behind_the_space_that_is_part_of_its_token(tmp_path):
    tokenizer = sentence_pieces(vocab_size=40, model_type="unigram")
    graph = Toy(2, vocab_size=len(tokenizer)).graph("tokens")
    tag = load(tmp_path, "Tag", graph, {"labels": ["O", "B-X"]}, tokenizer=tokenizer)
    text = "the  old dogs, ran"
    words = tag(text).words
    assert [text[word.start : word.end] for word in words] == text.split()
    assert [word.text for word in words] == text.split()
    tag = tagger(tmp_path / "given")
    assert [word.text for word in tag(tuple(text.split())).words] == text.split()
    assert tag([{"text": tuple(text.split())}]) == [tag(tuple(text.split()))]


def test_an_entity_is_its_words_and_the_mean_of_their_scores(tmp_path):
    toy = Toy(2)
    for weights in (toy.W, toy.E, toy.S):
        weights[:] = 0
    toy.W[0] = [0, 1]
    for token, logit in (("the", -9), ("big", 2), ("dog", 1), ("ran", -1)):
        toy.E[TOKENIZER.id_of(token), 0] = logit
    tag = load(tmp_path, "Tag", toy.graph("tokens"), {"labels": ["O", "I-X"]})
    [entity] = tag(" the  big  dog ran").entities
    assert (entity.label, entity.text, entity.start, entity.end) == ("X", "big  dog", 6, 14)
    expected = [1 / (1 + np.exp(-2.0)), 1 / (1 + np.exp(-1.0))]
    assert entity.score == pytest.approx(sum(expected) / 2, rel=1e-5)


def test_truncated_words_are_left_out(tmp_path):
    tag = tagger(tmp_path)
    for text in (" ".join(["cat"] * 40), ("cat",) * 40):
        assert len(tag(text, truncate=True).words) == 29
    with pytest.raises(ValueError, match="^Tag: text, word 1 has no token; write something to"):
        tag(("the", "\u200b", "cat"), truncate=True)


def windows_of(token_ids, room, stride):
    """The ranges of the windows, one after the other."""
    windows = [range(min(room, len(token_ids)))]
    while windows[-1].stop < len(token_ids):
        start = windows[-1].start + min(stride, room)
        windows.append(range(start, min(start + room, len(token_ids))))
    return windows


def context_in(window, token):
    if token not in window:
        return -1
    return min(token - window.start, window.stop - 1 - token) + 0.01 * len(window)


@pytest.mark.parametrize("stride, count", [(1, 10), (3, 9), (3, 37), (50, 37), (50, 2)])
@pytest.mark.parametrize("words", ["tokenizer", "spaces", "given"])
def test_a_word_has_the_tag_of_the_window_with_most_context(tmp_path, stride, count, words):
    toy = Toy(5)  # whose logits differ from window to window
    settings = {"labels": TAGS, "stride": stride, "words": "tokenizer"}
    if words == "spaces":
        settings["words"] = words
    graph = toy.graph("tokens and pooled")
    tag = load(tmp_path, "Tag", graph, settings, limits=Limits(11))
    split = [*np.random.default_rng(count).choice(["the", "dogs", "cats,", "ran"], count)]
    text = "  ".join(split)
    answer = tag(tuple(split) if words == "given" else text)
    text = " ".join(split) if words == "given" else text
    whole = TOKENIZER.analyze(text)
    token_ids, tokens = whole.token_ids[1:-1], whole.tokens[1:-1]
    if words == "tokenizer":
        firsts = [place for place, token in enumerate(tokens) if not token.startswith("##")]
    else:
        starts = [found.start() for found in re.finditer(r"\S+", text)]
        firsts = [[o[0] for o in whole.offsets[1:-1]].index(start) for start in starts]
    windows = windows_of(token_ids, 9, stride)
    assert (len(windows) > 1) == (len(token_ids) > 9)
    assert len(answer.words) == len(firsts)
    for word, first in zip(answer.words, firsts, strict=True):
        window = max(windows, key=lambda each: context_in(each, first))
        ids = [TOKENIZER.id_of("[CLS]"), *token_ids[window.start : window.stop]]
        ids.append(TOKENIZER.id_of("[SEP]"))
        x = toy.E[ids] + toy.S[0]
        [scores] = softmax_rows(((x + x.mean(axis=0)) @ toy.W)[[first - window.start + 1]])
        assert word.score == pytest.approx(scores.max(), rel=1e-4)
        assert word.tag == TAGS[scores.argmax()]
        assert word.text == text[word.start : word.end]
    again = tag([text, "the cat", text])[2]
    assert [word.tag for word in again.words] == [word.tag for word in tag(text).words]


@pytest.mark.parametrize("changes", [{}, {"stride": 3}])
def test_a_chain_gives_the_most_probable_tags_of_all_words_together(tmp_path, changes):
    toy = Toy(5)
    graph = toy.graph("chain")
    tag = load(tmp_path, "Tag", graph, {"labels": TAGS} | changes, limits=Limits(9))
    text = "the dogs ran" if not changes else "the dogs ran to paris , he sat"
    encoding = TOKENIZER.analyze(text)
    firsts = [
        place for place, token in enumerate(encoding.tokens) if token.isalpha() or token == ","
    ]
    potentials = toy.tokens(encoding)[firsts][:, None] + toy.A
    answer = tag(text)
    tags = most_probable(potentials)
    assert [word.tag for word in answer.words] == [TAGS[own] for own in tags]
    scores = marginals(potentials)[range(len(tags)), tags]
    np.testing.assert_allclose([word.score for word in answer.words], scores, rtol=1e-5)
    alone = toy.tokens(encoding)[firsts].argmax(axis=-1)
    assert [*alone] != [*tags]
    assert tag([text, "he", text])[2] == answer
    assert tag([]) == []


@pytest.mark.parametrize(
    "given, message",
    [
        ((), "text is empty; write something to answer."),
        (("the", ""), "text, word 1 is empty; write something to answer."),
        (("the cat",), "text, word 0 must hold no space; received 'the cat'."),
        (("the", 3), "text, word 1 must be a string; received int 3."),
    ],
)
def test_wrong_words_are_refused(tmp_path, given, message):
    with pytest.raises(ValueError, match=f"^Tag: {re.escape(message)}$"):
        tagger(tmp_path)(given)


def test_wrong_settings_are_refused_with_every_reason(tmp_path):
    with pytest.raises(BundleError) as caught:
        tagger(tmp_path, ["O", "X", "B-", "E-PER", "-LRB-", "BI-X"], words="all")
    assert str(caught.value) == (
        f"{tmp_path}: manifest.json: settings.words must be one of tokenizer, spaces; received "
        "'all'; settings.labels must be IOB2 tags; received X, B-, E-PER, -LRB-, "
        "BI-X. Export the bundle again."
    )
    pieces = sentence_pieces(ends=False)
    of_pieces = Toy(2, vocab_size=len(pieces)).graph("tokens")
    two, chain = {"labels": ["O", "B-X"]}, Toy(5).graph("chain")
    for place, (graph, settings, tokenizer, message) in enumerate(
        [
            (Toy(2).graph("tokens"), {}, TOKENIZER, "labels is missing"),
            (Toy(2).graph("tokens"), two | {"scheme": "IOB"}, TOKENIZER, "scheme must be one of "),
            (Toy(2).graph("tokens"), two | {"stride": 0}, TOKENIZER, "stride must be at least 1"),
            (of_pieces, two | {"stride": 3}, pieces, "stride needs WordPiece or byte-level BPE."),
            (chain, two, TOKENIZER, "labels names 2 labels; the model.s output has 5 logits"),
        ]
    ):
        with pytest.raises(BundleError, match=f"settings.{message}"):
            load(tmp_path / str(place), "Tag", graph, settings, tokenizer=tokenizer)

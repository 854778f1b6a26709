import json

import numpy as np
import pytest

from seqkeras.serving import BundleError
from seqkeras.serving.text import Subwords, byte_pairs, word_piece
from seqkeras.serving.text.byte_pairs import SPECIAL_TOKENS
from tests.serving.pipelines.toys import TOKENIZER, TOKENS, Toy, load

# Texts, and what ##s makes of them: it stands behind a word on its line, if there is one.
CONTINUED = [
    ("the dog [MASK] ran", "the dogs ran"),
    ("the dog [MASK] [MASK]", "the dogss"),
    (" [MASK]\n[MASK]  x", " s\ns  x"),
    ("the dog\n [MASK]\u2028\t[MASK] \x0b", "the dog\n s\u2028\ts \x0b"),
    ("[MASK]", "s"),
]
# Texts, what stands for each of their masks, and what is made of them: RoBERTa's mask takes the
# white space before it.
SPACED = [
    ("a cat <mask> here.", "\u0120sat", "a cat sat here."),
    ("a cat\n <mask> here.", "\u0120sat", "a cat\n sat here."),
    ("<mask> sat", "\u0120cat", "cat sat"),
    ("a<mask>,<mask>", "\u0120cat", "a cat, cat"),
    ("the cat <mask> sat", "s", "the cats sat"),  # which goes on the word, as ##s does
    ("the cat \t <mask>\tsat", "s", "the cats\tsat"),
    ("the cat\t<mask> sat", "\u0120sat", "the cat\tsat sat"),
    ("the cat\u3000<mask>  sat  <mask><mask>", "s", "the cats  satss"),
    ("the cat <mask>", ".", "the cat."),
    ("the cat<mask>", ".", "the cat."),
    ("the cat\x1f<mask>", "s", "the cats"),
    (" <mask>\n <mask> sat", "s", " s\n s sat"),
    ("  <mask> <mask> sat", "s", "  ss sat"),
    (" <mask>\n<mask> <mask>", "\u0120sat", " sat\nsat sat"),
]


@pytest.fixture(params=["tokens", "masked"])
def fill(tmp_path, request):
    """A graph with logits at every token, and one with those of the masks alone."""
    return load(tmp_path, "FillMask", Toy(len(TOKENS)).graph(request.param))


def test_a_mask_is_filled_by_the_most_probable_tokens(fill):
    text = "The [MASK] sat,  [MASK]."
    answer = fill(text, top_k=3)
    encoding = TOKENIZER.analyze(text)
    logits = Toy(len(TOKENS)).tokens(encoding).astype("float64")
    masks = [place for place, token in enumerate(encoding.tokens) if token == "[MASK]"]
    assert len(answer.masks) == len(masks) == 2
    for place, fillers in zip(masks, answer.masks):
        scores = np.exp(logits[place]) / np.exp(logits[place]).sum()
        best = np.argsort(-scores)[:3]
        assert [each.token for each in fillers] == [TOKENS[index] for index in best]
        assert [each.score for each in fillers] == pytest.approx(scores[best], rel=1e-4)
    first, second = (fillers[0].token for fillers in answer.masks)
    assert answer.text == f"The {first} sat,  {second}."


@pytest.mark.parametrize(("text", "expected"), CONTINUED)
def test_what_goes_on_a_word_stands_behind_it(tmp_path, text, expected):
    toy = Toy(len(TOKENS))
    toy.W[:, TOKENIZER.id_of("##s")] = toy.hidden(TOKENIZER.analyze("[MASK]"))[1] * 100
    fill = load(tmp_path, "FillMask", toy.graph("tokens"))
    assert fill(text).text == expected


def roberta(trim_offsets):
    """Byte pairs whose <mask> takes the white space before it, and has it in its place or not."""
    letters = [*sorted(set("acehinrst.,")), "\u0120", "\u010a"]
    merges = [("s", "a"), ("sa", "t"), ("\u0120", "sat")]
    merges += [("c", "a"), ("ca", "t"), ("\u0120", "cat")]
    tokens = [*SPECIAL_TOKENS["roberta"], *letters, *map("".join, merges)]
    tokenizer = byte_pairs({each: place for place, each in enumerate(tokens)}, merges, "roberta")
    content = json.loads(tokenizer.to_json())
    content["post_processor"]["trim_offsets"] = trim_offsets
    return Subwords(json.dumps(content))


@pytest.mark.parametrize("trim_offsets", [False, True])
@pytest.mark.parametrize(("text", "filler", "expected"), SPACED)
def test_a_filler_has_the_space_that_robertas_mask_takes(
    tmp_path, text, filler, expected, trim_offsets
):
    tokenizer = roberta(trim_offsets)
    toy = Toy(len(tokenizer), vocab_size=len(tokenizer))
    toy.W[:, tokenizer.id_of(filler)] = (toy.E + toy.S[0])[tokenizer.id_of("<mask>")] * 100
    settings = {"mask_token": "<mask>"}
    fill = load(tmp_path, "FillMask", toy.graph("tokens"), settings, tokenizer=tokenizer)
    assert fill(text).text == expected


def test_a_list_is_answered_in_its_order(fill):
    texts = ["the [MASK]", "the big dog [MASK] the [MASK] cat", "[MASK]"]
    assert fill(texts, token_budget=7) == [fill(text) for text in texts]
    assert fill([{"text": texts[0]}]) == [fill(texts[0])]


def test_texts_without_a_mask_and_wrong_options_are_refused(fill):
    for given, options, message in (
        ("the cat", {}, r"text must hold a mask; write \[MASK\] for "),
        (["[MASK]", "the cat"], {}, r"texts\[1\] must hold a mask"),
        ([], {"top_k": 0}, "top_k must be .* from 1 to 28; received int 0"),
        ({"texts": "a"}, {}, "text must be a tuple or a dictionary of text"),
        ("the " * 40 + "[MASK]", {"truncate": True}, "text has no mask within the limit of 31 tok"),
    ):
        with pytest.raises(ValueError, match=f"^FillMask: {message}"):
            fill(given, **options)


def test_an_unknown_mask_is_refused(tmp_path):
    with pytest.raises(BundleError, match="settings.mask_token: .* must hold '<mask>'; it does no"):
        graph = Toy(len(TOKENS)).graph("tokens")
        load(tmp_path, "FillMask", graph, {"mask_token": "<mask>"})
    without = word_piece(TOKENS, in_texts=())
    with pytest.raises(BundleError, match=r"must read '\[MASK\]' in texts, .* with masks=True"):
        load(tmp_path / "b", "FillMask", graph, tokenizer=without)

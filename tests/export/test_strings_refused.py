"""Signatures on strings: what they let through, what they refuse, and what a bundle says of it."""

import json
from types import SimpleNamespace

import pytest
import tensorflow as tf

from seqkeras.export.__main__ import main
from seqkeras.export.bundle import ExportOptions
from seqkeras.export.pipelines.record import TextModel
from seqkeras.export.pipelines.strings import text_signatures
from seqkeras.export.signatures import Signature
from seqkeras.export.tensorflow_serving.notes import _exceptions
from seqkeras.models import TaggingHead, WithHeads
from seqkeras.serving.manifest import DecodingDefaults, Limits, TensorSpec, read_manifest
from seqkeras.tokenizers import CharacterTable
from tests.arrays import randomize
from tests.conftest import in_shell
from tests.export.bundles import bundled
from tests.export.test_text_graphs import ADDED, added, pairs, pieces, trimming, wordpieces
from tests.export.text_models import TAGS, in_graphs
from tests.zoo import classify, encoder

LIMITS = Limits(source_length=7, target_length=9)


def made(pipeline, tokenizer, function, settings=None, decoding=None, **specs):
    """The signatures on strings around a function of token ids."""
    inputs = [TensorSpec(name, "int64", ()) for name in ("token_ids", "lengths")]
    outputs = [TensorSpec(name, "float32", shape) for name, shape in specs.items()]
    by_ids = dict.fromkeys(("serving_default", "generate"), Signature(function, inputs, outputs))
    decoding, tokenizers = decoding or DecodingDefaults(), {"text": tokenizer}
    return in_graphs(
        text_signatures(pipeline, TextModel(by_ids, tokenizers, LIMITS, decoding, settings or {}))
    )


def lengths_as_logits(token_ids, lengths):
    return {"logits": tf.cast(tf.stack([lengths, -lengths], axis=1), tf.float32)}


def classes(tokenizer, **settings):
    settings |= {"labels": ["long", "short"]}
    return made("Classify", tokenizer, lengths_as_logits, settings, logits=("batch", 2))


def test_a_tokenizer_without_pairs_has_no_signature_of_them():
    of_pairs = {"pair", "truncate_pair"}
    assert set(classes(wordpieces())) == {"serving_default", "truncate"} | of_pairs
    for settings in ({}, {"pairs": False}):
        signatures = classes(pieces("unigram"), **settings)
        assert set(signatures) == {"serving_default", "truncate"}
        answer = signatures["serving_default"](text=tf.constant(["the cat"]))
        assert answer["label"] == b"long"
    with pytest.raises(ValueError, match="settings.pairs need a tokenizer of pairs; this takes no"):
        classes(pieces("unigram"), pairs=True)


@pytest.mark.long
def test_a_refused_pair_is_named():
    cases = {
        ("the", "\u200b"): "pair: has no token.",
        ("\0\0", "the"): "text: has no token.",
        ("the", "cat " * 9): "text and pair: at most 7 tokens; nothing was truncated.",
        ("the", "a"): "",
        (" ", ""): "text: must not be empty or blank.",
    }
    text, pair = map(tf.constant, zip(*cases, strict=True))
    found = classes(wordpieces())["pair"](text=text, pair=pair)
    assert [error.decode() for error in found["error"]] == [*cases.values()]
    assert [label.decode() for label in found["label"]] == ["", "", "", "long", ""]


def prompts(tokenizer, texts, signature="serving_default", **options):
    """What token ids a language model is asked to go on from, or why it is not asked."""
    asked = []

    def listed(token_ids, lengths):
        asked.extend(row[:size] for row, size in zip(token_ids.tolist(), lengths))
        return token_ids

    def generate(token_ids, lengths):
        token_ids = tf.ensure_shape(
            tf.numpy_function(listed, [token_ids, lengths], tf.int64), token_ids.shape
        )
        scores = tf.zeros(tf.shape(lengths))
        return {"generated_ids": token_ids, "generated_lengths": lengths, "scores": scores}

    decoding = DecodingDefaults(start_id=options.pop("start_id", 0), end_id=3)
    prompt = made("Generate", tokenizer, generate, options, decoding)[signature]
    found = prompt(text=tf.constant(texts))
    return [error.decode() or ids for error, ids in zip(found["error"], asked)]


def test_a_prompt_may_be_empty():
    table = CharacterTable.learn(["ab"])
    assert prompts(table, ["", "b"], start_id=2) == [[2], table.encode("b")]


@pytest.mark.long
def test_a_prompt_without_a_token_is_empty():
    the, space = pairs().encode("the"), pairs().encode(" ")
    assert prompts(pairs(), ["", "the", " "]) == [[0], the, space]
    assert prompts(wordpieces(), ["\u200b"]) == [wordpieces().encode("[CLS]")]


def test_a_prompt_begins_with_the_start_once():
    the = pairs().encode("the")
    texts = ["the", "", "<|endoftext|>the", "x" * 6, "x" * 7]
    *begun, kept, refused = prompts(pairs(), texts, start=True)
    assert begun == [[0, *the], [0], [0, *the]]
    assert len(kept) == 7 and refused == "text: at most 7 tokens; nothing was truncated."


@pytest.mark.long
def test_a_long_prompt_keeps_its_last_tokens_and_its_start():
    texts = ["x" + " the" * 9, "the", "the cat"]
    ids = list(map(pairs().encode, texts))
    assert prompts(pairs(), texts, "truncate") == [row[-7:] for row in ids]
    begun = prompts(pairs(), texts, "truncate", start=True)
    assert begun == [[0, *row[-6:]] for row in ids]
    assert len(begun[0]) == 7 > len(begun[1])


def test_the_notes_list_what_is_refused_and_answered_otherwise(tmp_path):
    tokens = [{"content": "covid", "rstrip": True}]
    tokenizers = {
        "characters": (CharacterTable.learn(["ab"]), []),
        "words": (added(wordpieces(), *tokens), ["U+FDD0", "holds covid"]),
        "pairs": (pairs(), ["U+FDD0", "more than 32 char", "more than 1000 different merges"]),
        "unigrams": (pieces("unigram"), ["two ways to split a text have one score"]),
        "merged": (pieces("bpe"), []),
    }
    for name, (tokenizer, expected) in tokenizers.items():
        tokenizer.to_file(tmp_path / name)
        manifest = SimpleNamespace(tokenizers={"text": name}, pipeline="Classify", settings={})
        lines = [*_exceptions(tmp_path, manifest)]
        assert len(lines) == len(expected), name
        assert all(part in line for part, line in zip(expected, lines)), name
    manifest.settings["multi_label"] = True
    *_, last = _exceptions(tmp_path, manifest)
    assert "`label` is the best label, even where its score is under" in last
    manifest.tokenizers = {"target": "unigrams"}
    assert len([*_exceptions(tmp_path, manifest)]) == 1  # a target is not read


@pytest.mark.parametrize(
    ("pipeline", "settings", "expected"),
    [
        ("Answer", {}, ["`score` is the sum of two logits"]),
        ("Answer", {"no_answer": True}, ["`score` is the sum", "`margin` of `serving` is"]),
        ("Tag", {}, ["Each token of a text has a tag"]),
        ("Generate", {}, ["`finish` of `serving`, is not said"]),
        ("Embed", {}, []),
    ],
)
def test_the_notes_tell_what_a_pipeline_answers_otherwise(tmp_path, pipeline, settings, expected):
    manifest = SimpleNamespace(tokenizers={}, pipeline=pipeline, settings=settings)
    lines = [*_exceptions(tmp_path, manifest)]
    assert len(lines) == len(expected)
    assert all(line.startswith("- ") for line in lines)
    assert all(part in line for part, line in zip(expected, lines))


@pytest.mark.long
def test_strings_may_be_left_out(tmp_path, capsys):
    classify(tmp_path / "run")
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle"), "--no-strings"]) == 0
    assert "SavedModel on strings" not in capsys.readouterr().out
    manifest = read_manifest(tmp_path / "bundle")
    assert set(manifest.saved_models) == {"saved_model/1"}
    assert not [each for each in manifest.parity if "text" in each]
    notes = (tmp_path / "bundle/tensorflow_serving/README.md").read_text()
    assert "No model here takes strings: the export left it out" in notes


@pytest.mark.long
def test_saved_models_may_be_left_out(tmp_path, capsys):
    classify(tmp_path / "run")
    bundle = tmp_path / "bundle"
    command = [str(tmp_path / "run"), str(bundle), "--no-saved-models"]
    assert main([*command, "--sampling"]) == 1
    assert "--n-best and --sampling are signatures of SavedModels" in capsys.readouterr().err
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "  no SavedModel is made or compared (--no-saved-models)\n" in said
    assert "  Keras = ONNX, on real inputs\n" in said
    manifest, card = read_manifest(bundle), (bundle / "README.md").read_text(encoding="utf-8")
    assert not manifest.saved_models and not [each for each in manifest.parity if "saved" in each]
    names = {path.name for path in bundle.iterdir()}
    assert names == {"README.md", "manifest.json", "onnx", "tokenizer"}
    assert "SavedModel" not in card and "TensorFlow Serving" not in card
    assert in_shell(said.splitlines()[-1].removeprefix("next: "), tmp_path)


@pytest.mark.long
def test_a_tokenizer_that_no_graph_can_be_leaves_out_strings(tmp_path, capsys):
    classify(tmp_path / "run")
    [file] = (tmp_path / "run/tokenizer").glob("*")
    unknown = ADDED | {"id": 1, "content": "[UNK]", "single_word": True, "special": True}
    content = json.loads(file.read_text(encoding="utf-8")) | {"added_tokens": [unknown]}
    file.write_text(json.dumps(content), encoding="utf-8")
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 0
    assert set(read_manifest(tmp_path / "bundle").saved_models) == {"saved_model/1"}
    reason = "no added token may be a single_word"
    said = capsys.readouterr().out
    assert f"no SavedModel on strings: WordPiece in a graph: {reason}.\n" in said


@pytest.mark.long
def test_tags_of_roberta_are_those_of_serving(tmp_path):
    tokenizer = trimming("roberta", add_prefix_space=False)
    model = WithHeads(encoder(len(tokenizer)), {"tags": TaggingHead(3)})
    model.build({"token_ids": (None, None)})
    texts, settings = ["the cat aa", " a the ab", "aa  the the"], {"output": "tags", "labels": TAGS}
    options = {"settings": settings, "options": ExportOptions()}
    tag = bundled(tmp_path, randomize(model), "Tag", texts, 24, {"text": tokenizer}, **options)
    parity = tag.manifest.parity
    assert parity["saved_model_text_refused"] == 0
    assert parity["saved_model_text_difference"] < 1e-4

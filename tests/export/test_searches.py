"""The searches of a SavedModel beside the default one: n best results, and sampling by rows."""

import functools
import itertools

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from seqkeras.export import save_run
from seqkeras.export.__main__ import main
from seqkeras.export.families import plan_export
from seqkeras.export.pipelines.record import TextModel
from seqkeras.export.pipelines.strings import text_signatures
from seqkeras.export.signatures import Signature
from seqkeras.models import RNNLanguageModel, Transformer
from seqkeras.serving.manifest import DecodingDefaults, Limits, read_manifest
from seqkeras.tokenizers import CharacterTable, pad
from tests.arrays import built, close
from tests.conftest import others_long
from tests.export.text_models import in_graph

BOTH = {"n_best": 5, "sampling": True}
DEFAULTS = DecodingDefaults(start_id=2, end_id=3)
GREEDY = {"temperature": 1.0, "top_k": 1, "top_p": 1.0, "seed": 0}
FREE = GREEDY | {"top_k": 0}


def language_model(vocab_size):
    return built(RNNLanguageModel(vocab_size, 5, 7))


def save_language_model(folder, characters):
    """A run of that model, with a table of these characters."""
    table = CharacterTable.learn([characters])
    model, examples = language_model(len(table)), [{"input": text} for text in ("ab", "cab", "b")]
    limits, decoding = {"source_length": 7, "target_length": 9}, {"start_id": 2, "end_id": 3}
    save_run(folder, model, "Generate", examples, limits, {"text": table}, decoding=decoding)


def transformer(vocab_size):
    sizes = {"hidden_dim": 12, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 14}
    return built(Transformer(vocab_size, vocab_size, **sizes, max_length=29))


def signatures_of(model, max_length, searches=BOTH):
    plan = plan_export(model, max_length=max_length, decoding=DEFAULTS, **searches)
    return plan.saved_model


def ask(signature, token_ids, lengths, **options):
    dtypes = {spec.name: spec.dtype for spec in signature.inputs}
    given = {"token_ids": token_ids, "lengths": lengths}
    given |= {name: np.full(len(lengths), each) for name, each in options.items()}
    tensors = {name: tf.constant(given[name], dtype) for name, dtype in dtypes.items()}
    return traced(signature.function, tuple(signature.inputs))(**tensors)


@functools.cache
def traced(function, inputs):
    return in_graph(Signature(function, inputs, ()))


@functools.cache
def searches(make, vocab_size):
    """The signatures of a model that every test reads."""
    return signatures_of(make(vocab_size), 9)


MODELS = {
    "Generate": (language_model, [[2, 4, 5], [2, 6, 0]], [3, 2]),
    "Translate": (transformer, [[4, 5, 6], [6, 4, 0]], [3, 2]),
}


@pytest.mark.parametrize("pipeline", MODELS)
def test_other_searches_are_there_if_they_are_asked_for(pipeline):
    model = MODELS[pipeline][0](7)
    assert {"n_best", "sample"} <= set(signatures_of(model, 6))
    plain = signatures_of(model, 6, {})
    assert set(plain) == {"serving_default", "generate"}


def test_the_n_best_of_enough_beams_are_those_of_all_sequences():
    model, prompt, size = language_model(6), [2, 4], 3
    signatures = signatures_of(model, len(prompt) + size, {"n_best": 200})
    every = [
        sequence
        for length in range(1, size + 1)
        for sequence in itertools.product(range(6), repeat=length)
        if 3 not in sequence[:-1] and (sequence[-1] == 3 or length == size)
    ]
    token_ids, lengths = pad([[*prompt, *sequence] for sequence in every])
    found = ask(signatures["serving_default"], token_ids, lengths)["log_probs"].astype("float64")
    scores = [
        sum(steps[at, row[at + 1]] for at in range(len(prompt) - 1, length - 1))
        for steps, row, length in zip(found, token_ids, lengths, strict=True)
    ]
    expected = sorted(zip(scores, every, strict=True), reverse=True)
    found = ask(signatures["n_best"], [prompt], [2])
    assert found["generated_ids"].shape == (1, 200, 5) and len(every) > 150
    best = [score for score, _ in expected[:200]]
    close(found["scores"][0, : len(best)], np.array(best), rtol=1e-4, atol=1e-5)
    for row, (_, sequence) in enumerate(expected[:20]):
        length = found["generated_lengths"][0, row]
        assert found["generated_ids"][0, row, :length].tolist() == [*prompt, *sequence]


@pytest.mark.parametrize("pipeline", others_long(MODELS))
@pytest.mark.parametrize(
    "options", others_long([GREEDY, FREE | {"temperature": 1e-4}, FREE | {"top_p": 1e-6}])
)
def test_the_most_probable_token_alone_is_greedy_search(pipeline, options):
    make, token_ids, lengths = MODELS[pipeline]
    signatures = searches(make, 7)
    greedy = ask(signatures["generate"], token_ids, lengths)
    found = ask(signatures["sample"], token_ids, lengths, **options)
    assert (found["generated_ids"] == greedy["generated_ids"]).all()
    assert (found["generated_lengths"] == greedy["generated_lengths"]).all()


@pytest.mark.parametrize("pipeline", others_long(MODELS))
def test_a_seed_gives_a_row_the_same_result_in_any_batch(pipeline):
    make, token_ids, lengths = MODELS[pipeline]
    sample = searches(make, 7)["sample"]
    alone = ask(sample, token_ids[:1], lengths[:1], **FREE)
    several = np.array(token_ids)[[0, 1, 0, 0]], np.array(lengths)[[0, 1, 0, 0]]
    ids = ask(sample, *several, **FREE | {"seed": [0, 0, 1, 0]})["generated_ids"]
    assert (ids[0] == alone["generated_ids"][0]).all() and (ids[3] == ids[0]).all()
    seeds = {"seed": np.arange(30)}
    many = ask(sample, token_ids[:1] * 30, lengths[:1] * 30, **FREE | seeds)["generated_ids"]
    assert len({tuple(row) for row in many}) > 10


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    others_long([(2.0, 4, 0.9), (1.0, 0, 1.0), (0.5, 0, 1.0), (1.0, 0, 0.7)]),
)
def test_tokens_are_drawn_as_often_as_they_are_probable(temperature, top_k, top_p):
    model, draws = language_model(9), 3000
    signatures = signatures_of(model, 3)
    scored = ask(signatures["serving_default"], [[2, 5]], [2])["log_probs"]
    logits = scored[0, -1].astype("float64") / temperature
    probabilities = np.exp(logits) / np.exp(logits).sum()
    order = np.argsort(-probabilities)
    kept = order[: top_k or None]
    before = np.cumsum(probabilities[kept] / probabilities[kept].sum()) - probabilities[kept]
    kept = kept[before < top_p] if top_p < 1 else kept
    expected = np.zeros(9)
    expected[kept] = probabilities[kept] / probabilities[kept].sum()
    drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": np.arange(draws)}
    found = ask(signatures["sample"], [[2, 5]] * draws, [2] * draws, **drawn)
    tokens = found["generated_ids"][:, 2]
    counts = np.bincount(tokens, minlength=9)
    assert not counts[expected == 0].any()
    some = expected > 0
    assert scipy.stats.chisquare(counts[some], expected[some] * draws).pvalue > 1e-4
    np.testing.assert_allclose(found["scores"], np.log(expected[tokens]), rtol=1e-4, atol=1e-5)


WRONG = {
    ("temperature", 0.0): "temperature: must be above 0 and finite.",
    ("temperature", np.inf): "temperature: must be above 0 and finite.",
    ("temperature", np.nan): "temperature: must be above 0 and finite.",
    ("top_k", -1): "top_k: must be 0, which keeps all, or more.",
    ("top_p", 0.0): "top_p: must be above 0, and at most 1.",
    ("top_p", 1.5): "top_p: must be above 0, and at most 1.",
}


@pytest.mark.long
def test_options_out_of_range_are_refused():
    table = CharacterTable.learn(["abc"])
    by_ids = signatures_of(language_model(len(table)), 9)
    for (name, value), message in WRONG.items():
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            ask(by_ids["sample"], [[2, 4]], [2], **FREE | {name: value})
    limits = Limits(source_length=7, target_length=9)
    by_text = text_signatures("Generate", TextModel(by_ids, {"text": table}, limits, DEFAULTS))[
        "sample"
    ]
    dtypes = {spec.name: spec.dtype for spec in by_text.inputs}
    rows = [FREE, *(FREE | {name: value} for name, value in WRONG)]
    drawn = {name: tf.constant([row[name] for row in rows], dtypes[name]) for name in FREE}
    found = in_graph(by_text)(text=tf.constant(["ab"] * len(rows)), **drawn)
    assert [error.decode() for error in found["error"]] == ["", *WRONG.values()]
    first, *others = found["score"]
    assert first < 0 and not any(others)


def test_texts_are_those_of_the_ids():
    table = CharacterTable.learn(["abcdefghijklmnopqrstuvwxyz"])
    by_ids = signatures_of(language_model(len(table)), 9)
    limits = Limits(source_length=7, target_length=9)
    by_text = text_signatures("Generate", TextModel(by_ids, {"text": table}, limits, DEFAULTS))
    texts = ["ab", "cab"]
    best = in_graph(by_text["n_best"])(text=tf.constant(texts))
    for row, text in enumerate(texts):
        ids = table.encode(text)
        found = ask(by_ids["n_best"], [ids], [len(ids)])
        np.testing.assert_allclose(best["scores"][row], found["scores"][0], rtol=1e-4)
        ends = zip(found["generated_ids"][0], found["generated_lengths"][0], strict=True)
        expected = [table.decode(own[len(ids) : end]) for own, end in ends]
        assert [text.decode() for text in best["texts"][row]] == expected
        assert len(set(expected)) > 1


@pytest.mark.long
def test_a_bundle_has_the_searches_that_were_asked_for(tmp_path, capsys):
    save_language_model(tmp_path / "run", "abc")
    command = [str(tmp_path / "run"), str(tmp_path / "bundle"), "--sampling", "--n-best"]
    assert main([*command, "1"]) == 1
    assert "--n-best must be 2 at least; received 1" in capsys.readouterr().err
    assert main([*command, "3"]) == 0
    for path, signatures in read_manifest(tmp_path / "bundle").saved_models.items():
        assert {"n_best", "sample"} <= set(signatures)
        loaded = tf.saved_model.load(str(tmp_path / "bundle" / path)).signatures
        assert set(loaded) == set(signatures)
        requests = tmp_path / "bundle" / path / "assets.extra/tf_serving_warmup_requests"
        written = b"".join(record.numpy() for record in tf.data.TFRecordDataset(str(requests)))
        assert all(name.encode() in written for name in ("n_best", "sample", "top_k"))

"""The figures of a precision, against counts and sums done by hand."""

import functools

import numpy as np
import pytest

from seqkeras.export import measuring
from seqkeras.export.families import plan_export
from seqkeras.export.measuring import PrecisionError, measure
from seqkeras.export.onnx_files import FLOAT32, graph_file, save_precisions
from seqkeras.export.quantize import quantize
from seqkeras.export.scores import Scores
from seqkeras.export.tolerances import UNLIMITED, Tolerances
from seqkeras.serving.manifest import DecodingDefaults, GraphFile, Limits, Precision, read_manifest
from seqkeras.serving.text import word_piece
from seqkeras.values import BANNED_LOGIT
from tests.arrays import floats
from tests.export.running import run
from tests.export.test_decoders import advance, empty_caches, exported
from tests.export.written import graph
from tests.serving.pipelines.toys import TOKENS
from tests.serving.written import specs as specs_of
from tests.serving.written import write

KERNEL, OTHER = floats(19, 5), floats(19, 5) + 0.5 * floats(19, 5, seed=1)
NONE = Tolerances(score=0, agreement=1, log_prob=0)
FRAMES = [floats(length, 19, seed=length) for length in (3, 7, 5, 2)]
TAGS = {"labels": ["O", "B-a", "I-a", "B-b", "I-b"]}
NUMBERS = np.random.default_rng(0)
SOURCES = ["the cat sat on mat", "big dog ran", "who old paris the new york dog"]
TARGETS = [{"target_ids": np.append(NUMBERS.integers(4, 31, length), 3)} for length in (4, 6, 2)]
TEXTS = [{"token_ids": NUMBERS.integers(4, 31, length)} for length in (5, 3, 7)]


def scorer(kernel):
    """y, logits for each frame."""
    nodes, axes = [("MatMul", ["frames", "kernel"], ["y"], {})], ["batch", "length"]
    inputs, outputs = {"frames": [*axes, 19], "lengths": ["batch"]}, {"y": [*axes, kernel.shape[1]]}
    return {"model": graph(nodes, inputs, outputs, {"kernel": kernel})}


def summer(kernel, name, axes):
    """y, numbers of the frames' sum."""
    nodes = [
        ("ReduceSum", [name, "axis"], ["sum"], {"keepdims": int(len(axes) > 2)}),
        ("MatMul", ["sum", "kernel"], ["y"], {}),
    ]
    weights = {"kernel": kernel, "axis": np.array([1])}
    return {"model": graph(nodes, {name: ["batch", "length", 19]}, {"y": axes}, weights)}


def of_onnx(written):
    """The `TensorSpec`s of what a graph takes and gives."""
    return specs_of(written.model.graph.input), specs_of(written.model.graph.output)


def bundle(folder, pipeline, precisions, specs=None, tokenizers=(), **changes):
    """A bundle of graphs by precision and role, and its manifest."""
    (folder / "onnx").mkdir(parents=True)
    needs = save_precisions(precisions, folder / "onnx")
    described = {
        name: {
            role: GraphFile(
                f"onnx/{graph_file(role, name)}",
                *(specs[role] if specs else of_onnx(written)),
                tuple(f"onnx/{file}" for file in needs[name][role]),
            )
            for role, written in by_role.items()
        }
        for name, by_role in precisions.items()
    }
    graphs = described.pop(FLOAT32)
    others = {name: Precision(each, {}) for name, each in described.items()}
    write(folder, pipeline, graphs, dict(tokenizers), precisions=others, **changes)
    return read_manifest(folder)


def figures_of(folder, pipeline, float32, other, rows=FRAMES, allowed=UNLIMITED, **changes):
    """The figures of other graphs beside float32."""
    manifest = bundle(folder, pipeline, {FLOAT32: float32, "other": other}, **changes)
    return measure(folder, manifest, rows, [], "other", allowed)


def tags(folder, other, tolerances, scores=None):
    """The figures of a tagger of frames."""
    manifest = bundle(folder, "Tag", {FLOAT32: scorer(KERNEL), "other": other}, settings=TAGS)
    return measure(folder, manifest, FRAMES, [], "other", tolerances, scores)


def log_softmax(logits):
    logits = logits.astype("float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def test_rows_of_logits_are_compared_without_their_padding(tmp_path):
    figures = tags(tmp_path, scorer(OTHER), UNLIMITED)
    equal, differences = [], []
    for frames in FRAMES:
        a, b = (log_softmax(frames @ kernel) for kernel in (KERNEL, OTHER))
        equal += list(a.argmax(-1) == b.argmax(-1))
        differences += list(np.abs(a - b).ravel())
    assert 0 < np.mean(equal) < 1
    assert len(equal) == 17
    assert figures["examples"] == 4
    assert figures["agreement"] == np.mean(equal)
    assert figures["largest_log_prob_difference"] == pytest.approx(max(differences), rel=1e-5)
    assert figures["mean_log_prob_difference"] == pytest.approx(np.mean(differences), rel=1e-5)
    assert figures["batching_agreement"] == 1
    assert figures["batching_largest_log_prob_difference"] < 1e-5
    assert figures["speed_batch_1"] > 0
    assert figures["speed_batch_16"] > 0


def test_a_row_is_known_again_beside_one_that_it_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "_speed", lambda *_: 1.0)
    rows = [FRAMES[1], FRAMES[1][:4], FRAMES[1][:4], FRAMES[1][:6]]
    figures = figures_of(tmp_path, "Tag", scorer(KERNEL), scorer(OTHER), rows, settings=TAGS)
    assert figures["batching_largest_log_prob_difference"] < 1e-5
    assert figures["batching_agreement"] == 1


def test_numbers_that_are_no_logits_are_compared_with_their_size(tmp_path):
    graphs = (summer(kernel, "window", ["batch", "steps", 5]) for kernel in (KERNEL, OTHER))
    figures = figures_of(tmp_path, "Forecast", *graphs)
    sums = np.stack([frames.sum(0) for frames in FRAMES])
    squares = np.square(sums @ OTHER - sums @ KERNEL).sum()
    expected = np.sqrt(squares / np.square(sums @ KERNEL).sum())
    assert figures["relative_difference"] == pytest.approx(expected, rel=1e-4)
    assert "agreement" not in figures


def test_of_vectors_the_direction_counts(tmp_path):
    def figures(kernel, place, least):
        graphs = (summer(each, "frames", ["batch", 5]) for each in (KERNEL, kernel))
        allowed = Tolerances(agreement=least)
        return figures_of(tmp_path / place, "Embed", *graphs, allowed=allowed)

    cosines = []
    for frames in FRAMES:
        a, b = (frames.sum(0) @ kernel for kernel in (KERNEL, OTHER))
        cosines.append(np.vdot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))
    found = figures(OTHER, "other", 0)
    assert found["mean_cosine"] == pytest.approx(np.mean(cosines), rel=1e-4)
    assert "relative_difference" not in found
    assert figures(2 * KERNEL, "longer", 0.99)["mean_cosine"] == pytest.approx(1)
    message = r"agreement with float32 on 4 examples is \S+% \(at least: 90%, by --agreement\)"
    with pytest.raises(PrecisionError, match=message):
        figures(-KERNEL, "reversed", 0.9)


ZERO = scorer(np.zeros((19, 5), "float32"))  # whatever it answers


def scored(float32, other):
    """Scores of these answers."""
    names = ("chrF", "exact match")
    by_precision = {"float32": float32, "other": other}
    return Scores(3, lambda name: dict(zip(names, by_precision[name])))


def test_scores_decide_where_they_say_something(tmp_path):
    scores = scored((0.5, 0.25), (0.75, 0.25))
    figures = tags(tmp_path, ZERO, Tolerances(score=0), scores=scores)
    assert figures["scored_examples"] == 3
    assert figures["float32_scores"] == {"chrF": 0.5, "exact match": 0.25}
    assert figures["scores"] == {"chrF": 0.75, "exact match": 0.25}
    assert figures["tolerances"] == {"score": 0, "agreement": 0.99, "log_prob": 0.1}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ((0.375, 0.25), "its chrF on 3 examples is lower than float32's by 0.12"),
        ((0.75, 0.0), "its exact match on 3 examples is lower than float32's by 0.25"),
    ],
)
def test_no_score_may_fall_by_more_than_the_tolerance(other, message, tmp_path):
    message = f"^other: {message} .at most: 0.1, by --tolerance.. Leave it out, or allow more.$"
    with pytest.raises(PrecisionError, match=message):
        scores = scored((0.5, 0.25), other)
        tags(tmp_path, scorer(KERNEL), Tolerances(score=0.1), scores=scores)


@pytest.mark.parametrize(
    "scores",
    [None, scored((0.0, 0.0), (0.0, 0.0)), scored((0.0, -0.5), (0.25, 0.25))],
    ids=["no targets", "0 beside 0", "worse than nothing"],
)
def test_where_no_score_says_anything_agreement_and_log_probabilities_decide(scores, tmp_path):
    def require(graphs, place, **tolerances):
        tags(tmp_path / place, graphs, Tolerances(**tolerances), scores=scores)

    require(scorer(KERNEL), "same", agreement=1, log_prob=1e-6)
    with pytest.raises(PrecisionError, match=r"^other: its agreement with .* \(at least: 99%, by"):
        require(scorer(OTHER), "other", log_prob=99)
    sharper = scorer(3 * KERNEL)  # the same best, with more in them
    require(sharper, "sharper", log_prob=99)
    message = r"^other: its log-probabilities are off by \S+ on average \(at most: 0\.1, by --log-p"
    with pytest.raises(PrecisionError, match=message):
        require(sharper, "sharper by default")
    with pytest.raises(PrecisionError, match="its agreement .*; its log-probabilities "):
        require(scorer(-KERNEL), "reversed")


def test_a_score_of_zero_says_nothing_beside_one_that_is_not(tmp_path):
    figures = tags(tmp_path, ZERO, Tolerances(), scores=scored((0.5, 0.0), (0.5, 0.0)))
    assert figures["agreement"] < 0.99


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_number_is_refused(number, tmp_path):
    broken = scorer(number * np.ones_like(KERNEL))
    with pytest.raises(PrecisionError, match="^other: it gives numbers that are not finite."):
        tags(tmp_path, broken, UNLIMITED)


def test_batches_change_int8_and_the_change_is_told(tmp_path, monkeypatch):
    kernel = floats(19, 19)  # a square product has one scale for all rows
    labels = ["O", *(f"{begin}-{place}" for place in range(9) for begin in "BI")]
    rows = [size * floats(3, 19, seed=size) for size in (1, 30, 3, 10)]
    precisions = {FLOAT32: scorer(kernel), "int8": quantize(scorer(kernel), "int8")}
    manifest = bundle(tmp_path, "Tag", precisions, settings={"labels": labels})
    changed = measure(tmp_path, manifest, rows, [], "int8", UNLIMITED)
    assert changed["batching_largest_log_prob_difference"] > 0.05
    monkeypatch.setattr(measuring, "BATCH", 1)
    alone = measure(tmp_path, manifest, rows, [], "int8", UNLIMITED)
    assert alone["batching_largest_log_prob_difference"] == 0
    assert alone["mean_log_prob_difference"] < changed["mean_log_prob_difference"]


@functools.cache
def whole(name):
    return quantize(exported(name)[1], "int8-embedding")


def along(graphs, state, token_ids):
    """(T, V) log-probabilities behind each token of one text."""
    state = state | empty_caches(graphs["decoder_step"], 1)
    rows = []
    for token in token_ids:
        shape = (1,) * len(graphs["decoder_step"].session().get_inputs()[0].shape)
        outputs, state = advance(
            graphs["decoder_step"], state, np.full(shape, token), np.zeros((1, 1), "int64")
        )
        rows.append(outputs["logits"][0, 0])
    return log_softmax(np.stack(rows))


def largest_difference(pairs):
    return max(np.abs(a - b)[a > BANNED_LOGIT / 2].max() for a, b in pairs)


def words(count):
    """A tokenizer of so many tokens."""
    return word_piece([*TOKENS, *(f"w{place}" for place in range(count - len(TOKENS)))])


def decoders(folder, pipeline, name, other, tokenizers):
    """A bundle of a model that generates."""
    model, graphs = exported(name)
    plan = plan_export(model, max_length=6, decoding=DecodingDefaults())
    specs = {role: (tuple(each.inputs), tuple(each.outputs)) for role, each in plan.graphs.items()}
    return bundle(
        folder,
        pipeline,
        {FLOAT32: graphs, "int8-embedding": other},
        specs,
        tokenizers,
        state=plan.state,
        limits=Limits(11, 6),
    )


def test_a_language_model_is_compared_along_its_texts(tmp_path):
    graphs, made = exported("gpt")[1], whole("gpt")
    texts = ["the cat"] * 3

    def figures(place, other, examples, tolerances):
        folder = tmp_path / place
        manifest = decoders(folder, "Generate", "gpt", other, {"text": words(31)})
        given = texts[: len(examples)]
        return measure(folder, manifest, given, examples, "int8-embedding", tolerances)

    same = figures("same", graphs, TEXTS, NONE)
    assert same["agreement"] == 1
    assert same["largest_log_prob_difference"] == 0
    assert same["batching_largest_log_prob_difference"] < 1e-4
    found = figures("other", made, TEXTS[:1], UNLIMITED)
    a, b = (along(each, {}, TEXTS[0]["token_ids"]) for each in (graphs, made))
    expected = largest_difference([(a, b)])
    assert found["largest_log_prob_difference"] == pytest.approx(expected, rel=1e-3)
    assert found["agreement"] == np.mean(a.argmax(-1) == b.argmax(-1))


@pytest.mark.long
def test_an_encoder_decoder_is_compared_along_targets_and_by_what_it_generates(tmp_path):
    graphs, made = exported("transformer")[1], whole("transformer")
    tokenizers = {"source": words(29), "target": words(31)}
    manifest = decoders(tmp_path, "Translate", "transformer", made, tokenizers)
    sources = [np.array(tokenizers["source"].analyze(text).token_ids) for text in SOURCES]
    answers = [generated(each, sources, tokenizers["target"]) for each in (graphs, made)]
    figures = measure(tmp_path, manifest, SOURCES, TARGETS, "int8-embedding", UNLIMITED)
    assert figures["agreement"] == np.mean([a == b for a, b in zip(*answers)])
    figures = measure(tmp_path, manifest, SOURCES[:1], TARGETS, "int8-embedding", UNLIMITED)
    before = [2, *TARGETS[0]["target_ids"][:-1]]
    pair = [along(each, encoded(each, sources[0]), before) for each in (graphs, made)]
    expected = largest_difference([pair])
    assert figures["largest_log_prob_difference"] == pytest.approx(expected, rel=1e-3)


def generated(graphs, sources, tokenizer):
    """What greedy decoding gives for each source, token by token."""
    answers = []
    for source in sources:
        ids, state = [2], encoded(graphs, source)
        while len(ids) < 7 and ids[-1] != 3:
            ids.append(int(along(graphs, state, ids)[-1].argmax()))
        answers.append(tokenizer.decode([each for each in ids[1:] if each != 3]))
    return answers


def encoded(graphs, source):
    token_ids = source[None]
    return run(
        graphs["encoder"], {"token_ids": token_ids, "lengths": np.array(token_ids.shape[1:])}
    )

"""The reference is the model as its user calls it: no input is exchanged without a word."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import layers, ops

from seqkeras.export import save_run
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.families import plan_export
from seqkeras.export.families.binding import AmbiguousInputs
from seqkeras.export.proof import calls_of
from seqkeras.export.run import read_run
from seqkeras.export.verifying import ParityError
from seqkeras.models import GPT, RNNSeq2Seq
from seqkeras.runs import REFERENCE, Reference, RunError
from seqkeras.serving.manifest import TensorSpec
from seqkeras.serving.text.vocabularies import BOS, EOS
from seqkeras.tokenizers import CharacterTable, pad
from tests.arrays import close, floats, numbers, randomize
from tests.conftest import others_long
from tests.export.bundles import bundled

# Keras's advice where a key is not the name of its Input.
pytestmark = pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict")
STEPS, HORIZON, COUNT = 7, 3, 5
LIMITS = {"source_length": STEPS}
INPUTS = dict.fromkeys(("window", "known"), ("float32", ("batch", STEPS, 2)))
PAST = np.stack([floats(STEPS, 2, seed=n) for n in range(COUNT)])
FUTURE = np.stack([floats(STEPS, 2, seed=n) for n in range(10, 10 + COUNT)])
SERIES = [{"series": past, "known": known} for past, known in zip(PAST, FUTURE, strict=True)]
EXAMPLES = [{"input": value} for value in SERIES]


# Keys and values of each input -> what the model is called with.
STRUCTURES = {
    "dictionary": lambda keys, values: dict(zip(keys, values, strict=True)),
    "list": lambda keys, values: [*values],
    "nested": lambda keys, values: {keys[0]: {"first": values[0]}, "others": [*values[1:]]},
    "list of dictionaries": lambda keys, values: [
        {key: value} for key, value in zip(keys, values, strict=True)
    ],
}


@keras.saving.register_keras_serializable("tests")
class Weighted(keras.Model):
    """Multiplies each input by its place, in whatever it is called with."""

    def __init__(self, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        self.scale = scale
        self.flatten, self.out = layers.Flatten(), layers.Dense(HORIZON)

    def call(self, inputs):
        values = inputs.values() if isinstance(inputs, dict) else inputs
        parts = [(place + self.scale) * value for place, value in enumerate(values)]
        return self.out(self.flatten(sum(parts)))


@keras.saving.register_keras_serializable("tests")
class OfArguments(Weighted):
    def call(self, past, future):
        return super().call([past, future])


@keras.saving.register_keras_serializable("tests")
class OfKeywords(Weighted):
    def call(self, x, *, known, training=False):
        return super().call([x, known])


def functional(kind, keys=(), names=(None, None)):
    """A model of a structure of inputs, which `keys` and the names of its `keras.Input`s make."""
    inputs = [keras.Input((STEPS, 2), name=name) for name in names]
    return randomize(keras.Model(STRUCTURES[kind](keys, inputs), Weighted()(inputs)))


def dictionary(first, second, names=(None, None)):
    return functional("dictionary", (first, second), names)


def built(model, *args, **kwargs):
    model(*args, **kwargs)
    return randomize(model)


def saved(folder, model, **options):
    save_run(folder / "run", model, "Forecast", EXAMPLES, LIMITS, **options)


NESTED = {"series": {"first": PAST}, "others": [FUTURE]}
OURS, THEIRS = {"window": PAST, "known": FUTURE}, {"past": PAST, "future": FUTURE}
BINDING = {"window": "past", "known": "future"}
# Model, how its user calls it, and what save_run is told of its names; random ones are below.
NAMED = [
    (lambda: dictionary("window", "known"), OURS, {"inputs": dict(reversed(INPUTS.items()))}),
    (lambda: functional("list", (), [*OURS]), [PAST, FUTURE], {"inputs": INPUTS}),
    (
        lambda: functional("list", (), ("known", "window")),
        [PAST, FUTURE],
        {"binding": {"window": 0, "known": 1}},
    ),
    (
        lambda: dictionary("past", "future"),
        THEIRS,
        {"binding": {"known": "future"}, "inputs": INPUTS},
    ),
    (
        lambda: functional("nested", ["series"]),
        NESTED,
        {"binding": {"window": ["series", "first"], "known": ["others", 0]}},
    ),
    (
        lambda: built(OfArguments(), PAST, FUTURE),
        lambda model: model(PAST, future=FUTURE),
        {"binding": BINDING, "inputs": INPUTS},
    ),
    (
        lambda: built(OfKeywords(), PAST, known=FUTURE),
        lambda model: model(PAST, known=FUTURE),
        {"inputs": INPUTS},
    ),
]
# Model, and how its user calls it, where no name is one of ours.
UNNAMED = [
    (lambda: dictionary("past", "future", ("known", "window")), THEIRS),
    (lambda: built(OfArguments(), PAST, FUTURE), lambda model: model(PAST, FUTURE)),
]


def called(model, call):
    return numbers(call(model) if callable(call) else model(call))


def answers(folder, model, **options):
    """What a bundle answers to the series, and the figures of its export."""
    forecast = bundled(folder, model, "Forecast", SERIES, STEPS, options=ExportOptions(), **options)
    return np.stack([each.values[:, 0] for each in forecast(SERIES)]), forecast.manifest.parity


@pytest.mark.parametrize("make, call, options", others_long(NAMED))
@pytest.mark.parametrize("with_call", others_long([False, True]))
def test_a_model_whose_names_decide_answers_as_its_user_calls_it(
    make, call, options, with_call, tmp_path
):
    model = make()
    expected = called(model, call)
    options = options | ({"call": call} if with_call else {})
    found, figures = answers(tmp_path, model, **options)
    close(found, expected, rtol=1e-4, atol=1e-5)
    assert figures["call_examples"] == COUNT
    assert max(figures[f"call_{name}"] for name in ("keras", "onnx", "saved_model")) < 1e-5
    card = (tmp_path / "bundle/README.md").read_text(encoding="utf-8")
    assert f"ONNX, from the model as its user calls it, on {COUNT} inputs" in card


@pytest.mark.parametrize("make, call", others_long(UNNAMED))
@pytest.mark.parametrize("order", others_long([1, -1]))
@pytest.mark.parametrize("named", others_long([True, False]))
def test_where_no_name_decides_the_numbers_of_the_call_do(make, call, order, named, tmp_path):
    model = make()
    expected = called(model, call)
    inputs = dict([*INPUTS.items()][::order])
    options = {"inputs": inputs} if named or isinstance(model, Weighted) else {}
    asks = "no name tells which input of .*: give save_run call=|give save_run binding= or call="
    with pytest.raises(RunError, match=asks):
        saved(tmp_path, model, **options)
    assert list(tmp_path.iterdir()) == []
    found, _ = answers(tmp_path, model, **options, call=call)
    close(found, expected, rtol=1e-4, atol=1e-5)


WORDS = ("window", "known", "more", "past", "future")


@st.composite
def own_calls(draw, count):
    """Structure, keys and names of a model's inputs, and the name of ours that each array has."""
    kind = draw(st.sampled_from(["subclass", *STRUCTURES]))
    ours = WORDS[:count]
    of_ours = st.permutations(ours)
    keys = draw(of_ours | st.permutations(WORDS))[:count]
    names = draw(of_ours | st.permutations([*WORDS, None, None, None]))[:count]
    words = {"dictionary": keys, "subclass": keys, "list": names}.get(kind, [])
    said = [word if word in ours else None for word in words] or [None] * count
    rest = iter(draw(st.permutations([name for name in ours if name not in said])))
    meant = [word or next(rest) for word in said]
    return kind, keys, names, meant


def of_any_names(kind, keys, names, meant):
    """Return a model, what its user calls it with, and the arrays by our names."""
    values = [floats(COUNT, STEPS, 2, seed=10 * WORDS.index(name)) for name in meant]
    structure = STRUCTURES.get(kind, STRUCTURES["dictionary"])
    call, arrays = structure(keys, values), dict(zip(meant, values, strict=True))
    own = built(Weighted(), call) if kind == "subclass" else functional(kind, keys, names)
    return own, call, arrays


@pytest.mark.parametrize("most", others_long([8, 400]))
@pytest.mark.parametrize("count", [2, 3])
def test_a_graph_of_any_names_is_called_as_its_user_calls_the_model_or_refused(count, most):
    @settings(max_examples=most)
    @given(own_calls(count), st.permutations(WORDS[:count]))
    def check(own_call, order):
        model, call, arrays = of_any_names(*own_call)
        specs = [TensorSpec(name, *INPUTS["window"]) for name in order]
        try:
            graph = plan_export(model, specs).graphs["model"]
        except AmbiguousInputs:
            return
        close(
            numbers(graph.function(**arrays))["output"], numbers(model(call)), rtol=1e-4, atol=1e-5
        )

    check()


@pytest.mark.parametrize("most", others_long([4, 150]))
def test_a_run_of_any_names_answers_as_its_user_calls_the_model_or_is_refused(most):
    @settings(max_examples=most)
    @given(own_calls(2), st.booleans(), st.booleans())
    def check(own_call, named, with_call):
        model, call, arrays = of_any_names(*own_call)
        series = [
            {"series": past, "known": known}
            for past, known in zip(arrays["window"], arrays["known"], strict=True)
        ]
        examples = [{"input": value} for value in series]
        options = ({"inputs": INPUTS} if named else {}) | ({"call": call} if with_call else {})
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            try:
                save_run(run, model, "Forecast", examples, LIMITS, **options)
            except RunError:
                assert not (named and with_call)
                return
            found = read_run(run)
            outputs = [outputs["output"] for _, outputs in calls_of(found, found.plan())]
        close(np.concatenate(outputs), numbers(model(call)), rtol=1e-4, atol=1e-5)

    check()


def test_weights_that_are_not_those_of_the_call_are_refused_by_export(tmp_path):
    model = dictionary("window", "known")
    saved(tmp_path, model)
    kernel = model.layers[-1].out.kernel
    kernel.assign(2 * kernel)
    model.save(tmp_path / "run/model.keras")
    differs = "keras: output differs by .* of its largest number from the user's call of the model"
    with pytest.raises(ParityError, match=differs):
        export(tmp_path / "run", tmp_path / "bundle")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def heads(policy="float32"):
    """Heads in a dictionary and a list, whose order is not that of their names."""
    frames = keras.Input((STEPS, 2), name="frames")
    x = layers.Dense(5, dtype=policy)(layers.Flatten()(frames))
    outputs = {"z": layers.Dense(2, dtype=policy)(x), "a": [layers.Dense(2, dtype=policy)(x)]}
    return randomize(keras.Model(frames, outputs))


@pytest.mark.long
@pytest.mark.parametrize("output", ["z", "a_0"])
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_each_head_has_its_own_numbers(output, policy, tmp_path):
    model, tolerance = heads(policy), 1e-5 if policy == "float32" else 0.1
    options = {"settings": {"output": output, "normalize": False}, "call": PAST}
    embed = bundled(tmp_path, model, "Embed", [*PAST], STEPS, **options)
    assert embed.manifest.parity["call_onnx"] < tolerance
    expected = model(PAST)
    expected = numbers(expected["z"] if output == "z" else expected["a"][0])
    found = [answer.vector for answer in embed([*PAST])]
    close(np.stack(found), expected.astype("float32"), rtol=tolerance, atol=tolerance)


LONGER = {"source_length": 17, "target_length": 17}


def continued(folder, shift):
    """A run of a language model, its call of prompts, the tokens that follow moved by `shift`."""
    table = CharacterTable.learn(["abc"])
    model = GPT(len(table), 16, 1, 2, 24, 17)
    model.build()
    texts = ["abcab", "cab", "bcaab"]
    token_ids, _ = pad([table.encode(text) for text in texts])
    examples, decoding = [{"input": text} for text in texts], {"start_id": BOS, "end_id": EOS}
    call = {"token_ids": np.where(token_ids > EOS, token_ids + shift, token_ids)}
    tables = {"text": table}
    save_run(folder, model, "Generate", examples, LONGER, tables, decoding=decoding, call=call)


def translated(folder, shift):
    """A run of a translator, its call of sources and targets, the targets moved by `shift`."""
    table = CharacterTable.learn(["abcd"])
    model = RNNSeq2Seq.bahdanau(len(table), len(table), 5, 7, 7)
    model.build()
    pairs = [("ab", "ba"), ("cab", "bac"), ("b", "b")]
    sources, lengths = pad([table.encode(text) for text, _ in pairs])
    targets, _ = pad([[BOS, *table.encode(target)] for _, target in pairs])
    call = {"token_ids": sources, "lengths": lengths}
    call["target_ids"] = np.where(targets > EOS, targets + shift, targets)
    examples = [{"text": text, "target": target} for text, target in pairs]
    tables = {"source": table, "target": table}
    save_run(folder, model, "Translate", examples, LONGER, tables, call=call)


@pytest.mark.long
@pytest.mark.parametrize("save", [continued, translated])
def test_what_generates_has_the_log_probabilities_of_the_call(save, tmp_path):
    save(tmp_path / "run", shift=0)
    figures = export(tmp_path / "run", tmp_path / "bundle").parity
    assert figures["call_examples"] == 3
    assert max(figures[f"call_{name}"] for name in ("keras", "onnx", "saved_model")) < 1e-5
    save(tmp_path / "other", shift=-1)
    with pytest.raises(ParityError, match="log_probs differs by .* from the user's call"):
        export(tmp_path / "other", tmp_path / "no")


def theirs():
    return dictionary("past", "future")


def symmetric():
    past, future = keras.Input((STEPS, 2)), keras.Input((STEPS, 2))
    return keras.Model([past, future], layers.Dense(HORIZON)(layers.Flatten()(past * future)))


# Model, the binding or the call, and what is wrong with it.
WRONG = [
    (theirs, {"binding": {"window": "pst"}}, "binding: the model has no input 'pst'; it has futu"),
    (theirs, {"binding": dict.fromkeys(OURS, "past")}, "binding: window and known are the same in"),
    (theirs, {"binding": {"window": 1.5}}, "binding.window must be a key, the name of an Input, "),
    (theirs, {"binding": ["past"]}, "save_run: binding must be a dictionary, as {'window': 'past'"),
    (
        theirs,
        {"call": THEIRS | {"future": FUTURE[:, :3]}},
        "call must be what the model is called with, or a function of the model that calls it; ",
    ),
    (
        theirs,
        {"call": {name: np.tile(each, (2, 1, 1)) for name, each in THEIRS.items()}},
        "in their order, 5 at most; it has 10 rows",
    ),
    (theirs, {"call": lambda model: 1.0}, r"5 at most; the model answers output \(\)"),
    (
        lambda: dictionary("window", "known"),
        {"call": {name: each[::-1] for name, each in OURS.items()}},
        "output differs by .* from the user's call of the model; call must be of the validation ex",
    ),
    (symmetric, {"call": [PAST, FUTURE]}, "several orders of its inputs give the numbers of call"),
    (
        lambda: built(Weighted(scale=3.0), OURS),  # which is not saved
        {"inputs": INPUTS},
        "and the model must be the same when it is loaded again",
    ),
]


@pytest.mark.parametrize("make, options, message", WRONG)
def test_a_wrong_binding_or_call_is_refused(make, options, message, tmp_path):
    with pytest.raises(RunError, match=message):
        saved(tmp_path, make(), **options)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_alone_asks_for_a_binding():
    model = dictionary("past", "future")
    specs = [TensorSpec(name, *spec) for name, spec in INPUTS.items()]
    with pytest.raises(AmbiguousInputs, match="name them by binding={'window': 'future'") as caught:
        plan_export(model, specs)
    assert len(caught.value.bindings) == 2
    graph = plan_export(model, specs, binding=BINDING).graphs["model"]
    found = numbers(graph.function(window=PAST, known=FUTURE))["output"]
    close(found, numbers(model(THEIRS)), rtol=1e-6, atol=1e-6)
    [past, future] = plan_export(model).graphs["model"].inputs
    assert {past.name, future.name} == {"past", "future"}


def test_forms_that_differ_leave_one_binding():
    window, lengths = keras.Input((None, 3)), keras.Input((), dtype="int64")
    model = keras.Model([lengths, window], [ops.sum(window, axis=1), lengths + 1])
    specs = [
        TensorSpec("window", "float32", ("batch", "length", 3)),
        TensorSpec("lengths", "int64", ("batch",)),
    ]
    found = plan_export(model, specs).own_call
    assert found.paths == {"lengths": (0,), "window": (1,)}


def test_two_outputs_of_one_name_are_refused():
    frames = keras.Input((3,))
    model = keras.Model(frames, {"a": {"b": frames + 1}, "a_b": frames + 2})
    with pytest.raises(ValueError, match="two outputs of the model have the name a_b"):
        plan_export(model)


def test_a_reference_is_read_as_it_was_written(tmp_path):
    model = heads()
    reference = Reference.of_call(tmp_path, model, PAST[:3], COUNT)
    reference.write(tmp_path)
    found = Reference.read(tmp_path)
    assert len(found.examples) == 3
    for place, outputs in enumerate(found.examples):
        close(outputs["z"], numbers(model(PAST)["z"])[place : place + 1], rtol=1e-5, atol=1e-6)
    (tmp_path / REFERENCE).write_bytes(b"no archive")
    with pytest.raises(RunError, match="reference.npz: can not be read: .* Train again"):
        Reference.read(tmp_path)


def test_a_run_without_a_reference_is_beside_its_model_by_names(tmp_path):
    saved(tmp_path, dictionary("window", "known"), check_export=False)
    assert read_run(tmp_path / "run").reference is None
    assert export(tmp_path / "run", tmp_path / "bundle").parity["call_onnx"] < 1e-5

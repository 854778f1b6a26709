"""A user's own model becomes a run, a bundle and an answer, by the commands that a user types."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from seqkeras import serving
from seqkeras.export import feeds, save_run
from seqkeras.export.__main__ import main
from seqkeras.export.families import plan_export
from seqkeras.recurrent import LSTM, Bidirectional
from seqkeras.serving.manifest import TensorSpec, read_manifest
from seqkeras.tokenizers.learn import learn_word_piece
from tests.arrays import randomize
from tests.conftest import CHECKOUT, others_long, run_python
from tests.zoo import TEXTS

LABELS = ["low", "middle", "high"]
TAGS = ["O", "B-THING", "I-THING"]
TOKENIZER = learn_word_piece(TEXTS, 80)
IDS = np.array([[5, 6, 7, 8, 9], [5, 6, 7, 0, 0]])


@keras.saving.register_keras_serializable("tests")
class OwnTagger(keras.Model):
    """By keyword, with lengths."""

    def __init__(self, units=5, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.embedding = layers.Embedding(len(TOKENIZER), 7)
        self.lstm = Bidirectional(LSTM(units, return_sequences=True))
        self.out = layers.Dense(len(TAGS))

    def call(self, token_ids, lengths):
        mask = ops.cumsum(ops.ones_like(token_ids), axis=1) <= lengths[:, None]
        return {"tags": self.out(self.lstm(self.embedding(token_ids), mask=mask))}

    def get_config(self):
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable("tests")
class OwnClassifier(keras.Model):
    """Of a dictionary of one tensor, whose padding Keras's mask leaves out."""

    def __init__(self, mask_zero=True, **kwargs):
        super().__init__(**kwargs)
        self.mask_zero = mask_zero
        self.embedding = layers.Embedding(len(TOKENIZER), 7, mask_zero=mask_zero)
        self.pooling = layers.GlobalAveragePooling1D()
        self.out = layers.Dense(len(LABELS))

    def call(self, inputs):
        return self.out(self.pooling(self.embedding(inputs["token_ids"])))

    def get_config(self):
        return {**super().get_config(), "mask_zero": self.mask_zero}


@keras.saving.register_keras_serializable("tests")
class OwnOfX(OwnClassifier):
    """Of one tensor, by a name of its own; its methods have the names of an encoder-decoder's."""

    def call(self, x):
        return super().call({"token_ids": x})

    def encode(self, x):
        return self.embedding(x)

    def step(self, x):
        return x


def called(model, *inputs):
    model(*inputs)
    return model


def tagger():
    return called(OwnTagger(), IDS, np.array([5, 3]))


def classifier(**options):
    return called(OwnClassifier(**options), {"token_ids": IDS})


def of_x():
    return called(OwnOfX(), IDS)


def functional(name="token_ids"):
    token_ids = keras.Input((None,), dtype="int64", name=name)
    x = layers.Embedding(len(TOKENIZER), 7, mask_zero=True)(token_ids)
    x = layers.Bidirectional(layers.LSTM(5))(x)
    return keras.Model(token_ids, layers.Dense(len(LABELS))(x))


def of_two(words, real):
    token_ids = keras.Input((None,), dtype="int64", name=words)
    mask = keras.Input((None,), dtype="bool", name=real)
    x = layers.Embedding(len(TOKENIZER), 7)(token_ids) * ops.cast(mask, "float32")[..., None]
    return keras.Model([token_ids, mask], layers.Dense(len(LABELS))(ops.sum(x, axis=1)))


def sequential():
    embedding = layers.Embedding(len(TOKENIZER), 7, mask_zero=True)
    return keras.Sequential([keras.Input((None,)), embedding, layers.GRU(5), layers.Dense(3)])


def save(folder, model, pipeline="Classify", **options):
    examples, limits = [{"input": text} for text in TEXTS], {"source_length": 24}
    options = {"settings": {"labels": TAGS if pipeline == "Tag" else LABELS}} | options
    save_run(folder, randomize(model), pipeline, examples, limits, {"text": TOKENIZER}, **options)


def over_steps():
    """The usual tagger of Keras."""
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    x = layers.Embedding(len(TOKENIZER), 7, mask_zero=True)(token_ids)
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)
    return keras.Model(token_ids, layers.TimeDistributed(layers.Dense(len(TAGS)))(x))


MAKERS = [tagger, functional, classifier, of_x, sequential, over_steps]


@pytest.mark.parametrize("make", others_long(MAKERS))
def test_a_model_of_ones_own_is_served_by_two_commands(make, tmp_path, capsys):
    model, tags = make(), make in (tagger, over_steps)
    save(tmp_path / "run", model, "Tag" if tags else "Classify")
    command = [str(tmp_path / "run"), str(tmp_path / "bundle")]
    assert main(command) == 0, capsys.readouterr().err
    manifest = read_manifest(tmp_path / "bundle")
    takes = ["token_ids"] + ["lengths"] * (make is tagger)
    assert [spec.name for spec in manifest.graphs["model"].inputs] == takes
    assert max(v for k, v in manifest.parity.items() if k.endswith("_difference")) <= 1e-4
    answer = serving.load(tmp_path / "bundle")(TEXTS)[0]
    encoding = TOKENIZER.analyze(TEXTS[0])
    ids = np.array([encoding.token_ids])
    if tags:
        logits = model(ids, np.array([len(encoding)]))["tags"] if make is tagger else model(ids)
        best = ops.argmax(logits[0], axis=-1)
        starts = [place[0] if place else None for place in encoding.offsets]
        expected = [TAGS[best[starts.index(word.start)]] for word in answer.words]
        assert [word.tag for word in answer.words] == expected
    else:
        require_scores(answer, model({"token_ids": ids} if make is classifier else ids))


def require_scores(answer, logits):
    expected = ops.convert_to_numpy(ops.softmax(logits))[0]
    assert [answer.scores[label] for label in LABELS] == pytest.approx(expected, abs=1e-5)


FUNCTIONS = """
import keras

@keras.saving.register_keras_serializable("mine")
def twice(x):
    return 2 * x
"""
WITH_LAMBDA = """
import keras, numpy as np
from keras import layers
from seqkeras.export import save_run
from seqkeras.runs import RunError

frames = keras.Input((None, 3), name="frames")
outputs = layers.Dense(2)(layers.LSTM(4)(layers.Lambda(lambda x: 2 * x, name="twice")(frames)))
model = keras.Model(frames, outputs)

def save():
    examples = [{"input": np.ones((length, 3), "float32")} for length in (4, 7)]
    save_run("run", model, "Classify", examples, {"source_length": 9},
             settings={"labels": ["a", "b"]})

try:
    save()
except RunError as error:
    print(error)
import my_functions
model.get_layer("twice").function = my_functions.twice
save()
"""


@pytest.mark.long
def test_a_lambda_becomes_a_bundle_by_what_refusals_say(tmp_path):
    (tmp_path / "my_functions.py").write_text(FUNCTIONS)
    (tmp_path / "wrong.py").write_text("def (")
    exported = ["-m", "export", "run", "bundle"]
    for arguments, said in (
        (["-c", WITH_LAMBDA], "function of the layer twice must be a function that Keras finds"),
        (exported, "name the module of its classes by --import"),
        (
            [*exported, "--import", "wrong"],
            "python -m export: --import wrong: SyntaxError: invalid",
        ),
        ([*exported, "--import", "my_functions"], "bundle: made in"),
        (["-m", "serving", "predict", "bundle", "[[1, 2, 3]]"], ""),
    ):
        finished = run_python(*arguments, cwd=tmp_path, env={"PYTHONPATH": str(CHECKOUT)})
        if finished.returncode == 0:
            assert said in finished.stdout
        else:
            assert said in finished.stderr and finished.stderr.count("\n") == 1


@pytest.mark.long
def test_what_is_said_to_save_run_stands_before_what_is_guessed(tmp_path):
    sequence = ("batch", "length")
    inputs = {"token_ids": ("int64", sequence), "padding_mask": ("bool", sequence)}
    save(tmp_path / "run", of_two("words", "real"), inputs=inputs)
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 0
    manifest = read_manifest(tmp_path / "bundle")
    expected = tuple(TensorSpec(name, *spec) for name, spec in inputs.items())
    assert manifest.graphs["model"].inputs == expected


@keras.saving.register_keras_serializable("tests")
class OwnPositions(keras.Model):
    """Of eleven tokens at most."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(len(TOKENIZER), 7)
        self.positions = layers.Embedding(11, 7)
        self.out = layers.Dense(len(LABELS))

    def call(self, token_ids, padding_mask):
        x = self.embedding(token_ids) + self.positions(ops.arange(ops.shape(token_ids)[1]))
        return self.out(ops.sum(x * ops.cast(padding_mask, x.dtype)[..., None], axis=1))


def positions():
    return called(OwnPositions(), IDS, IDS > 0)


@pytest.mark.parametrize(
    "make, given, inputs",
    [
        (lambda: functional("words"), feeds.TEXTS, {"token_ids": "int64"}),
        (positions, feeds.TEXTS, {"token_ids": "int64", "padding_mask": "bool"}),
        (sequential, None, {"input": "float32"}),
    ],
)
def test_inputs_have_the_names_that_a_pipeline_or_the_model_gives(make, given, inputs):
    [signature] = plan_export(make(), feeds=given).graphs.values()
    shape = ("batch", "length")
    assert signature.inputs == [TensorSpec(*spec, shape) for spec in inputs.items()]


def test_a_dictionary_of_one_tensor_is_what_the_model_is_called_with():
    specs = [TensorSpec("token_ids", "int64", ("batch", "length"))]
    [signature] = plan_export(classifier(), inputs=specs).graphs.values()
    assert signature.function(token_ids=IDS)["output"].shape == (2, 3)


@pytest.mark.parametrize(
    "inputs, message",
    [
        ([TensorSpec("x-y", "int64", ("batch", "length"))], "a name must be one that Python can"),
        ([TensorSpec("class", "int64", ("batch", "length"))], "a name must be one that Python can"),
        ([TensorSpec("ids", "int", ("batch", "length"))], "ids: no such type: 'int'"),
        ([TensorSpec("ids", "int64", "batch")], "ids: a shape must be of sizes and names"),
        (["token_ids"], "each must be a TensorSpec; received 'token_ids'"),
        ("token_ids", "each must be a TensorSpec; received 't'"),
        ([], "inputs: none are named"),
        ([TensorSpec("token_ids", "int64", ("batch",))], "called with token_ids int64 .batch.: "),
        ([TensorSpec("output", "int64", ("batch", "length"))], "must have different names; output"),
    ],
)
def test_inputs_that_a_model_can_not_have_are_refused(inputs, message):
    model = of_x() if "different" in message else classifier()
    with pytest.raises(ValueError, match=message):
        plan_export(model, inputs=inputs)


def test_inputs_whose_open_axes_must_be_alike_share_them():
    a, mask = keras.Input((None, 6), name="a"), keras.Input((None, None), name="mask")
    model = keras.Model([a, mask], layers.MultiHeadAttention(2, 3)(a, a, attention_mask=mask))
    shapes = [spec.shape for spec in plan_export(model).graphs["model"].inputs]
    assert shapes == [("batch", "length", 6), ("batch", "length", "length")]


def test_axes_that_nothing_makes_fit_must_be_named():
    a, b, c = (keras.Input((None, 6), name=name) for name in "abc")
    model = keras.Model([a, b, c], ops.concatenate([a, b], axis=1) + c)  # T + S = U
    with pytest.raises(ValueError, match="axes that are alike by one name: `inputs` of save_run"):
        plan_export(model)

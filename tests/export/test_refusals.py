"""What can not be a bundle is refused with every reason: by `save_run`, and by export before
anything is traced."""

import json
import random
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.export.__main__ import main
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.models import (
    GPT,
    Bert,
    ClassificationHead,
    MultipleChoiceHead,
    RNNSeq2Seq,
    Transformer,
    WithHeads,
)
from seqkeras.runs import RunError
from seqkeras.tokenizers import CharacterTable
from seqkeras.tokenizers.learn import learn_byte_pairs, learn_word_piece
from tests.arrays import floats, randomize
from tests.export.test_own_models import (
    IDS,
    LABELS,
    TOKENIZER,
    OwnClassifier,
    classifier,
    functional,
    of_two,
    positions,
    save,
)
from tests.zoo import LIMIT, TEXTS

WORDS = learn_word_piece(TEXTS, 80)
BYTES = learn_byte_pairs(TEXTS, 300)
TABLE = CharacterTable.learn(TEXTS)
LAST = len(TOKENIZER) - 1
LONG = "a few " * 40


def examples(*inputs):
    return [{"input": each} for each in inputs]


def built(model, inputs=None):
    model.build(inputs)
    return model


def bert(head=None, unknown=0):
    encoder = Bert(len(WORDS) - unknown, 16, 1, 2, 24, max_length=LIMIT)
    return built(WithHeads(encoder, {"head": head}) if head else encoder)


def gpt(**options):
    return built(GPT(len(BYTES), 16, 1, 2, 24, LIMIT, **options))


def classify(folder, **changes):
    given = {
        "model": changes.pop("make", lambda: bert(ClassificationHead(2)))(),
        "pipeline": "Classify",
        "validation": examples(*TEXTS),
        "limits": {"source_length": LIMIT},
        "tokenizers": {"text": WORDS},
        "settings": {"output": "head", "labels": ["low", "high"]},
    }
    save_run(folder, **given | changes)


def choose(folder, **changes):
    value = {"text": TEXTS[0], "choices": ["a model", "a " * 40]}
    given = {"pipeline": "Choose", "validation": examples(value), "settings": {"output": "head"}}
    classify(folder, **given | {"make": lambda: bert(MultipleChoiceHead())} | changes)


def generate(folder, **changes):
    given = {
        "validation": examples(*TEXTS),
        "limits": {"source_length": LIMIT, "target_length": LIMIT},
        "tokenizers": {"text": BYTES},
        "decoding": {"start_id": 0, "end_id": 1},
    }
    save_run(folder, gpt(), "Generate", **given | changes)


def translate(folder, **changes):
    make = changes.pop("make", lambda: RNNSeq2Seq.bahdanau(len(TABLE), len(TABLE), 5, 7, 7))
    given = {
        "validation": [{"text": text, "target": text[:5]} for text in TEXTS],
        "limits": {"source_length": 40, "target_length": 11},
        "tokenizers": {"source": TABLE, "target": TABLE},
    }
    save_run(folder, built(make()), "Translate", **given | changes)


def own(folder, make, **changes):
    save(folder, make(), **changes)


def transformer():
    return Transformer(len(TABLE), len(TABLE), 16, 1, 2, 24, max_length=11)


def pooled(vocab_size=LAST + 1, activation=None, size=3):
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    x = layers.Embedding(vocab_size, 7, mask_zero=True)(token_ids)
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(token_ids, layers.Dense(size, activation)(x))


def of_choices():
    token_ids = keras.Input((None, None), dtype="int64", name="token_ids")  # (B, C, T)
    real = keras.ops.cast(token_ids != 0, "float32")[..., None]
    x = keras.ops.sum(layers.Embedding(len(WORDS), 7)(token_ids) * real, axis=2)
    return keras.Model(token_ids, layers.Softmax()(layers.Dense(1)(x)[..., 0]))


@keras.saving.register_keras_serializable("tests")
class ReadsALength(OwnClassifier):
    """Takes a length for a number."""

    def call(self, token_ids):
        positions = np.ones((64, len(LABELS)), "float32")[: keras.ops.shape(token_ids)[1]]
        return super().call({"token_ids": token_ids}) + positions[0]


def reads_a_length():
    model = ReadsALength()
    model(IDS)
    return model


def of_sixteen():
    token_ids = keras.Input((16,), dtype="int64", name="token_ids")
    x = layers.Flatten()(layers.Embedding(LAST + 1, 3)(token_ids))
    return keras.Model(token_ids, layers.Dense(3)(x))


def of_series(folder, **changes):
    model = keras.Sequential([keras.Input((13, 1)), layers.Flatten(), layers.Dense(7)])
    limits = {"source_length": 17}
    save_run(folder, model, "Forecast", examples(floats(13, 1)), limits, **changes)


def labels(*names, output="head", **more):
    return {"settings": {"output": output, "labels": [*names], **more}}


def limits(source_length, *target_length):
    names = ("source_length", "target_length")
    return {"limits": dict(zip(names, (source_length, *target_length)))}


def probabilities(activation):
    return {"make": lambda: pooled(activation=activation)}


CHOICE = {"validation": examples({"text": "a", "choices": ["small", "said"]}), "settings": {}}
SEVEN = limits(7, 5) | {"tokenizers": {"source": WORDS, "target": WORDS}}
LOW_OR_HIGH = {"validation": [{"input": "small", "target": "middle"}]}
NO_LOGITS = "the model's output holds probabilities, where {} needs logits: leave out the "
ROOM = "limits.target_length must be at most the model's room for tokens, "
# Maker, what is changed, and the message of both.
REFUSED = [
    (classify, labels(*"abc"), "settings.labels names 3 labels; the model's output head has 2 log"),
    (classify, labels(*"ab", output="tail"), "settings.output must be one of head; received 'tail"),
    (classify, labels(*"ab", label=3), "settings.label is unknown"),
    (
        own,
        {"make": lambda: pooled(size=1), "settings": {"labels": ["yes"]}},
        "settings.labels must be two at least, or settings.multi_label true",
    ),
    (classify, {"tokenizers": {}}, "no text tokenizer is named"),
    (classify, {"tokenizers": {"source": WORDS}}, "no text tokenizer is named"),
    (translate, {"tokenizers": {"source": TABLE}}, "no target tokenizer is named"),
    (own, probabilities("softmax"), f"{NO_LOGITS.format('Classify')}softmax"),
    (
        own,
        probabilities("sigmoid"),
        f"{NO_LOGITS.format('Classify')}sigmoid, in training by from_logits=True of the loss; "
        "model.get_layer('dense",
    ),
    (choose, CHOICE | {"make": of_choices}, NO_LOGITS.format("Choose")),
    (
        own,
        {"make": lambda: classifier(mask_zero=False)},
        "the model's output changes with the padding after a text: leave it out",
    ),
    (
        own,
        {"make": lambda: pooled(LAST)},
        f"the model must take every id of its tokenizer, from 0 to {LAST}; it says: Invalid"
        f"ArgumentError: indices[0,0] = {LAST} is not in [0, {LAST}).",
    ),
    (own, {"make": positions}, "the model must take rows of 24 tokens; it says: InvalidArgument"),
    (
        own,
        {"make": reads_a_length},
        "the model must take rows of any size in a graph; it says: TypeError: slice ",
    ),
    (
        own,
        {"make": of_sixteen},
        "Classify feeds token_ids as int64 (batch, length); the model takes int64 (batch, 16)",
    ),
    (
        own,
        {"make": lambda: of_two("words", "real")},
        "Classify can not serve the model: it lacks token_ids; it has an input real, which the "
        "pipeline does not feed",
    ),
    (generate, limits(LIMIT, 90), f"{ROOM}24; received 90"),
    (
        generate,
        limits(LIMIT),
        "limits.target_length must be at least 2, a prompt and what follows;",
    ),
    (translate, limits(40, 50) | {"make": transformer}, f"{ROOM}11; received 50"),
    (of_series, {}, "limits.source_length must be 13, the length of the model's window; received "),
    (
        generate,
        {"decoding": {"start_id": 0, "end_id": 9999}},
        f"decoding.end_id must be an id, from 0 to {len(BYTES) - 1}; received 9999",
    ),
    (
        translate,
        {"decoding": {"num_beams": 99}},
        f"decoding.num_beams must be at most the vocabulary's size, {len(TABLE)}; received 99",
    ),
    (
        translate,
        {"decoding": {"regex": "[a-f]{77}"}},
        "decoding.regex: the shortest text that it allows has 78 tokens with <eos>; limits.target",
    ),
    (
        translate,
        SEVEN | {"make": bert},
        "Translate serves a model of kind 'encoder-decoder'; a Bert is one of kind 'single pass'",
    ),
    (
        classify,
        {"make": lambda: gpt(mask="prefix"), "settings": {}},
        "Classify serves a model of kind 'single pass'; a GPT is one of kind 'language model'",
    ),
    (classify, LOW_OR_HIGH, "validation[0]: target must be one of the labels low, high; received"),
    (translate, {"validation": examples("small")}, "validation[0]: must have text and target"),
    (choose, {}, "validation[0], text has 51 tokens; the limit is 24"),
    (
        generate,
        {"validation": examples(*TEXTS[:4], LONG)},
        "validation[4] has 201 tokens; with 1 new ones the limit is 23",
    ),
]


def refusal(tmp_path, capsys):
    """What export says of a run."""
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    output = capsys.readouterr()
    assert "ONNX graph" not in output.out  # before anything is traced
    assert output.err.startswith("seqkeras export: ") and output.err.count("\n") == 1
    assert "partial" not in output.err and "manifest.json" not in output.err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    return output.err


@pytest.mark.parametrize("make, changes, message", REFUSED, ids=[each[2][:50] for each in REFUSED])
def test_what_can_not_be_a_bundle_is_neither_saved_nor_exported(
    make, changes, message, tmp_path, capsys
):
    with pytest.raises(RunError) as caught:
        make(tmp_path / "run", **changes)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'run'}: ") and text[-1] == "." != text[-2]
    assert message in text and "\n" not in text
    for word in ("partial", ".json", "again"):
        assert word not in text
    assert [*tmp_path.iterdir()] == []
    make(tmp_path / "run", **changes, check_export=False)
    assert message.replace("validation[", "validation.json[") in refusal(tmp_path, capsys)


def edited(folder, make, **fields):
    """A run whose record says something else than `save_run` wrote."""
    make(folder)
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def with_model(folder, model):
    """A run with a model that `save_run` has not seen."""
    classify(folder)
    model.save(folder / "model.keras")


def not_finite(number):
    model = pooled()
    model.layers[1].embeddings.assign(model.layers[1].embeddings + number)
    return model


def with_examples(folder, *inputs):
    classify(folder)
    (folder / "validation.json").write_text(json.dumps(examples(*inputs)))


NEVER = "decoding.end_id must be an id that the model may generate; received 1, and never_"
EDITED = [
    (
        lambda run: edited(run, translate, decoding={"start_id": 2, "end_id": 1}),
        f"run.json: {NEVER}",
    ),
    (
        lambda run: edited(run, classify, **limits(LIMIT + 1, 1)),
        f"run.json: limits.source_length must be at most the model's positions, {LIMIT}; received "
        f"{LIMIT + 1}. Save the run again.",
    ),
    (
        lambda run: edited(run, generate, decoding={}),
        "run.json: decoding.start_id is missing, the id that starts a text; run.json: decoding.end_"
        "id is missing, the id that ends a text",
    ),
    (
        lambda run: edited(run, classify, limits={}, decoding={"beam": 2}, pipeline="Clasify"),
        "run.json: pipeline must be Translate, Generate, Classify, Tag, ",
    ),
    (
        lambda run: edited(run, classify, limits={}, decoding={"beam": 2}),
        "run.json: limits.source_length is missing; decoding.beam",
    ),
    (
        lambda run: edited(run, classify, years=99),
        "run.json: not a run record: years is unknown. Train again.",
    ),
    (
        lambda run: with_model(run, bert(ClassificationHead(2), unknown=30)),
        f"run.json: the text tokenizer must have at most the model's vocab_size, {len(WORDS) - 30},"
        f" tokens; it has {len(WORDS)}",
    ),
    (lambda run: with_model(run, not_finite(np.nan)), "the model's weights are not finite, embed"),
    (lambda run: with_model(run, not_finite(-np.inf)), "the model's weights are not finite, embe"),
    (
        lambda run: with_examples(run, "small", 3, LONG),
        "validation.json[1] must be a string; received int 3; validation.json[2] has ",
    ),
]


@pytest.mark.parametrize("make, message", EDITED, ids=[each[1][:50] for each in EDITED])
def test_a_run_that_was_changed_is_refused_by_export(make, message, tmp_path, capsys):
    make(tmp_path / "run")
    error = refusal(tmp_path, capsys)
    assert error.startswith(f"seqkeras export: {tmp_path / 'run'}") and message in error


def test_an_end_that_is_never_generated_is_not_saved(tmp_path):
    with pytest.raises(RunError, match=f": {NEVER}"):
        translate(tmp_path / "run", decoding={"end_id": 1}, check_export=False)


def test_all_reasons_come_in_one_line(tmp_path, capsys):
    wrong = limits(LIMIT, 90) | {"validation": examples(LONG, "small", *[LONG] * 4)}
    wrong["decoding"] = {"start_id": 0, "end_id": 9999, "num_beams": 999}
    with pytest.raises(RunError) as caught:
        generate(tmp_path / "run", **wrong)
    generate(tmp_path / "run", **wrong, check_export=False)
    for said in (str(caught.value), refusal(tmp_path, capsys)):
        for part in ("target_length", "end_id", "num_beams", r"\[0\] has", r"\[3\] has", "2 more"):
            assert re.search(part, said), part
        assert len(re.findall(r"validation(\.json)?\[0\]", said)) == 1


def drawn_behind(tmp_path, name, check_export):
    """What a script goes on with behind `save_run`: numbers, names of layers, a policy."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(7)
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = classifier()
    save(tmp_path / name, model, check_export=check_export)
    return (
        random.random(),
        np.random.rand(),
        float(keras.random.uniform(())),
        layers.Dense(3).name,
        keras.config.dtype_policy().name,
        [each.dtype_policy.name for each in model.layers],
    )


def test_a_script_goes_on_as_if_nothing_had_been_checked(tmp_path, restored):
    unchecked = drawn_behind(tmp_path, "unchecked", check_export=False)
    assert drawn_behind(tmp_path, "checked", check_export=True) == unchecked


def test_a_model_of_a_strategy_is_checked_outside_of_it(tmp_path):
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        save(tmp_path / "run", functional())
    assert json.loads((tmp_path / "run/run.json").read_text())["pipeline"] == "Classify"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method:UserWarning")
def test_a_quantized_model_passes_as_it_passes_export(tmp_path):
    model = randomize(pooled())
    model.quantize("int8")
    given = examples(*TEXTS), {"source_length": 24}, {"text": TOKENIZER}
    save_run(tmp_path / "run", model, "Classify", *given, settings={"labels": LABELS})
    export(tmp_path / "run", tmp_path / "bundle", options=ExportOptions(saved_models=False))
    assert set(serving.load(tmp_path / "bundle")(TEXTS[0]).scores) == set(LABELS)

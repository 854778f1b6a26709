import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.composites import recurrent
from seqkeras.decoding import best_spans
from seqkeras.losses import span_loss
from seqkeras.models import BiDAF
from seqkeras.values import BANNED_LOGIT
from tests.agreement import DTYPES
from tests.arrays import close, needs_tensorflow, numbers, right_padded
from tests.catalogue import models
from tests.catalogue.case import S
from tests.complex_step import assert_equals_loops
from tests.references.bidaf import bidaf
from tests.seqkeras.models.support import compiled

[CASE] = models.BIDAF
SIZES = {
    "vocab_size": 19,
    "embedding_dim": 13,
    "character_vocab_size": 17,
    "character_dim": 5,
    "character_filters": 11,
    "units": 3,
}


def weights_of(model):
    """The model's weights as the reference names them."""

    def halves(layer):
        return layer.forward_layer.weights, layer.backward_layer.weights

    return {
        "words": model.word_embedding.weights[0],
        "characters": model.character_cnn.weights,
        "highways": [(each.transform.weights, each.gate.weights) for each in model.highways],
        "contextual": halves(model.contextual),
        "similarity": model.attention_flow.weights[0],
        "modelling": [halves(layer) for layer in model.modelling],
        "end_modelling": halves(model.end_modelling),
        "start": model.start_layer.weights,
        "end": model.end_layer.weights,
    }


def real_logits(model, inputs):
    """Zero behind the context's end."""
    real = right_padded(inputs["context_lengths"], S)
    return {name: ops.where(real, each, 0) for name, each in model(inputs).items()}


def expected_logits(model, weights, inputs):
    """Of each row without its padding, and then zeros."""

    def words(side, row):
        length = inputs[f"{side}_lengths"][row]
        return inputs[f"{side}_ids"][row, :length], inputs[f"{side}_characters"][row, :length]

    logits = {"start_logits": [], "end_logits": []}
    for row, length in enumerate(inputs["context_lengths"]):
        found = bidaf(words("context", row), words("query", row), weights)
        for rows, each in zip(logits.values(), found, strict=True):
            rows.append(np.pad(each, (0, S - length)))
    return {name: np.array(rows) for name, rows in logits.items()}


@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_and_gradients_are_the_papers_six_layers(dtype):
    assert_equals_loops(
        CASE.build, dtype, CASE.inputs(), weights_of, expected_logits, call=real_logits
    )


def test_no_answer_lies_behind_the_contexts_end():
    real = right_padded(models.LENGTHS, S)
    for logits in numbers(CASE.build()(CASE.inputs())).values():
        assert np.all(logits[~real] == BANNED_LOGIT)
        assert np.all(logits[real] > BANNED_LOGIT)


@pytest.mark.parametrize("side", ["context", "query"])
def test_an_empty_side_gives_numbers(side):
    model, inputs = CASE.build(), CASE.inputs()
    whole = numbers(model(inputs))
    lengths = np.array(inputs[f"{side}_lengths"])
    lengths[1] = 0
    for name, logits in numbers(model(inputs | {f"{side}_lengths": lengths})).items():
        assert np.all(np.isfinite(logits))
        close(logits[0], whole[name][0])


def test_dropout_drops_in_training_only():
    model, inputs = CASE.build(), CASE.inputs()
    whole = numbers(model(inputs))
    close(whole, numbers(model(inputs, training=False)))
    for name, logits in numbers(model(inputs, training=True)).items():
        assert np.abs(logits - whole[name]).max() > 0.01


@pytest.mark.parametrize("name", [*SIZES, "character_width", "num_modelling_layers"])
def test_a_size_under_one_is_refused(name):
    message = rf"^BiDAF: {name} must be a positive integer; received 0\.$"
    with pytest.raises(ValueError, match=message):
        BiDAF(**SIZES | {name: 0})


def test_a_negative_number_of_highways_is_refused():
    with pytest.raises(ValueError, match=r"^BiDAF: num_highways must be .* 0; received -1\.$"):
        BiDAF(**SIZES, num_highways=-1)


def questions(random, rows, length=13):
    """Contexts of words 7 to 18 in which a word k, 1 to 3, opens a span and word 4 closes it.

    The query is a k; the answer is what lies between. Characters are the words' digits.
    """
    context = random.integers(7, 19, (rows, length))
    query = random.integers(1, 4, (rows, 1))
    answers = np.zeros((rows, 2), int)
    for row in range(rows):
        place = 0
        for kind in random.permutation(3) + 1:
            inside = random.integers(1, 3)
            context[row, place], context[row, place + inside + 1] = kind, 4
            if kind == query[row, 0]:
                answers[row] = place + 1, place + inside
            place += inside + 2
    inputs = {"context_lengths": np.full(rows, length), "query_lengths": np.ones(rows, int)}
    for side, ids in (("context", context), ("query", query)):
        characters = np.stack([ids // 10, ids % 10], axis=-1) + 1
        inputs |= {f"{side}_ids": ids, f"{side}_characters": characters}
    return inputs, answers


@pytest.mark.long
@needs_tensorflow
def test_a_model_learns_to_find_the_span_that_the_query_names_in_unseen_contexts(monkeypatch):
    monkeypatch.setattr(recurrent, "UNROLLED", 17)  # a graph of plain loops is made sooner
    keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    seen, answers = questions(random, 1536)
    unseen, expected = questions(random, 256)
    model = BiDAF(**SIZES | {"units": 16}, num_highways=1, num_modelling_layers=1)
    compiled(model, seen, {"start_logits": span_loss, "end_logits": span_loss}, 0.02)
    targets = {"start_logits": answers[:, 0], "end_logits": answers[:, 1]}
    history = model.fit(seen, targets, batch_size=32, epochs=3, verbose=0).history["loss"]
    assert history[0] > 1 and history[-1] < 0.05
    logits = model(unseen)
    starts, ends, _ = best_spans(logits["start_logits"], logits["end_logits"], max_length=5)
    right = (numbers(starts) == expected[:, 0]) & (numbers(ends) == expected[:, 1])
    assert np.mean(right) > 0.95


def test_a_model_compiled_with_its_loss_is_loaded_with_it(tmp_path):
    model = CASE.build()
    model.compile("adam", {"start_logits": span_loss, "end_logits": span_loss})
    model.optimizer.build(model.trainable_variables)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_compile_config() == model.get_compile_config()
    close(loaded(CASE.inputs()), model(CASE.inputs()))

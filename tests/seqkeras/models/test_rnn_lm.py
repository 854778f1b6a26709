import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.models import RNNLanguageModel
from tests.agreement import DTYPES
from tests.arrays import close, numbers, right_padded
from tests.catalogue import models, options_long
from tests.catalogue.case import B, S
from tests.catalogue.transformer_models import SENTENCES
from tests.complex_step import assert_equals_loops
from tests.conftest import others_long
from tests.references.language_models import rnn_language_model
from tests.refusals import refusals

SIZES = {"vocab_size": 17, "embedding_dim": 7, "units": 11}
NAMED = models.PAST_LANGUAGE + models.LANGUAGE
MODELS = NAMED + models.ANY_CELL_LANGUAGE
named_cells = pytest.mark.parametrize("case", others_long(NAMED, 2), ids=lambda case: case.name)
every_model = pytest.mark.parametrize("case", others_long(MODELS), ids=lambda case: case.name)


def weights_of(model):
    named = {
        "E": model.embedding.embeddings,
        "layers": [layer.weights for layer in model.stack.recurrent_layers],
    }
    if model.output_layer is not None:
        named["output"] = model.output_layer.weights
    if model.projection is not None:
        [named["projection"]] = model.projection.weights
    if model.attention is not None:
        named["attention"] = model.attention.weights
    return named


def expected_logits(model, weights, inputs):
    mask = right_padded(inputs["lengths"], S)
    cell = model.get_config()["cell"]
    past = model.attention and (model.attention.window, model.attention.num_parts)
    return rnn_language_model(inputs["token_ids"], mask, cell, **weights, past=past)


@named_cells
@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_and_gradients_are_the_papers_formula(case, dtype):
    assert_equals_loops(case.build, dtype, case.inputs(), weights_of, expected_logits)


READERS = MODELS + models.BILM + models.FORECASTERS + SENTENCES


@options_long(READERS)
def test_without_lengths_every_step_is_real(case):
    model, inputs = case.built(), {**case.inputs()}
    del inputs["lengths"]
    batch_size, length, *_ = next(iter(inputs.values())).shape
    close(model(inputs), model(inputs | {"lengths": np.full(batch_size, length)}))


def test_tied_weights_add_a_projection_only_where_sizes_differ():
    def shapes(**options):
        model = RNNLanguageModel(**SIZES | options, cell="simple_rnn")
        model(models.LANGUAGE[0].inputs())
        return [weight.shape for weight in model.weights[4:]]

    assert shapes() == [(11, 17), (17,)]
    assert shapes(tie_weights=True) == [(11, 7)]
    assert shapes(tie_weights=True, units=7) == []


@every_model
def test_a_text_read_in_pieces_is_the_text_read_at_once(case):
    model, inputs = case.built(), case.inputs()
    token_ids, lengths = inputs["token_ids"], inputs["lengths"]
    whole, end = model.read(token_ids, lengths)
    first, state = model.read(token_ids[:, :3])
    second, state = model.read(token_ids[:, 3:], lengths - 3, state)
    close(ops.concatenate([first, second], axis=1), whole)
    close(state, end)


@every_model
def test_the_state_is_that_behind_the_last_real_token(case):
    model, inputs = case.built(), case.inputs()
    _, state = model.read(**inputs)
    for row, length in enumerate(inputs["lengths"]):
        _, alone = model.read(inputs["token_ids"][row : row + 1, :length])
        close({name: each[row : row + 1] for name, each in state.items()}, alone)


@every_model
@pytest.mark.parametrize("policy", others_long(["mixed_bfloat16", "float32"]))
def test_the_state_is_what_the_entries_say(case, policy):
    config = case.make().get_config() | {"dtype": policy}
    model = RNNLanguageModel.from_config(config)
    state = model.initial_state(B)
    _, after = model.step(case.inputs()["token_ids"][:, :1], state)
    _, read = model.read(**case.inputs())
    for each in (state, after, read):
        assert list(each) == [entry.name for entry in model.state_entries]
        for entry in model.state_entries:
            assert entry.per == "beam"
            assert each[entry.name].shape == (B, 1, *entry.shape)
            assert keras.backend.standardize_dtype(each[entry.name].dtype) == entry.dtype


def test_dropout_drops_in_training_only_and_never_the_states():
    model = RNNLanguageModel(**SIZES, dropout=0.5)
    inputs = models.LANGUAGE[0].inputs()
    close(model(inputs), model(inputs, training=False))
    assert np.abs(numbers(model(inputs, training=True)) - numbers(model(inputs))).max() > 0.01
    model.embedding.set_weights([np.zeros((17, 7))])  # then there is nothing else to drop
    layer = model.stack.recurrent_layers[0]
    layer.set_weights([weight + 0.1 for weight in layer.get_weights()])
    close(model.read(**inputs, training=True)[1], model.read(**inputs)[1])


test_cells_and_attentions_that_do_not_fit_are_refused = refusals(
    (lambda: RNNLanguageModel(**SIZES, cell="q"), "RNNLanguageModel: cell must be one of ['gru',"),
    (lambda: RNNLanguageModel(**SIZES, attention="hard"), "RNNLanguageModel: attention must be on"),
    (
        lambda: RNNLanguageModel(**SIZES, attention="key_value_predict"),
        "units must be a multiple of 3 with attention 'key_value_predict'; received 11.",
    ),
)

"""Frames in the place of token ids: what an encoder-decoder reads of sound, video or images."""

import numpy as np
import pytest

from tests.arrays import close, floats, numbers, randomize
from tests.catalogue import seq2seq
from tests.catalogue.frames import CASES, FEATURES, SCALING, inputs, recurrent, transformer
from tests.refusals import refusals


def test_frames_that_are_embeddings_are_read_as_their_tokens():
    options = {"dropout": 0.0, "embedding_dim": FEATURES}
    of_tokens = recurrent(source_vocab_size=17, source_features=None, **options)
    of_frames = recurrent(**options)
    tokens = seq2seq.translation_inputs()
    expected = randomize(built(of_tokens, tokens))(tokens)
    table = numbers(of_tokens.source_embedding.embeddings)
    others = [w for w in of_tokens.weights if w is not of_tokens.source_embedding.embeddings]
    built(of_frames, inputs()).set_weights([numbers(weight.value) for weight in others])
    frames = {"frames": table[tokens.pop("token_ids")], **tokens}
    close(of_frames(frames), expected)


def test_frames_that_name_a_token_are_read_as_it():
    options = {"dropout": 0.0, "source_features": None, "source_vocab_size": 17}
    of_tokens = transformer(**options, scale_embeddings=False)
    of_frames = transformer(dropout=0.0, source_features=17, scale_embeddings=False)
    tokens = seq2seq.translation_inputs()
    expected = randomize(built(of_tokens, tokens))(tokens)
    frames = {"frames": np.eye(17)[tokens["token_ids"]], **tokens}
    del frames["token_ids"]
    built(of_frames, frames)
    for layer in ("encoder", "decoder", "target_embedding"):
        getattr(of_frames, layer).set_weights(getattr(of_tokens, layer).get_weights())
    [table] = of_tokens.source_embedding.get_weights()
    of_frames.source_embedding.set_weights([table, np.zeros(table.shape[1])])
    close(of_frames(frames), expected)


@pytest.mark.parametrize("make", [recurrent, transformer])
def test_frames_are_scaled_by_their_means_and_deviations(make):
    scaled, plain = (make(dropout=0.0, source_scaling=given) for given in (SCALING, None))
    given = inputs()
    mean, deviation = map(np.array, SCALING)
    by_hand = (given["frames"] - mean) / deviation
    expected = randomize(built(plain, given))(given | {"frames": by_hand})
    built(scaled, given).set_weights(plain.get_weights())
    close(scaled(given), expected)


def built(model, given):
    model(given)
    return model


def given(case, **changes):
    return lambda: case.built()(case.inputs() | changes)


ONE = "source_vocab_size..., of tokens, or source_features, of frames, must be given"
test_what_are_no_frames_is_refused = refusals(
    *(
        refusal
        for case in CASES
        for refusal in (
            (
                given(case, frames=floats(2, 5, 7)),
                "frames must have shape (batch, length, 5); received",
            ),
            (
                lambda case=case: case.built()(seq2seq.translation_inputs()),
                "inputs must hold ['frames']; received",
            ),
            (
                given(case, lengths=np.array([5, 3, 2])),
                "lengths must have shape (batch), the real steps of e",
            ),
        )
    ),
    *(
        refusal
        for make in (recurrent, transformer)
        for refusal in (
            (lambda make=make: make(source_vocab_size=17), ONE),
            (lambda make=make: make(source_features=None), ONE),
            (
                lambda make=make: make(source_scaling=[[1.0], [1.0]]),
                "must be two lists of source_f",
            ),
            (
                lambda make=make: make(source_scaling=[[0.0] * 5, [1.0] * 4 + [0.0]]),
                "means and deviations over 0; received",
            ),
        )
    ),
)

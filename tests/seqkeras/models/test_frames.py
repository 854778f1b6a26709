"""Frames in the place of token ids: what an encoder-decoder reads of sound, video or images."""

import keras
import numpy as np
import pytest

from seqkeras import decoding
from seqkeras.values import BANNED_LOGIT
from tests.arrays import close, floats, numbers, randomize
from tests.catalogue import seq2seq
from tests.catalogue.frames import CASES, FEATURES, inputs, recurrent, transformer

every_model = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


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


def built(model, given):
    model(given)
    return model


@every_model
def test_step_by_step_is_all_at_once(case):
    model, given = case.built(), case.inputs()
    state, logits = model.encode(given["frames"], given["lengths"]), []
    for tokens in given["target_ids"].T:
        (each, *_), state = model.step(tokens[:, None], state)
        logits.append(numbers(each)[:, 0])
    expected = numbers(model(given))
    expected[..., model.never_generated] = BANNED_LOGIT
    close(np.stack(logits, axis=1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.long
@every_model
def test_frames_are_learned_from(case):
    model, random = case.make(), np.random.default_rng(0)
    targets = random.integers(3, 19, (64, 3))
    table = floats(19, FEATURES)
    given = {"frames": table[targets], "lengths": np.full(64, 3)}
    given["target_ids"] = np.pad(targets, [(0, 0), (1, 0)], constant_values=2)[:, :-1]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    history = model.fit(given, targets, epochs=8, batch_size=16, verbose=0).history["loss"]
    assert history[-1] < 0.9 * history[0]
    state = model.encode(given["frames"], given["lengths"])
    [answers, *_] = decoding.beam(
        model.step, state, num_beams=2, n_best=1, start_id=2, end_id=1, max_length=3
    )
    assert np.mean(numbers(answers)[:, 0] == targets) > 1 / 16  # better than by chance


@every_model
def test_what_are_no_frames_is_refused(case):
    model, given = case.built(), case.inputs()
    with pytest.raises(ValueError, match=r"frames must have shape \(batch, length, 5\); received"):
        model(given | {"frames": floats(2, 5, 7)})
    with pytest.raises(ValueError, match=r"inputs must hold \['frames'\]; received"):
        model({**seq2seq.translation_inputs()})
    with pytest.raises(ValueError, match=r"lengths must have shape \(batch\), the real steps of e"):
        model(given | {"lengths": np.array([5, 3, 2])})


@pytest.mark.parametrize("make", [recurrent, transformer])
def test_a_source_is_tokens_or_frames(make):
    message = "source_vocab_size.*, of tokens, or source_features, of frames, must be given"
    with pytest.raises(ValueError, match=message):
        make(source_vocab_size=17)
    with pytest.raises(ValueError, match=message):
        make(source_features=None)

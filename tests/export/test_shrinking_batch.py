"""Rows of a batch that leave a search in TensorFlow's graph when they are done."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seqkeras.decoding import StateEntry, decode
from seqkeras.decoding.loop import Loop, begun
from seqkeras.export.families import plan_export
from seqkeras.export.generation import shrinking_batch
from seqkeras.export.generation.searches import search_of
from seqkeras.serving.manifest import DecodingDefaults
from tests.arrays import close, floats, numbers
from tests.catalogue import transformer_models

T, V, BEGIN, END = 11, 7, 2, 3
LENGTHS = np.array([2, 9, 1, 5, 11, 3, 2])  # of the answers, more or less
ENTRIES = [StateEntry("position", "beam", (), "int32"), StateEntry("ends", "source", (), "int32")]
TABLE = 2 * floats(T + 1, V, V)
PROMPT = np.array([[4, 5], [6, 0], [5, 4], [4, 0], [0, 0], [6, 6], [0, 0]]), [2, 1, 2, 1, 0, 2, 0]


class Step:
    """A decoder that wants to end each row at a place of its own; counts the rows of its calls."""

    def __init__(self):
        self.rows = []

    def __call__(self, token_ids, state):
        position = state["position"]
        self.rows.append(int(position.shape[0]))
        logits = tf.gather_nd(TABLE, tf.stack([position, token_ids], axis=-1))
        due = position + 1 >= state["ends"][:, None]
        logits += tf.where(tf.range(V) == END, tf.where(due[..., None], 20.0, -20.0), 0.0)
        return (logits,), state | {"position": position + 1}


def options():
    state = {
        "position": tf.zeros([len(LENGTHS), 1], tf.int32),
        "ends": tf.constant(LENGTHS, tf.int32),
    }
    return {"state": state, "start_id": BEGIN, "max_length": T, "state_entries": ENTRIES}


@pytest.mark.parametrize("prompt", [None, PROMPT], ids=["no prompt", "prompts"])
@pytest.mark.parametrize(
    "defaults", [DecodingDefaults(1), DecodingDefaults(3), DecodingDefaults(4, 1.0)]
)
def test_rows_leave_and_the_answers_stay(defaults, prompt):
    search, given = search_of(defaults, T), options() | {"prompt": prompt}
    every, some = Step(), Step()
    expected = numbers(decode(every, given.pop("state"), search, **given))
    given = options() | {"prompt": prompt}
    loop = Loop(search, given.pop("max_length"), prompt=prompt)
    begin = begun(some, given.pop("state"), loop, **given)
    found = numbers(search.results(*shrinking_batch.run(some, loop, *begin)))
    close(found, expected)
    assert len(some.rows) == len(every.rows)
    assert set(every.rows) == {len(LENGTHS)}
    assert some.rows == sorted(some.rows, reverse=True)
    assert some.rows[0] == len(LENGTHS)
    assert some.rows[-1] == 1
    lengths = np.reshape(found[1], (len(LENGTHS), -1)).min(axis=1)
    for place, rows in enumerate(some.rows[1:], start=1):
        assert rows >= np.count_nonzero(lengths > place)
    assert sum(some.rows) < 0.75 * sum(every.rows)


@pytest.mark.parametrize("signature", ["generate", "generate_beam"])
def test_a_cache_has_room_for_an_answer_and_no_more(signature, monkeypatch):
    model = transformer_models.TRANSFORMERS[0].build()
    encode, rooms = model.encode, []

    @functools.wraps(encode)
    def seen(*args, **options):
        state = encode(*args, **options)
        rooms.extend(
            ops.shape(state[entry.name])[1 + entry.shape.index("cache_length") + 1]
            for entry in model.state_entries
            if "cache_length" in entry.shape
        )
        return state

    monkeypatch.setattr(model, "encode", seen)
    parts = plan_export(model, max_length=5, decoding=DecodingDefaults(2))
    parts.saved_model[signature].function(
        token_ids=tf.constant([[5, 7, 6]], tf.int64), lengths=tf.constant([3], tf.int64)
    )
    assert rooms and set(rooms) == {5}

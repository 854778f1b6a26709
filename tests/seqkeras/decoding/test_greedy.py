import numpy as np
from keras import ops

from seqkeras.decoding import greedy
from tests.arrays import numbers

LETTERS = "_^$abcdefghijklmnopqrstuvwxyz"  # padding, begin, end
BEGIN, END = LETTERS.index("^"), LETTERS.index("$")


def spell(words, max_length=13):
    """Greedy decoding of a step that wants to spell each row's word, whatever came before."""
    ids = [[LETTERS.index(letter) for letter in word] for word in words]
    width = max(max_length, *map(len, words))
    wanted = np.array([row + [END] * (width - len(row)) for row in ids], "int32")

    def step(token_ids, state):
        place = ops.take_along_axis(state["wanted"], state["t"], axis=1)  # (B, 1)
        logits = 2.0 * ops.one_hot(place, len(LETTERS))
        return (logits, None), {**state, "t": state["t"] + 1}

    state = {"t": np.zeros((len(words), 1), "int32"), "wanted": wanted}
    return numbers(greedy(step, state, start_id=BEGIN, end_id=END, max_length=max_length))


def read(token_ids):
    return ["".join(LETTERS[each] for each in row) for row in token_ids]


def test_every_row_ends_for_itself():
    token_ids, lengths, _ = spell(["one", "", "three"], max_length=7)
    assert read(token_ids) == ["one$___", "$______", "three$_"]
    assert lengths.tolist() == [4, 1, 6]

import numpy as np
import pytest

from seqkeras.attention import TwoStreamAttention
from tests import references
from tests.arrays import close, floats, numbers, randomize
from tests.complex_step import assert_is_the_formula

ORDER = [[3, 0, 4, 1, 2], [4, 3, 2, 1, 0]]
STREAMS = floats(2, 10, 7)  # h(1..5) and g(1..5)


def masks_of(orders):
    """What is earlier in the order, and for the content stream the position itself."""
    mask = np.zeros((len(orders), 10, 5), bool)
    for row, order in enumerate(orders):
        for place, position in enumerate(order):
            mask[row, position, order[: place + 1]] = True
            mask[row, 5 + position, order[:place]] = True
    return mask


def reference(weights, streams, attention_mask):
    """Yang et al. 2019, section 2.3, a stream at a time."""
    h, g = streams[:, :5], streams[:, 5:]
    of_content, of_query = attention_mask[:, :5], attention_mask[:, 5:]
    attended = [
        references.multi_head_attention(h, h, h, of_content, weights)[0],
        references.multi_head_attention(g, h, h, of_query, weights)[0],
    ]
    return np.concatenate(attended, axis=1)


def make(clip=None):
    return TwoStreamAttention(3, 2, relative_clip=clip)


def built(clip=None):
    layer = make(clip)
    layer(STREAMS)
    return randomize(layer)


def test_both_streams_and_their_gradients_are_the_papers_formula():
    inputs = {"streams": STREAMS, "attention_mask": masks_of(ORDER)}
    assert_is_the_formula(make, inputs, reference)


def distance_reference(weights, streams, attention_mask):
    """Shaw et al. 2018, a query at a time: g(t) stands at t + 1, in the place of h(t + 1)."""
    h, g, attended = streams[:, :5], streams[:, 5:], []
    of_content = references.distance_attention(h, attention_mask[:, :5], weights)
    for t in range(5):
        x = np.concatenate([h, 0 * h[:, :1]], axis=1)
        x = np.concatenate([x[:, : t + 1], g[:, t : t + 1], x[:, t + 2 :]], axis=1)
        mask = np.zeros((len(h), 6, 6), bool)
        mask[:, t + 1, :5] = attention_mask[:, 5 + t]
        attended.append(references.distance_attention(x, mask, weights)[:, t + 1])
    return np.concatenate([of_content, np.stack(attended, axis=1)], axis=1)


def test_with_distances_the_query_stream_stands_a_position_ahead():
    mask = masks_of(ORDER)
    for t in range(4):  # none predicts the token that stands where it is
        mask[:, 5 + t, t + 1] = False
    inputs = {"streams": STREAMS, "attention_mask": mask}
    assert_is_the_formula(lambda: make(clip=2), inputs, distance_reference)


def test_the_weights_are_those_of_the_query_stream():
    layer, mask = built(), masks_of(ORDER)
    h, g = STREAMS[:, :5], STREAMS[:, 5:]
    _, expected = references.multi_head_attention(g, h, h, mask[:, 5:], layer.get_weights())
    close(layer.attention_weights(STREAMS, mask), expected)


@pytest.mark.parametrize("clip", [None, 2])
def test_from_left_to_right_the_query_stream_is_a_position_ahead_with_a_cache_or_without(clip):
    layer = built(clip)
    seen = np.concatenate([np.tri(5, dtype=bool)[None]] * 2, axis=1)
    expected = layer(STREAMS, attention_mask=seen)
    close(layer(STREAMS, causal=True), expected)
    cache, read = [np.zeros((2, 3, 5, 2), "float32")] * 2, 0
    for length in (2, 1, 2):
        places = [*range(read, read + length), *range(5 + read, 5 + read + length)]
        positions = np.full(2, read)
        outputs, cache = layer.extend(STREAMS[:, places], cache, positions)
        close(outputs, numbers(expected)[:, places])
        read += length

import numpy as np
import pytest

from seqkeras.attention import DistanceBias
from seqkeras.composites.cache import extend_cache
from seqkeras.transformer import Decoder, DecoderBlock
from tests.arrays import close, floats, numbers, randomize, right_padded
from tests.conftest import others_long

SIZES = {"hidden_dim": 15, "num_heads": 3, "feed_forward_dim": 11}
DISTANCES = {"no distances": {}, "clip": {"relative_clip": 2}, "bias": {"biased": True}}
B, K, T, S, C, L = 2, 3, 5, 7, 13, 2  # C: places of the cache, L: blocks


def decoder(biased=False, **options):
    bias = DistanceBias(3, 6, 4, bidirectional=False) if biased else None
    layer = Decoder(DecoderBlock(**SIZES, activation="gelu", **options), L, bias)
    sequence = floats(1, 2, 15)
    layer(
        *([sequence] if options.get("cross_attention") is False else [sequence, floats(1, S, 17)])
    )
    return randomize(layer)


@pytest.mark.parametrize("length, positions", [(4, [2, 7]), (1, [0, C])])
def test_entries_are_written_behind_what_each_row_holds_or_left_out(length, positions):
    cache, entries = floats(B, 3, C, 5), floats(B, 3, length, 5, seed=1)
    expected = cache.copy()
    for row, position in enumerate(positions):
        expected[row, :, position : position + length] = entries[row, :, : C - position]
    close(extend_cache(cache, entries, np.array(positions)), expected)


@pytest.mark.parametrize(
    "pre_norm, window", others_long([(False, None), (True, 2), (False, 2), (True, None)], 2)
)
@pytest.mark.parametrize("pieces", others_long([[2, 1, 2], [1] * T, [T]]), ids=str)
@pytest.mark.parametrize("distances", DISTANCES.values(), ids=DISTANCES)
def test_some_tokens_at_a_time_are_all_at_once(pieces, pre_norm, window, distances):
    layer = decoder(pre_norm=pre_norm, attention_window=window, **distances)
    sequence, encoded, mask = floats(B, T, 15), floats(B, S, 17), right_padded([7, 4], S)
    state = layer.initial_cache(B, C) | layer.prepare(encoded)
    outputs, start = [], 0
    for length in pieces:
        piece = sequence[:, None, start : start + length]
        output, weights, state = layer.read(piece, state, mask)
        assert [each.shape for each in weights] == [(B, 3, 1, length, S)] * L
        outputs.append(numbers(output)[:, 0])
        start += length
    close(
        np.concatenate(outputs, axis=1),
        layer(sequence, encoded, encoded_mask=mask),
        rtol=1e-4,
        atol=1e-5,
    )
    np.testing.assert_array_equal(numbers(state["position"]), [[T], [T]])


@pytest.mark.parametrize("window", [None, 2, C])
def test_padded_tokens_leave_no_trace(window):
    layer = decoder(cross_attention=False, attention_window=window)
    sequence, after = floats(B, T, 15), floats(B, 1, 1, 15, seed=1)
    lengths = np.array([[5], [2]])
    _, _, state = layer.read(sequence[:, None], layer.initial_cache(B, C), lengths=lengths)
    output, _, _ = layer.read(after, state)
    for row, length in enumerate(lengths[:, 0]):
        whole = np.concatenate([sequence[row : row + 1, :length], after[row]], axis=1)
        close(output[row, 0], layer(whole)[0, -1:], rtol=1e-4, atol=1e-5)


def test_the_cache_of_a_window_holds_its_tokens_alone():
    layer = decoder(cross_attention=False, attention_window=2)
    state = layer.initial_cache(B, C)
    entries = [name for name in state if name != "position"]
    for length in (1, T, T):  # more than C
        _, _, state = layer.read(floats(B, 1, length, 15), state)
        assert {state[name].shape for name in entries} == {(B, 1, 3, 2, 5)}
    np.testing.assert_array_equal(numbers(state["position"]), [[2 * T + 1]] * B)


def test_a_full_cache_is_refused():
    layer = decoder(cross_attention=False)
    _, _, state = layer.read(floats(B, 1, 4, 15), layer.initial_cache(B, 5))
    message = (
        r"^Decoder: the cache must have room for every token; it has 5 places, and received 2 "
        r"tokens after 4\.$"
    )
    with pytest.raises(ValueError, match=message):
        layer.read(floats(B, 1, 2, 15), state)

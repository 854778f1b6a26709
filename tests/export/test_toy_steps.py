"""What generates in a graph, ONNX's loop and the SavedModel's, on decoders that are tables.

It gives what Hugging Face gives, by the vectors that hold `seqkeras.decoding` and
`seqkeras.serving.decoding` too; and with ties, GNMT's length penalty and prompts of several lengths
what plain loops give.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

from seqkeras.export import saved_model
from seqkeras.export.families import plan_export
from seqkeras.export.generation import one_graph
from seqkeras.serving.manifest import DecodingDefaults
from tests import vectors
from tests.arrays import close, numbers
from tests.conftest import others_long
from tests.export.running import graphs_of, run
from tests.export.table_models import START, EncoderDecoder, LanguageModel
from tests.references import decoding as loops
from tests.seqkeras.decoding.toys import EOS, PLACES

STORED = vectors.load("decoding")
# The vectors' other searches need processors, or stop early: no graph can be asked for these.
SEARCHES = {"never": 3, "greedy": 1, "prompt": 3}
PROMPTS = STORED["prompts"]
LENGTHS = np.array([3, 2, 2, 3, 2, 3, 2])
LONGEST = 9
# The second is of ties: three tokens are as probable as each other, and no others are.
TABLES = {
    "stored": STORED["table"],
    "tied": np.where(STORED["table"].argsort(-1).argsort(-1) < 3, 0, -1e9).astype("f4"),
}
MODELS = {"encoder-decoder": EncoderDecoder, "language model": LanguageModel}
every_model = pytest.mark.parametrize("name", MODELS)
ROADS = ["onnx", "saved model"]


@functools.cache
def model_of(name, table):
    return MODELS[name](TABLES[table])


@functools.cache
def steps_of(name, table):
    """The ONNX graphs that a search is put around, by role."""
    return graphs_of(plan_export(model_of(name, table)).graphs)


def generate(name, road, folder, table, inputs, decoding, max_length):
    """What a graph generates: its outputs by name."""
    model = model_of(name, table)
    parts = plan_export(model, max_length=max_length, decoding=decoding)
    if road == "saved model":
        key = "generate" if decoding.num_beams == 1 else "generate_beam"
        saved_model.write(model, {key: parts.saved_model[key]}, folder / "1")
        function = tf.saved_model.load(str(folder / "1")).signatures[key]
        return numbers(dict(function(**{n: tf.constant(each) for n, each in inputs.items()})))
    encodes = name == "encoder-decoder"
    make = one_graph.encoder_decoder if encodes else one_graph.language_model
    return run(make(steps_of(name, table), parts.graphs, decoding, max_length), inputs)


def compare(found, rows, scores):
    """Hold what was generated against lists of token ids and their scores."""
    assert found["generated_lengths"].tolist() == [len(row) for row in rows]
    for ids, row in zip(found["generated_ids"].tolist(), rows, strict=True):
        assert ids == row + [0] * (len(ids) - len(row))
    close(found["scores"], np.array(scores), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("search", others_long(SEARCHES))
@pytest.mark.parametrize("road", others_long(ROADS))
@pytest.mark.parametrize("name", others_long(MODELS))
def test_searches_are_those_of_hugging_face(name, road, search, tmp_path):
    prompts = PROMPTS[:, : 3 if search == "prompt" else 1]
    expected = STORED[f"beam/{search}/token_ids"][:, 0]
    # A prompt of the one is a source of the other, which it does not repeat.
    if name == "language model":
        expected = np.concatenate([prompts[:, :1], expected], axis=1)
    else:
        expected = expected[:, prompts.shape[1] - 1 :]
    inputs = {"token_ids": prompts, "lengths": np.full(len(prompts), prompts.shape[1])}
    decoding = DecodingDefaults(num_beams=SEARCHES[search], start_id=START, end_id=EOS)
    found = generate(name, road, tmp_path, "stored", inputs, decoding, expected.shape[1])
    rows = [np.trim_zeros(row, "b").tolist() for row in expected]  # its last token is not 0
    assert len({len(row) for row in rows}) > 1
    compare(found, rows, STORED[f"beam/{search}/scores"][:, 0])


def behind(table, *tokens):
    """(V,) logits behind those tokens."""
    return table[functools.reduce(lambda place, token: (7 * place + token) % PLACES, tokens, 0)]


@pytest.mark.parametrize(
    "table, beams, alpha, end_id",
    others_long([("tied", 3, 0.7, EOS), ("tied", 1, 0.0, 8), ("stored", 4, -1.0, -1)]),
    ids=["ties, penalty", "ties, greedy", "no end, negative penalty"],
)
@pytest.mark.parametrize("road", ROADS)
@every_model
def test_searches_are_those_of_plain_loops(name, road, table, beams, alpha, end_id, tmp_path):
    decoding = DecodingDefaults(beams, alpha, START, end_id)
    inputs = {"token_ids": PROMPTS, "lengths": LENGTHS}
    found = generate(name, road, tmp_path, table, inputs, decoding, LONGEST)
    expected = []
    for prompt, length in zip(PROMPTS.tolist(), LENGTHS, strict=True):
        source = prompt[:length]
        if name == "language model":
            first, *rest = source
            given = None, first, end_id, LONGEST - 1, beams, alpha
            best, *_ = loops.beam_search(
                lambda _, prefix: behind(TABLES[table], *prefix), *given, prompt=rest
            )
            expected.append((best[0], [first, *best[1]]))
        else:
            given = source, START, end_id, LONGEST, beams, alpha
            best, *_ = loops.beam_search(
                lambda source, prefix: behind(TABLES[table], *source, *prefix[1:]), *given
            )
            expected.append(best)
    scores, rows = zip(*expected, strict=True)
    compare(found, rows, scores)


def test_what_all_prompts_have_is_read_at_once():
    read = []

    class Counting(LanguageModel):
        def read_beams(self, token_ids, state):
            read.append(token_ids.shape[-1])
            return super().read_beams(token_ids, state)

    model = Counting(STORED["table"])
    decoding = DecodingDefaults(start_id=START, end_id=-1)
    generate = plan_export(model, max_length=7, decoding=decoding).saved_model["generate"].function
    generate(token_ids=tf.constant(PROMPTS), lengths=tf.constant(LENGTHS))
    assert read == [2, 1, 1, 1, 1]  # and no step reads the last of the 7

"""Translation between subwords, by a model that knows one target token for each source token."""

import numpy as np
import pytest
from onnx import TensorProto

from seqkeras import serving
from seqkeras.serving.manifest import DecodingDefaults, Limits, StateEntry
from tests.serving.pipelines.toys import of_bytes, sentence_pieces
from tests.serving.written import model_of, save_graphs, write

CORPUS = ["the cat sat on the mat", "a dog and a cat", "the mat and the log", "führer día"]
LIMIT = 11


SOURCE, TARGET = sentence_pieces(CORPUS), of_bytes()
END, BYTES = 0, 256
# The bytes that each source token stands for: one each, and </s> for the end.
MEANINGS = np.random.default_rng(0).integers(1, BYTES + 1, len(SOURCE))
MEANINGS[SOURCE.id_of("</s>")] = END


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bundle(tmp_path_factory.mktemp("bundles") / "subwords", decoder_step_graph())


def write_bundle(folder, decoder_step):
    models = {"encoder": encoder_graph(), "decoder_step": decoder_step}
    return write(
        folder,
        "Translate",
        save_graphs(folder, models),
        {"source": SOURCE, "target": TARGET},
        limits=Limits(LIMIT, LIMIT),
        decoding=DecodingDefaults(start_id=END, end_id=END),
        state=(StateEntry("position", "beam"), StateEntry("logits_of", "source")),
    )


@pytest.fixture(scope="module")
def translate(folder):
    return serving.load(folder, threads=1)


def encoder_graph():
    """token_ids, lengths -> the logits that each source token stands for, and place 0."""
    table = 9 * np.eye(BYTES + 1, dtype="float32")[MEANINGS]
    return model_of(
        f"""
        encoder (int64[batch,source_length] token_ids, int64[batch] lengths) => (
            float[batch,1,1] position, float[batch,source_length,{BYTES + 1}] logits_of
        ) {{
            logits_of = Gather (table, token_ids)
            numbers = Cast <to = {TensorProto.FLOAT}> (lengths)
            zeros = Mul (numbers, zero)
            position = Unsqueeze (zeros, axes_1_2)
        }}
        """,
        table=table,
        zero=np.float32(0),
    )


def decoder_step_graph():
    """The token that stands at the place; it attends to that place alone."""
    return model_of(
        f"""
        decoder_step (
            int64[batch,beam] token_ids, int64[batch,beam] beam_index, int64 k,
            float[previous_batch,previous_beam,1] position,
            float[batch,source_length,{BYTES + 1}] logits_of
        ) => (
            float[batch,beam,k] candidate_log_probs, int64[batch,beam,k] candidate_ids,
            float[batch,beam,{BYTES + 1}] logits, float[batch,beam,source_length] attention_weights,
            float[batch,beam,1] next_position
        ) {{
            positions = Reshape (position, rows_of_1)
            p = Gather (positions, beam_index)
            next_position = Add (p, one)
            shape = Shape (logits_of)
            source_length = Gather (shape, int_1)
            places = Range (int_0, source_length, int_1)
            places_float = Cast <to = {TensorProto.FLOAT}> (places)
            distance = Sub (next_position, places_float)
            distance_2 = Mul (distance, distance)
            scores = Mul (distance_2, sharpness)
            attention_weights = Softmax <axis = -1> (scores)
            logits = MatMul (attention_weights, logits_of)
            log_probs = LogSoftmax <axis = -1> (logits)
            k_1 = Unsqueeze (k, axis_0)
            candidate_log_probs, candidate_ids = TopK <axis = -1> (log_probs, k_1)
        }}
        """,
        rows_of_1=np.int64([-1, 1]),
        sharpness=np.float32(-99),
    )


def meaning(text):
    """The text of the bytes that a text's tokens stand for."""
    return TARGET.decode(MEANINGS[SOURCE.encode(text)])


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"token_budget": 1}])
def test_subwords_become_subwords(translate, options):
    texts = ["the cat", "a", "the cat sat on", "a dog and"]
    answers = translate(texts, **options)
    assert [each.text for each in answers] == [meaning(text) for text in texts]


def test_alignments_join_the_tokens_of_both_sides(translate):
    answer = translate("the cat", attention=True)
    tokens = SOURCE.analyze("the cat").tokens
    assert answer.source_tokens == tuple(tokens)
    assert answer.source_tokens[0] == "<s>" and answer.source_tokens[-1] == "</s>"
    ids = MEANINGS[SOURCE.encode("the cat")]
    assert answer.target_tokens == tuple(map(TARGET.token_of, ids))
    np.testing.assert_array_equal(answer.attention.argmax(axis=1), 1 + np.arange(len(ids)))
    plain = translate("the cat")
    assert (plain.attention, plain.source_tokens, plain.target_tokens) == (None, (), ())


def test_the_pieces_of_a_stream_are_the_answer(translate):
    for text in ("the cat", "a dog", "cat the log"):
        pieces = list(translate.stream(text))
        assert "".join(pieces) == translate(text, num_beams=1).text
        assert not any(each.endswith("\ufffd") for each in pieces[:-1])


def test_a_text_over_the_limit_is_cut_only_when_asked(translate):
    text, length = "cat " * 20, len(SOURCE.analyze("cat " * 20))
    message = f"^Translate: text has {length} tokens; the limit is {LIMIT}. Nothing was truncated: "
    for ask in (translate, translate.stream):
        with pytest.raises(ValueError, match=message):
            ask(text)
    kept = SOURCE.analyze(text, max_length=LIMIT, truncate=True).token_ids[1:-1]
    assert translate(text, truncate=True).text == TARGET.decode(MEANINGS[kept])


def test_attention_is_refused_of_a_model_that_does_not_attend(folder, tmp_path):
    graph = decoder_step_graph()
    outputs = [each for each in graph.graph.output if each.name != "attention_weights"]
    del graph.graph.output[:]
    graph.graph.output.extend(outputs)
    translate = serving.load(write_bundle(tmp_path / "toy", graph))
    assert translate("the cat").text == meaning("the cat")
    with pytest.raises(ValueError, match="^Translate: attention must be False; this model does"):
        translate("the cat", attention=True)

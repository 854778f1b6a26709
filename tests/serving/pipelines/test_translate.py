"""Translation between subwords, by a model that knows one target token for each source token."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.manifest import DecodingDefaults, Limits
from tests.serving.pipelines.toys import of_bytes, sentence_pieces
from tests.serving.toy_bundle import MEMORY, STATE, decoder_step_graph, encoder_graph
from tests.serving.written import save_graphs, write

CORPUS = ["the cat sat on the mat", "a dog and a cat", "the mat and the log", "führer día"]
LIMIT = 11


SOURCE, TARGET = sentence_pieces(CORPUS), of_bytes()
END, BYTES = 0, 256
# The bytes that each source token stands for: one each, and </s> for the end.
MEANINGS = np.random.default_rng(0).integers(1, BYTES + 1, len(SOURCE))
MEANINGS[SOURCE.id_of("</s>")] = END


DECODER_STEP = decoder_step_graph(
    SimpleNamespace(
        M=9 * np.eye(BYTES + 1, dtype="float32")[MEANINGS],
        E=np.zeros((BYTES + 1, MEMORY), "float32"),
        W=np.zeros((MEMORY, BYTES + 1), "float32"),
    ),
    END,
)


def write_bundle(folder, decoder_step):
    encoder = encoder_graph(SOURCE, "<s>")
    graphs = save_graphs(folder, {"encoder": encoder, "decoder_step": decoder_step})
    tokenizers = {"source": SOURCE, "target": TARGET}
    limits, decoding = Limits(LIMIT, LIMIT), DecodingDefaults(start_id=END, end_id=END)
    fields = {"limits": limits, "decoding": decoding, "state": STATE}
    return write(folder, "Translate", graphs, tokenizers, **fields)


@pytest.fixture(scope="module")
def translate(tmp_path_factory):
    folder = write_bundle(tmp_path_factory.mktemp("bundles") / "subwords", DECODER_STEP)
    return serving.load(folder, threads=1)


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


def test_attention_is_refused_of_a_model_that_does_not_attend(tmp_path):
    graph = copy.deepcopy(DECODER_STEP)
    outputs = [each for each in graph.graph.output if each.name != "attention_weights"]
    del graph.graph.output[:]
    graph.graph.output.extend(outputs)
    translate = serving.load(write_bundle(tmp_path / "toy", graph))
    assert translate("the cat").text == meaning("the cat")
    with pytest.raises(ValueError, match="^Translate: attention must be False; this model does"):
        translate("the cat", attention=True)

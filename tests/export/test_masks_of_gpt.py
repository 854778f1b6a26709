"""A GPT of a prefix, or of any order, from a run to a bundle that answers as Keras does."""

import numpy as np
import pytest

from seqkeras.export.bundle import ExportOptions
from seqkeras.models import GPT, PermutedGPT
from seqkeras.tokenizers.learn import learn_byte_pairs
from tests.arrays import built, numbers
from tests.export.bundles import ONNX_ALONE, bundled
from tests.zoo import LIMIT, TEXTS

TOKENIZER = learn_byte_pairs(TEXTS, 300)
NEW, END = 4, 1
GIVEN = {
    "limits": {"source_length": LIMIT, "target_length": LIMIT},
    "tokenizers": {"text": TOKENIZER},
    "decoding": {"start_id": 0, "end_id": END},
}


def model_of(mask, **options):
    if mask == "permutation":
        return built(PermutedGPT(len(TOKENIZER), 16, 2, 2, 24, LIMIT, **options))
    return built(GPT(len(TOKENIZER), 16, 2, 2, 24, LIMIT, mask=mask, **options))


def continued(model, text):
    """What follows a text, by the whole model at every step."""
    prompt = TOKENIZER.encode(text)
    token_ids = list(prompt)
    for _ in range(NEW):
        inputs = {"token_ids": np.array([token_ids])}
        if model.reads_prefix:
            inputs["prefix_lengths"] = np.array([len(prompt)])
        elif isinstance(model, PermutedGPT):
            inputs["order"] = np.arange(len(token_ids))[None]
        token_ids.append(int(numbers(model(inputs))[0, -1].argmax()))
        if token_ids[-1] == END:
            token_ids.pop()
            break
    return TOKENIZER.decode(token_ids)[len(text) :]


@pytest.mark.long
@pytest.mark.parametrize(
    ("mask", "made", "num_beams"),  # with beams all that a bundle can hold is in it
    [
        ("prefix", {"attention_window": 3}, 2),
        ("prefix", {}, None),
        ("prefix", {"attention_window": 3, "positions": "bias"}, None),
        ("prefix", {"positions": "relative"}, None),
        ("permutation", {}, 1),
        ("permutation", {"positions": "relative"}, None),
        ("permutation", {"positions": "bias"}, None),
        ("causal", {"positions": "bias", "attention_window": 3}, 2),
        ("causal", {"positions": "relative"}, 1),
    ],
    ids=str,
)
def test_a_bundle_goes_on_as_the_whole_model_does(mask, made, num_beams, tmp_path):
    model, options = model_of(mask, **made), ONNX_ALONE
    given = GIVEN | {"decoding": GIVEN["decoding"] | {"num_beams": num_beams or 1}}
    if num_beams:
        options = ExportOptions(attention_heads=True)
    pipeline = bundled(tmp_path, model, "Generate", TEXTS, **given, options=options)
    figures = pipeline.manifest.parity
    names = ["saved_model_log_prob", "saved_model", "onnx_attention"] if num_beams else []
    names += ["saved_model_beam", "onnx_beam"] if num_beams == 2 else []
    for name in ("onnx_log_prob", *names):
        assert figures[f"{name}_difference"] <= 1e-4
    assert figures.get("saved_model_text_refused", 0) == 0
    greedy = {"num_beams": 1, "max_new_tokens": NEW}
    for text, answer in zip(TEXTS, pipeline(TEXTS, **greedy), strict=True):
        assert answer.text == continued(model, text)
        assert "".join(pipeline.stream(text, max_new_tokens=NEW)) == answer.text
        drawn = pipeline(text, **greedy, sample=True, n_best=3, seed=1)
        among = pipeline([text, "A", text], **greedy, sample=True, n_best=3, seed=1)
        assert among[0] == among[2] == drawn
        assert len({drawn.text, *(each.text for each in drawn.alternatives)}) > 1


def test_one_graph_does_not_generate_behind_a_prefix(tmp_path):
    message = "a GPT with mask 'prefix' reads each whole; leave out --generate-in-graph"
    options = ExportOptions(generate_in_graph=True)
    with pytest.raises(ValueError, match=message):
        bundled(tmp_path, model_of("prefix"), "Generate", TEXTS, **GIVEN, options=options)

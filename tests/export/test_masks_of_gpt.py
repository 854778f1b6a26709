"""A GPT of a prefix, or of any order, from a run to a bundle that answers as Keras does."""

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.models import GPT
from seqkeras.serving.manifest import DecodingDefaults, Limits
from seqkeras.tokenizers.learn import learn_byte_pairs
from tests.arrays import numbers, randomize
from tests.conftest import others_long
from tests.serving.exported import write_bundle
from tests.zoo import LIMIT, TEXTS

TOKENIZER = learn_byte_pairs(TEXTS, 300)
NEW, END = 4, 1


def model_of(mask, **options):
    model = GPT(len(TOKENIZER), 16, 2, 2, 24, LIMIT, mask=mask, **options)
    model.build()
    return randomize(model)


def continued(model, text):
    """What follows a text, by the whole model at every step."""
    prompt = TOKENIZER.encode(text)
    token_ids = list(prompt)
    for _ in range(NEW):
        inputs = {"token_ids": np.array([token_ids])}
        if model.reads_prefix:
            inputs["prefix_lengths"] = np.array([len(prompt)])
        else:
            inputs["order"] = np.arange(len(token_ids))[None]
        token_ids.append(int(numbers(model(inputs))[0, -1].argmax()))
        if token_ids[-1] == END:
            token_ids.pop()
            break
    return TOKENIZER.decode(token_ids)[len(text) :]


@pytest.mark.parametrize(
    ("mask", "window"),
    others_long([("prefix", 3), ("prefix", None), ("permutation", None)]),
    ids=str,
)
def test_a_bundle_goes_on_as_the_whole_model_does(mask, window, tmp_path):
    model = model_of(mask, attention_window=window)
    folder = write_bundle(
        tmp_path / "bundle",
        model,
        "Generate",
        {"text": TOKENIZER},
        limits=Limits(LIMIT, LIMIT),
        decoding=DecodingDefaults(start_id=0, end_id=END),
        settings={"prefix": True} if mask == "prefix" else {},
    )
    pipeline = serving.load(folder, threads=1)
    answers = pipeline(TEXTS, max_new_tokens=NEW)
    for text, answer in zip(TEXTS, answers, strict=True):
        assert answer.text == continued(model, text)
        assert "".join(pipeline.stream(text, max_new_tokens=NEW)) == answer.text
        drawn = pipeline(text, max_new_tokens=NEW, sample=True, n_best=3, seed=1)
        among = pipeline([text, "A", text], max_new_tokens=NEW, sample=True, n_best=3, seed=1)
        assert among[0] == among[2] == drawn
        assert len({drawn.text, *(each.text for each in drawn.alternatives)}) > 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("mask", "window", "num_beams"), [("prefix", 3, 2), ("permutation", None, 1)], ids=str
)
def test_all_that_a_bundle_holds_is_held_against_keras(mask, window, num_beams, tmp_path):
    model = model_of(mask, attention_window=window)
    save_run(
        tmp_path / "run",
        model,
        "Generate",
        [{"input": text} for text in TEXTS],
        {"source_length": LIMIT, "target_length": LIMIT},
        {"text": TOKENIZER},
        decoding={"start_id": 0, "end_id": END, "num_beams": num_beams},
    )
    manifest = export(
        tmp_path / "run", tmp_path / "bundle", options=ExportOptions(attention_heads=True)
    )
    names = ["onnx_log_prob", "saved_model_log_prob", "saved_model", "onnx_attention"]
    for name in [*names, *["saved_model_beam", "onnx_beam"] * (num_beams > 1)]:
        assert manifest.parity[f"{name}_difference"] <= 1e-4
    assert manifest.parity["saved_model_text_refused"] == 0
    pipeline = serving.load(tmp_path / "bundle")
    for text, answer in zip(TEXTS, pipeline(TEXTS, num_beams=1, max_new_tokens=NEW), strict=True):
        assert answer.text == continued(model, text)


def test_one_graph_does_not_generate_behind_a_prefix(tmp_path):
    limits = {"source_length": LIMIT, "target_length": LIMIT}
    decoding = {"start_id": 0, "end_id": END}
    examples = [{"input": text} for text in TEXTS]
    model, tokenizers = model_of("prefix"), {"text": TOKENIZER}
    save_run(tmp_path / "run", model, "Generate", examples, limits, tokenizers, decoding=decoding)
    message = "a GPT with mask 'prefix' reads each whole; leave out --generate-in-graph"
    with pytest.raises(ValueError, match=message):
        export(tmp_path / "run", tmp_path / "bundle", options=ExportOptions(generate_in_graph=True))

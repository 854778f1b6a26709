"""Frames, as of sound, video or images: trained, exported, answered, and never tokenized."""

import json

import keras
import numpy as np
import pytest
from keras import layers, ops

from seqkeras.export.bundle import ExportOptions
from seqkeras.export.tensorflow_serving.batching import have_lengths
from seqkeras.models import RNNSeq2Seq
from seqkeras.recurrent import LSTM, Bidirectional
from seqkeras.serving.__main__ import main as command_line
from seqkeras.serving.manifest import SignatureSpec, TensorSpec
from seqkeras.tokenizers import BOS, CharacterTable, pad
from tests.arrays import floats, numbers
from tests.export.bundles import bundled

LABELS, TAGS, FEATURES = ["low", "middle", "high"], ["O", "B-X", "I-X"], 5
LENGTHS = (11, 3, 7, 11)
FRAMES = [floats(length, FEATURES, seed=n) for n, length in enumerate(LENGTHS)]


def batch():
    frames = np.zeros((len(LENGTHS), max(LENGTHS), FEATURES), "float32")
    for row, each in zip(frames, FRAMES, strict=True):
        row[: len(each)] = each
    return {"frames": frames, "lengths": np.array(LENGTHS)}


def fitted(model, inputs, targets):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, run_eagerly=True)
    model.fit(inputs, targets, verbose=0)
    return model


def classifier():
    """Of Keras's layers, with a mask."""
    frames = keras.Input((None, FEATURES), name="frames")
    mask = keras.Input((None,), dtype="bool", name="padding_mask")
    outputs = layers.Dense(len(LABELS))(layers.GRU(7)(frames, mask=mask))
    model = keras.Model({"frames": frames, "padding_mask": mask}, outputs)
    inputs = batch()
    real = np.arange(max(LENGTHS)) < inputs.pop("lengths")[:, None]
    return fitted(model, inputs | {"padding_mask": real}, np.array([0, 1, 2, 0]))


def tagger():
    """Of our layers, with lengths."""
    frames = keras.Input((None, FEATURES), name="frames")
    lengths = keras.Input((), dtype="int64", name="lengths")
    steps = ops.cumsum(ops.ones_like(frames[..., 0]), axis=1)
    mask = steps <= ops.cast(lengths, "float32")[:, None]
    hidden = Bidirectional(LSTM(7, return_sequences=True))(frames, mask=mask)
    model = keras.Model({"frames": frames, "lengths": lengths}, layers.Dense(len(TAGS))(hidden))
    return fitted(model, batch(), np.zeros((len(LENGTHS), max(LENGTHS))))


def reader():
    """Without a word of padding."""
    frames = keras.Input((None, FEATURES))
    return keras.Model(frames, layers.Dense(3)(layers.SimpleRNN(7)(frames)))


def images():
    image = keras.Input((7, 5, 3))
    x = layers.GlobalMaxPooling2D()(layers.Conv2D(5, 3)(image))
    return keras.Model(image, layers.Dense(3)(x))


def vectors():
    return keras.Sequential([keras.Input((FEATURES,)), layers.Dense(3)])


def answering(folder, model, pipeline, inputs=FRAMES, **settings):
    limit, given = model.inputs[0].shape[1] or 17, {"settings": settings}
    answer = bundled(folder, model, pipeline, inputs, limit, options=ExportOptions(), **given)
    parity = answer.manifest.parity
    differences = [v for name, v in parity.items() if name.endswith("_difference")]
    assert len(differences) == 2 and max(differences) <= 1e-4  # ONNX and SavedModel
    return answer


def test_frames_of_many_lengths_are_classified(tmp_path, capsys):
    model = classifier()
    classify = answering(tmp_path, model, "Classify", labels=LABELS)
    for frames, answer in zip(FRAMES, classify(FRAMES), strict=True):
        logits = model({"frames": frames[None], "padding_mask": np.ones((1, len(frames)), bool)})
        expected = dict(zip(LABELS, numbers(ops.softmax(logits))[0]))
        assert answer.scores == pytest.approx(expected, abs=1e-5)
    assert classify(tuple(FRAMES[0].tolist())).scores == classify(FRAMES[0]).scores
    with pytest.raises(ValueError, match=r"^Classify: frames\[1\] has 18 frames; the limit is 17"):
        classify([FRAMES[0], floats(18, FEATURES)])
    with pytest.raises(ValueError, match=r"frames must have shape \(length, 5\); received \(4, 11"):
        classify(batch()["frames"])

    np.save(tmp_path / "one.npy", FRAMES[1])
    np.savez(tmp_path / "more.npz", FRAMES[0], FRAMES[2])
    files = [str(tmp_path / name) for name in ("one.npy", "more.npz")]
    given = [*files, json.dumps(FRAMES[3].tolist())]
    assert command_line(["predict", str(tmp_path / "bundle"), *given, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = [classify(FRAMES[place]) for place in (1, 0, 2, 3)]
    assert [each["labels"] for each in lines] == [[*each.labels] for each in expected]
    np.testing.assert_allclose(lines[0]["input"], FRAMES[1], rtol=1e-5)
    (tmp_path / "text.npy").write_text("no array")
    assert command_line(["predict", str(tmp_path / "bundle"), str(tmp_path / "text.npy")]) == 1
    assert "text.npy: must be of numbers that NumPy saved: " in capsys.readouterr().err


@pytest.mark.long
def test_every_frame_has_a_tag(tmp_path, capsys):
    model = tagger()
    tag = answering(tmp_path, model, "Tag", labels=TAGS)
    for frames, answer in zip(FRAMES, tag(FRAMES), strict=True):
        logits = model({"frames": frames[None], "lengths": np.array([len(frames)])})
        tags = [TAGS[each] for each in numbers(logits)[0].argmax(-1)]
        assert [word.tag for word in answer.words] == tags
        places = [(place, place + 1) for place in range(len(frames))]
        assert [(word.start, word.end) for word in answer.words] == places
    assert command_line(["predict", str(tmp_path / "bundle"), json.dumps(FRAMES[1].tolist())]) == 0
    assert capsys.readouterr().out.split() == [word.tag for word in tag(FRAMES[1]).words]


def test_a_server_batches_no_frames_whose_number_a_model_is_not_told():
    frames = TensorSpec("frames", "float32", ("batch", "length", 5))
    lengths = TensorSpec("lengths", "int64", ("batch",))
    image = TensorSpec("frames", "float32", ("batch", 7, 5, 3))
    assert not have_lengths([SignatureSpec((frames,), ())])
    assert have_lengths([SignatureSpec((frames, lengths), ()), SignatureSpec((image,), ())])


@pytest.mark.long
@pytest.mark.parametrize("make, shape", [(reader, None), (images, (7, 5, 3)), (vectors, (5,))])
def test_arrays_that_no_model_pads_are_answered(make, shape, tmp_path):
    model = make()
    inputs = [floats(*shape, seed=n) for n in range(3)] if shape else FRAMES
    embed = answering(tmp_path, model, "Embed", inputs, normalize=False)
    for each, answer in zip(inputs, embed(inputs), strict=True):
        np.testing.assert_allclose(answer.vector, numbers(model(each[None]))[0], rtol=1e-4)


@pytest.mark.long
def test_a_text_is_written_of_frames(tmp_path):
    table = CharacterTable.learn(["abc"])
    model = RNNSeq2Seq.bahdanau(None, len(table), 7, 5, 7, source_features=FEATURES)
    texts = ["ab", "c", "abc", "ba"]
    shifted, _ = pad([[BOS, *table.encode(text)] for text in texts])
    model.compile("adam", "mse", run_eagerly=True)
    model.fit(batch() | {"target_ids": shifted}, np.zeros((*shifted.shape, len(table))), verbose=0)
    pairs = zip(FRAMES, texts, strict=True)
    examples = [{"input": frames, "target": text} for frames, text in pairs]
    limits = {"source_length": 17, "target_length": 5}
    given = {"tokenizers": {"target": table}, "decoding": {"num_beams": 2}}
    given["options"] = ExportOptions(generate_in_graph=True)
    translate = bundled(tmp_path, model, "Translate", examples, limits, **given)
    figures = translate.manifest.parity
    assert {"onnx_generate_difference", "saved_model_beam_difference"} <= set(figures)
    together = translate(FRAMES, attention=True)
    for frames, answer in zip(FRAMES, together, strict=True):
        alone = translate(frames)
        assert (answer.text, answer.score) == (alone.text, pytest.approx(alone.score, abs=1e-5))
        assert answer.attention.shape[1] == len(frames) and answer.source_tokens == ()
    assert "".join(translate.stream(FRAMES[0])) == translate(FRAMES[0], num_beams=1).text

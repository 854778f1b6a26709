"""What no answer holds is banned where a token is chosen, and not in what a loss sees."""

import keras
import numpy as np
import pytest

from seqkeras.export import save_run
from seqkeras.models import RNNSeq2Seq, Transformer
from seqkeras.runs import RunError
from seqkeras.tokenizers import learn_sentence_pieces, pad, special_ids
from tests.arrays import FEW_STEPS
from tests.conftest import others_long

TEXTS = [f"{first} {second}" for first in "abcdefg" for second in ("kilo", "mega", "giga")]
LIBRARYS_OWN = {"unk_id": 0, "bos_id": 1, "eos_id": 2}  # and no <pad>
MODELS = {
    "RNNSeq2Seq": lambda size, **options: RNNSeq2Seq.bahdanau(size, size, 5, 7, 11, **options),
    "Transformer": lambda size, **options: Transformer(
        size, size, 16, 1, 2, 11, shared_embeddings="none", **options
    ),
}
every_model = pytest.mark.parametrize("make", others_long(MODELS.values()), ids=MODELS)


def batch(tokenizer, texts=TEXTS):
    """What a translator from a text to itself is trained on."""
    ids = special_ids(tokenizer)
    source, lengths = pad([tokenizer.encode(text) for text in texts])
    rows = [[ids.start_id, *tokenizer.encode(text), ids.end_id] for text in texts]
    target, _ = pad(rows)
    inputs = {"token_ids": source, "lengths": lengths, "target_ids": target[:, :-1]}
    return inputs, target[:, 1:]


def compiled(model):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile("adam", loss, **FEW_STEPS)
    return model


@every_model
@pytest.mark.parametrize("ids", [{}, LIBRARYS_OWN], ids=["ours", "the library's"])
def test_the_first_loss_of_a_translator_is_that_of_a_guess(make, ids):
    tokenizer = learn_sentence_pieces(TEXTS, 18, **ids)
    model = compiled(make(len(tokenizer)))
    inputs, targets = batch(tokenizer, [*TEXTS, "an unknown é"])
    assert special_ids(tokenizer).unknown_id in tokenizer.encode("é")
    first = float(np.ravel(model.evaluate(inputs, targets, verbose=0))[0])
    assert abs(first - np.log(len(tokenizer))) < 1.0, first


@every_model
def test_a_text_that_could_never_end_is_refused_before_training_and_after(make, tmp_path):
    tokenizer = learn_sentence_pieces(TEXTS, 18, **LIBRARYS_OWN)
    model = compiled(make(len(tokenizer)))
    inputs, targets = batch(tokenizer)
    reason = r"end_id must be an id that the model may generate; received 2, and never_generated "
    with pytest.raises(ValueError, match=f"ends with one id; {reason}"):
        model.fit(inputs, targets, verbose=0)
    model(inputs)
    given = {
        "pipeline": "Translate",
        "validation": [{"text": "a", "target": "a"}],
        "limits": {"source_length": 7, "target_length": 7},
        "tokenizers": {"source": tokenizer, "target": tokenizer},
    }
    with pytest.raises(RunError, match=reason):
        save_run(tmp_path / "run", model, **given)
    assert not (tmp_path / "run").exists()

    ids = special_ids(tokenizer)
    model = compiled(make(len(tokenizer), never_generated=ids.never_generated))
    model.fit(inputs, targets, verbose=0)
    save_run(tmp_path / "run", model, **given)
    assert '"end_id": 2' in (tmp_path / "run" / "run.json").read_text()


@every_model
def test_padding_that_is_never_generated_ends_nothing(make):
    tokenizer = learn_sentence_pieces(TEXTS, 18)
    model = make(len(tokenizer))
    inputs, targets = batch(tokenizer)
    padded = np.pad(targets, [(0, 0), (0, 1)]), np.pad(inputs["target_ids"], [(0, 0), (0, 1)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, **FEW_STEPS)
    model.fit(inputs | {"target_ids": padded[1]}, padded[0], verbose=0)

"""The checks of docs/pretrained.md and its pages, beside transformers, live."""

import numpy as np
import pytest
import torch

from tests.journeys.pages import page_of, shown
from tests.parity.conftest import needs
from tests.training.pretrained_folders import SIZES, VOCABULARY

pytestmark = needs("transformers")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """models/bert-base-uncased as transformers writes it, small, with the published vocabulary's
    size."""
    from transformers import BertConfig, BertForPreTraining

    monkeypatch.chdir(tmp_path)
    path = tmp_path / "models/bert-base-uncased"
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522,
        hidden_size=SIZES["hidden_dim"],
        num_hidden_layers=SIZES["num_layers"],
        num_attention_heads=SIZES["num_heads"],
        intermediate_size=SIZES["feed_forward_dim"],
        max_position_embeddings=37,
    )
    BertForPreTraining(config).save_pretrained(path)
    vocabulary = [*VOCABULARY, *(f"w{place}" for place in range(30522 - len(VOCABULARY)))]
    (path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    return tmp_path


def run(name, *parts):
    """Run the scripts of a page that hold one of these parts; return their names."""
    names = {}
    scripts = [text for language, text in shown(page_of(name)) if language == "python"]
    for part in parts:
        [script] = [script for script in scripts if part in script]
        exec(compile(script, name, "exec"), names)
    return names


def test_the_outputs_of_a_loaded_model_are_those_of_transformers(folder, capsys):
    run("pretrained.md", "outputs = model(", "import torch")
    *_, difference = capsys.readouterr().out.split()
    assert float(difference) < 1e-5


def test_a_saved_model_is_read_by_transformers(folder):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    names = run("pretrained/fit-and-save.md", "model.fit(", "save_hugging_face(")
    theirs, report = AutoModelForSequenceClassification.from_pretrained(
        "my-classifier", output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    token_ids, lengths = names["token_ids"], names["lengths"]
    mask = np.arange(token_ids.shape[1]) < lengths[:, None]
    with torch.no_grad():
        logits = theirs.eval()(
            torch.tensor(token_ids), attention_mask=torch.tensor(mask).long()
        ).logits
    ours = names["model"]({"token_ids": token_ids, "lengths": lengths})["classes"]
    np.testing.assert_allclose(logits.numpy(), np.asarray(ours), atol=1e-5)
    ids = AutoTokenizer.from_pretrained("my-classifier")("a fine film")["input_ids"]
    assert ids == list(names["tokenizer"].analyze("a fine film").token_ids)

"""Encoders of published sizes with random weights, as bundles of `Embed` and of `Classify`."""

import itertools
import string

import numpy as np

VOCAB_SIZE, QUICK_VOCAB_SIZE = 30_522, 101
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SIZES = {
    "minilm": {"hidden_dim": 384, "num_layers": 6, "num_heads": 12, "feed_forward_dim": 1536},
    "bert-base": {"hidden_dim": 768, "num_layers": 12, "num_heads": 12, "feed_forward_dim": 3072},
}
QUICK = {"hidden_dim": 24, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 40}
MAX_LENGTH = 512
LABELS = ("business", "science", "sports", "world")
EXAMPLES = 64


def make_model(name, quick):
    """Return a built `SentenceEncoder` on a BERT without a pooler, its weights drawn by one
    seed."""
    from seqkeras.models import Bert, SentenceEncoder

    sizes = QUICK if quick else SIZES[name]
    vocab_size = QUICK_VOCAB_SIZE if quick else VOCAB_SIZE
    model = SentenceEncoder(Bert(vocab_size, max_length=MAX_LENGTH, pooler=None, **sizes))
    return _drawn(model)


def make_classifier(name, quick):
    """Return a built classifier of four classes on a BERT, its weights drawn by one seed."""
    from seqkeras.models import Bert, ClassificationHead, WithHeads

    sizes = QUICK if quick else SIZES[name]
    vocab_size = QUICK_VOCAB_SIZE if quick else VOCAB_SIZE
    bert = Bert(vocab_size, max_length=MAX_LENGTH, **sizes)
    return _drawn(WithHeads(bert, {"label": ClassificationHead(len(LABELS))}))


def _drawn(model):
    model.build(None)
    draw = np.random.default_rng(0)
    for variable in model.variables:
        if "norm" not in variable.path:
            variable.assign(draw.normal(scale=0.02, size=variable.shape))
    return model


def export_classifier(model, folder):
    """Write the bundle of a classifier, as `make_classifier` returns it; its examples are texts of
    6 to 21 words."""
    words = make_words(model.encoder.config["vocab_size"])
    draw = np.random.default_rng(0)
    lengths = draw.integers(6, 22, EXAMPLES)
    texts = [" ".join(draw.choice(words, size=length)) for length in lengths]
    settings = {"output": "label", "labels": list(LABELS)}
    _export(model, folder, "Classify", texts, words, (), settings=settings)


def export_model(model, folder, precisions):
    """Write the model's bundle as `seqkeras export` does, but for the SavedModels.

    Args:
        model: as `make_model` returns it.
        folder: the bundle.
        precisions: names beside float32, see `seqkeras.export.quantize`.
    """
    words = make_words(model.encoder.config["vocab_size"])
    texts = [" ".join(words[:length]) for length in (3, 7, 14)]
    _export(model, folder, "Embed", texts, words, precisions)


def _export(model, folder, pipeline, texts, words, precisions, **options_of_run):
    from seqkeras.export import save_run
    from seqkeras.export.bundle import ExportOptions, export
    from seqkeras.export.tolerances import UNLIMITED
    from seqkeras.tokenizers import word_piece

    run = folder.with_name(f"{folder.name}.run")
    save_run(
        run,
        model,
        pipeline,
        [{"input": text} for text in texts],
        {"source_length": MAX_LENGTH},
        {"text": word_piece([*SPECIAL_TOKENS, *words])},
        **options_of_run,
    )
    options = ExportOptions(precisions=tuple(precisions), tolerances=UNLIMITED, saved_models=False)
    export(run, folder, options=options)


def make_words(vocab_size=VOCAB_SIZE):
    """Return the words that the tokenizer knows, a token each."""
    letters = itertools.product(string.ascii_lowercase, repeat=4)
    return ["".join(word) for word in itertools.islice(letters, vocab_size - len(SPECIAL_TOKENS))]

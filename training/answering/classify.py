"""`Classify` while it trains: texts, or pairs of texts, to labels."""

import numpy as np

from seqkeras.decoding import in_batches
from seqkeras.serving.pipelines.batching import in_groups
from seqkeras.serving.pipelines.classify import ranked_classes
from seqkeras.serving.pipelines.model import softmax
from seqkeras.serving.results import Classification
from seqkeras.tokenizers import pad
from seqkeras.training.answering.feeding import fed, only_output
from seqkeras.training.compiling import OncePerModel


class Classify:
    """Texts, or tuples of two, to `Classification`s; what is over the limit is cut off, or read in
    windows if the run's settings have a `stride`. Without labels the score is the model's number.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model is a functional one, or `WithHeads`.
    """

    def __init__(self, run):
        self.run, self.labels = run, run.record.settings.get("labels")
        self.logits = OncePerModel(_logits_of)

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar; of
                texts in windows with their share.
        """
        rows = [text_encodings(self.run, text) for text in texts]
        windows = [window for row in rows for window in row]
        share = len(texts) / len(windows)
        step = advance and (lambda count: advance(count * share))
        [logits] = in_batches(self.logits(model), windows, _padded, advance=step)
        logits = np.array([np.mean(own, axis=0) for own in in_groups(logits, rows)])
        if self.labels is None:
            return [Classification((), float(number), {}) for [number] in logits]
        return [
            Classification(*ranked_classes(self.labels, scores))
            for scores in softmax(logits).tolist()
        ]

    def fits(self, text):
        """Return whether a text, or each of two, has tokens, and nothing is cut off."""
        tokenizer, limit = self.run.tokenizers["text"], self.run.record.limits["source_length"]
        texts = text if isinstance(text, tuple) else (text,)
        has_tokens = all(map(tokenizer.encode, texts))
        if self.run.record.settings.get("stride") is not None:
            return has_tokens
        return has_tokens and len(tokenizer.analyze(*texts)) <= limit


def text_encodings(run, text):
    """Return the `Encoding`s that a model reads of a text, or of a tuple of two: one, or with a
    stride those of a text's windows."""
    stride = run.record.settings.get("stride")
    if stride is None:
        return [text_encoding(run, text)]
    return run.tokenizers["text"].windows(None, text, run.record.limits["source_length"], stride)


def text_encoding(run, text):
    """Return the `Encoding` of a text, or of a tuple of two; what is over the run's limit is cut
    off."""
    texts = text if isinstance(text, tuple) else (text,)
    limit = run.record.limits["source_length"]
    return run.tokenizers["text"].analyze(*texts, max_length=limit, truncate=True)


def _padded(encodings):
    token_ids, lengths = pad([encoding.token_ids for encoding in encodings])
    segment_ids, _ = pad([encoding.segment_ids for encoding in encodings])
    return token_ids, lengths, segment_ids


def _logits_of(model):
    def logits(token_ids, lengths, segment_ids):
        given = {"token_ids": token_ids, "lengths": lengths, "segment_ids": segment_ids}
        return (only_output(model, fed(model, given)),)

    return logits

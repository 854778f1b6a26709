"""`FillMask` while it trains: texts with masks to the tokens that fill them."""

import functools

from seqkeras.decoding import in_batches
from seqkeras.serving.pipelines.fill_mask import TOP_K, Row, filled, masks_of
from seqkeras.tokenizers import pad
from seqkeras.training.compiling import OncePerModel

BATCH = 32  # the logits of a mask are as many as the vocabulary has tokens


class FillMask:
    """Texts to `Filling`s; what is over the limit is cut off.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model is a `WithHeads` with a `MaskedLMHead`.
    """

    def __init__(self, run):
        self.tokenizer = run.tokenizers["text"]
        self.limit = run.record.limits["source_length"]
        self.mask_token = run.record.settings["mask_token"]
        self.mask_id = self.tokenizer.id_in_texts(self.mask_token)
        self.logits = OncePerModel(functools.partial(_logits_of, run.record.settings["output"]))

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        rows = [self.read(text) for text in texts]
        [logits] = in_batches(self.logits(model), rows, _padded, BATCH, advance)
        return [
            filled(self.tokenizer, self.mask_token, row, own[: len(row.masks)], TOP_K)
            for row, own in zip(rows, logits, strict=True)
        ]

    def fits(self, text):
        """Return whether a text has a mask, and nothing is cut off."""
        return self.mask_id in self.tokenizer.encode(text) and (
            len(self.tokenizer.analyze(text)) <= self.limit
        )

    def read(self, text):
        """Return the `Row` of a text."""
        encoding = self.tokenizer.analyze(text, max_length=self.limit, truncate=True)
        return Row(text, encoding, masks_of(encoding, self.mask_id))


def _padded(rows):
    token_ids, lengths = pad([row.encoding.token_ids for row in rows])
    masks, _ = pad([row.masks for row in rows], pad_id=0)
    return token_ids, lengths, masks


def _logits_of(name, model):
    def logits(token_ids, lengths, positions):
        given = {"token_ids": token_ids, "lengths": lengths, "masked_positions": positions}
        return (model(given, training=False)[name],)

    return logits

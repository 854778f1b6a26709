"""Fill the masks of a text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..checks import require_count
from ..manifest import MANIFEST, BundleError, Manifest
from ..opening import Runtime
from ..results import Filler, Filling
from ..text import Subwords, pad
from ..text.encoding import Encoding
from .attention import AttentionGraph
from .inputs import TextReader, encoded, one_or_all, text_of
from .model import MASKED, TOKENS, Model, Packing, softmax, token_arrays
from .pipeline import Pipeline
from .settings import read_settings, wrong_output

TOP_K = 5
TOKEN_BUDGET = 512  # the logits of one token may be as many as the vocabulary has tokens
CONTINUES = "##"  # begins a WordPiece token that continues a word
SPACES = ("\u0120", "\u2581")  # how byte-level BPE and SentencePiece write a space
LINE_ENDS = "\n\v\f\r\x1c-\x1e\u0085\u2028\u2029"  # as str.splitlines has them


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    output: str | None = None
    mask_token: str = "[MASK]"

    def problems(self, outputs):
        """Yield what is wrong."""
        yield from wrong_output(outputs, self.output, ("batch", "length", "vocabulary"))


@dataclass(frozen=True)
class Row:
    """The model's input for a text, and the positions of its masks."""

    text: str
    encoding: Encoding
    masks: list

    def __len__(self):
        return len(self.encoding)


def _arrays(rows):
    """Return a batch of `Row`s as arrays by name."""
    masks, _ = pad([row.masks for row in rows], pad_id=0)
    return token_arrays([row.encoding for row in rows]) | {MASKED: masks}


MASKS = Packing(
    _arrays, TOKENS.required, TOKENS.optional, labels=lambda row: TOKENS.labels(row.encoding)
)


class FillMask(Pipeline):
    """The most probable tokens for each mask of a text.

        scores = softmax(logits at the mask), over the whole vocabulary

    A filler replaces its mask. It is joined to the word before it if it continues that word: in
    WordPiece, a token that begins with ##; with a mask that absorbs the white space before it, like
    RoBERTa's, a token that does not begin with a space. At the start of a line or of the text there
    is no such word, and white space is kept.

    A graph with an input `masked_positions` computes logits at the masks only; others, at every
    token.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: Devlin et al. 2019, section 3.1, task 1, https://arxiv.org/abs/1810.04805

    Example:
        >>> from seqkeras.serving import load
        >>> fill = load("bundles/masks", threads=1)
        >>> filling = fill("A [MASK] may be small.", top_k=3)
        >>> [len(fillers) for fillers in filling.masks], "[MASK]" in filling.text
        ([3], False)
    """

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._settings = read_settings(folder, manifest, Settings)
        self._reader = TextReader(folder, manifest)
        self._tokenizer = self._reader.tokenizer
        if not isinstance(self._tokenizer, Subwords):
            raise BundleError("FillMask needs WordPiece or byte-level BPE", where=folder)
        try:
            self._mask_id = self._tokenizer.id_in_texts(self._settings.mask_token)
        except ValueError as error:
            reason = f"settings.mask_token: {error}"
            raise BundleError(reason, where=folder, subject=MANIFEST) from error
        self._model = Model(folder, manifest, runtime, [self._settings.output], MASKS)
        self._attention = AttentionGraph(folder, manifest, runtime, MASKS)

    @overload
    def __call__(self, texts: str | Mapping[str, str], *args: Any, **options: Any) -> Filling: ...

    @overload
    def __call__(self, texts: list, *args: Any, **options: Any) -> list[Filling]: ...

    def __call__(
        self,
        texts: str | Mapping[str, str] | list,
        top_k: int = TOP_K,
        truncate: bool = False,
        token_budget: int = TOKEN_BUDGET,
        attention: bool | str = False,
    ) -> Filling | list[Filling]:
        """Answer a text, or each text of a list.

        Args:
            texts: a string with at least one mask, or a dictionary of "text"; or a list of these.
            top_k: number of tokens to return for each mask.
            truncate: cut texts over the limit, also their masks.
            token_budget: the most tokens of a batch, padding among them.
            attention: how much each token attends to each other, of a bundle that was exported with
                --attention-heads: True for the mean of the last layer's heads, "heads" for each
                head of each layer, "words" for weights of whole words.

        Returns:
            A `Filling`; for a list, a list of them, in its order.

        Raises:
            ValueError: if a text is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        top_k = require_count("FillMask: top_k", top_k, most=len(self._tokenizer))
        self._attention.require("FillMask", attention)
        rows = encoded(texts, "FillMask: text", self.encode, truncate, token_budget)

        def answer(index, logits):
            masks = rows[index].masks
            chosen = logits[: len(masks)] if self._model.takes(MASKED) else logits[masks]
            return filled(self._tokenizer, self._settings.mask_token, rows[index], chosen, top_k)

        answers = self._model.answer(rows, answer, token_budget)
        answers = self._attention.attach(answers, rows, attention, token_budget)
        return one_or_all(texts, answers, "FillMask: text")

    def encode(self, text: Any, name: str = "FillMask: text", truncate: bool = False) -> Any:
        """Return what the model reads of a text.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        text = text_of(text, name)
        encoding = self._reader.read(text, name, truncate)
        masks = masks_of(encoding, self._mask_id)
        if not masks and self._mask_id in self._tokenizer.encode(text):
            raise ValueError(
                f"{name} has no mask within the limit of {self._reader.limit} tokens, to which "
                "it was cut; shorten the text before its masks."
            )
        if not masks:
            raise ValueError(
                f"{name} must hold a mask; write {self._settings.mask_token} for what to fill in."
            )
        return Row(text, encoding, masks)


def masks_of(encoding, mask_id):
    """Return the positions of the masks of an `Encoding`, a list."""
    return [at for at, index in enumerate(encoding.token_ids) if index == mask_id]


def filled(tokenizer, mask_token, row, logits, top_k):
    """Return the `Filling` of a row.

    Args:
        tokenizer: a `Subwords`.
        mask_token: the text of a mask.
        row: with the text, its `Encoding`, and the positions of its masks in that.
        logits: (masks, vocabulary).
        top_k: number of tokens to return for each mask.
    """
    masks, pieces, done = [], [], 0
    takes_spaces = mask_token in tokenizer.left_stripped
    for at, scores in zip(row.masks, softmax(logits)):
        best = np.argsort(-scores, kind="stable")[:top_k]
        tokens = [tokenizer.decode([index], special_tokens=True) for index in best]
        masks.append(
            tuple(Filler(token.strip(), float(scores[i])) for token, i in zip(tokens, best))
        )
        start, end = row.encoding.offsets[at]
        mask = row.text[start:end]  # with the white space that it absorbs, or trimmed
        before = row.text[done : end - len(mask.lstrip())]
        joins, spaced = filler_spacing(tokenizer, int(best[0]), takes_spaces)
        filler = masks[-1][0].token
        if tokenizer.is_word_piece:
            filler = filler.removeprefix(CONTINUES)
        pieces += [_before_filler(before, joins, spaced, is_first=done == 0), filler]
        done = start + len(mask.rstrip())
    return Filling("".join([*pieces, row.text[done:]]), tuple(masks))


def filler_spacing(tokenizer, index, takes_spaces):
    """Return whether a filler continues the word before it, and whether it begins with a space.

    Args:
        tokenizer: a `Subwords`.
        index: the filler's id.
        takes_spaces: whether the mask absorbs the white space before it.
    """
    token = tokenizer.token_of(index)
    if tokenizer.is_word_piece:
        return token.startswith(CONTINUES), False
    spaced = token.startswith(SPACES)
    return takes_spaces and not spaced, spaced


def _before_filler(before, joins, spaced, is_first):
    """Return the text before a filler.

    Args:
        before: the text between the previous mask and this one.
        joins, spaced: see `filler_spacing`.
        is_first: whether it is the text's first mask.
    """
    bare = before.rstrip()
    space = before[len(bare) :]
    if is_first and not bare:  # there is no word
        return before
    if joins and not re.search(f"[{LINE_ENDS}]", space):
        return bare
    return f"{before} " if spaced and not space else before

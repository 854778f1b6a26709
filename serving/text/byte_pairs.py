"""Byte-level byte-pair encoding, the tokenizer of GPT-2 and RoBERTa."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from ..parsing import parse_json
from .subwords import Subwords, require_library

SPECIAL_TOKENS = {
    "gpt2": ("<|endoftext|>",),
    "roberta": ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
}
TEMPLATES = {  # around a text, and around two; every token has the segment 0
    "gpt2": ("$A", "$A $B"),
    "roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
}


def byte_pairs(
    vocabulary: Mapping[str, int],
    merges: Iterable[Sequence[str]],
    form: str = "gpt2",
    in_texts: Collection[str] | None = None,
) -> Subwords:
    """Return the `Subwords` of GPT-2 or of RoBERTa.

    A text is its UTF-8 bytes, each written as a visible character: every text has tokens, and
    decoding restores it. Within a word, with the space before it, the pair of tokens that comes
    first in the merges becomes one token, until no pair is left.

    Args:
        vocabulary: token -> id.
        merges: pairs of tokens, the first learned first.
        form: "gpt2"; or "roberta", which sets <s> and </s> around a text, and </s></s> between two.
        in_texts: special tokens that are read where they are written in a text; None for all, as
            Hugging Face does. Others are bytes there.

    Raises:
        ValueError: if the form is unknown, or the vocabulary lacks a special token of the form or a
            token of a merge.
        ImportError: if `tokenizers` is not installed.

    Reference: Sennrich et al. 2016, section 3.2, https://arxiv.org/abs/1508.07909; Radford et al.
    2019, section 2.2; https://github.com/openai/gpt-2 (encoder.py)

    Example:
        >>> from seqkeras.serving.text import byte_pairs
        >>> vocabulary = {"<|endoftext|>": 0, "l": 1, "o": 2, "w": 3, "lo": 4, "low": 5, "Ġ": 6}
        >>> tokenizer = byte_pairs(vocabulary, [("l", "o"), ("lo", "w")])
        >>> tokenizer.analyze("low lo").tokens  # Ġ is a space
        ['low', 'Ġ', 'lo']
        >>> tokenizer.decode(tokenizer.encode("low lo"))
        'low lo'
    """
    library = require_library()
    _require(vocabulary, merges, form)
    model = library.models.BPE(vocabulary, [tuple(pair) for pair in merges])
    tokenizer = library.Tokenizer(model)
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    processor = _hugging_faces if in_texts is None else _template
    tokenizer.post_processor = processor(form, vocabulary)
    tokenizer.add_special_tokens(
        [  # RoBERTa's mask absorbs the space before it
            library.AddedToken(token, lstrip=token == "<mask>", special=True, normalized=False)
            for token in (SPECIAL_TOKENS[form] if in_texts is None else in_texts)
        ]
    )
    return Subwords(tokenizer.to_str())


def _hugging_faces(form, vocabulary):
    """Return the post-processor of a form in Hugging Face's files."""
    processors = require_library().processors
    if form == "gpt2":
        return processors.ByteLevel(trim_offsets=False)
    around = (("</s>", vocabulary["</s>"]), ("<s>", vocabulary["<s>"]))
    return processors.RobertaProcessing(*around, trim_offsets=False, add_prefix_space=False)


def _template(form, vocabulary):
    """Return the post-processor of a form that names all special tokens: no text spells one."""
    single, pair = TEMPLATES[form]
    special = [(token, vocabulary[token]) for token in SPECIAL_TOKENS[form]]
    return require_library().processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=special
    )


def read_byte_pairs(
    vocabulary_file: str | os.PathLike[str], merges_file: str | os.PathLike[str]
) -> tuple[dict[str, int], list[tuple[str, ...]]]:
    """Return the vocabulary and the merges in files.

    Args:
        vocabulary_file: `vocab.json`, or `encoder.json` at OpenAI: token -> id.
        merges_file: `merges.txt`, or `vocab.bpe` at OpenAI: a pair in each line.

    Returns:
        A dictionary, token -> id, and a list of pairs of tokens, the first learned first.

    Raises:
        ValueError: if a file has another content.
        OSError: if a file can not be read.

    Example:
        >>> import pathlib, tempfile
        >>> from seqkeras.serving.text import read_byte_pairs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     vocab, merges = pathlib.Path(folder, "vocab.json"), pathlib.Path(folder, "merges")
        ...     _ = vocab.write_text('{"l": 0, "o": 1, "lo": 2}'), merges.write_text("l o\\n")
        ...     read_byte_pairs(vocab, merges)
        ({'l': 0, 'o': 1, 'lo': 2}, [('l', 'o')])
    """
    try:
        vocabulary = parse_json(Path(vocabulary_file).read_bytes())
    except ValueError as error:
        raise ValueError(f"{vocabulary_file}: must be JSON: {error}.") from error
    if not isinstance(vocabulary, dict) or set(map(type, vocabulary.values())) - {int}:
        raise ValueError(f"{vocabulary_file}: must hold the id of each token.")
    lines = Path(merges_file).read_bytes().decode().replace("\r\n", "\n").split("\n")
    if lines[0].startswith("#version"):
        lines.pop(0)
    merges = [tuple(line.split(" ")) for line in lines if line]
    for pair in merges:
        if len(pair) != 2:
            raise ValueError(
                f"{merges_file}: a line must hold two tokens; received {' '.join(pair)!r}."
            )
    return vocabulary, merges


def _require(vocabulary, merges, form):
    if form not in SPECIAL_TOKENS:
        raise ValueError(
            f"byte_pairs: form must be one of {', '.join(SPECIAL_TOKENS)}; received {form!r}."
        )
    special = SPECIAL_TOKENS[form]
    made = [token for pair in merges for token in (*pair, "".join(pair))]
    missing = [token for token in (*special, *made) if token not in vocabulary]
    if missing:
        raise ValueError(
            f"byte_pairs: the vocabulary must hold every special token and what is merged; "
            f"it lacks {', '.join(map(repr, missing[:5]))}."
        )

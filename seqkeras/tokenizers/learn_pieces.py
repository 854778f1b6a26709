"""SentencePiece models of a corpus, by the library's trainer.

The same texts make the same model every time. It leaves out sampling: every text is read.
"""

import io
import itertools
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seqkeras.serving.text.sentence_pieces import SentencePieces
from seqkeras.serving.text.sentence_pieces import require_library as require_sentencepiece
from seqkeras.serving.text.vocabularies import BOS, EOS, PAD, UNK

MODELS = ("unigram", "bpe")
PIECES = {"pad_id": PAD, "unk_id": UNK, "bos_id": BOS, "eos_id": EOS}  # the library's names
PIECE_NAMES = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}
NORMAL = 1  # sentencepiece_model.proto, ModelProto.SentencePiece.Type
SPACES = dict.fromkeys("\t\n\v\f\r", " ")
MOST_BYTES = 4192  # of a line that the library does not leave out
RESERVED = "\u2585"  # a line that holds it is left out by the library
PRIVATE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))
# What the library says of texts and options -> what is said of the arguments.
REFUSALS = {
    r"Vocabulary size too high .* <= ([0-9]+)": (
        "vocab_size must be at most {0}, the number of pieces that the texts make, or "
        "hard_vocab_limit=False, by which there are fewer; received {vocab_size}"
    ),
    r"smaller than required_chars\. [0-9]+ vs ([0-9]+)": (
        "vocab_size must be at least {0}, a piece for every character of the texts, or "
        "character_coverage under 1, by which rare ones have none; received {vocab_size}"
    ),
    r"!sentences_\.empty\(\)|all_chars_count": "texts must hold one that is not blank",
    r"vocab_size\(\)\) > \(0\)": "vocab_size must be at least 1; received {vocab_size}",
    r"insert_id\(trainer_spec_\.(\w+)_id": "{0}_id must be another id than those before",
    r"\[(trainer_spec.*)\] $": "the options must satisfy {0}",
}
FEWER_PIECES = "No valid symbol found"  # the library's warning where nothing is left to merge


def learn_sentence_pieces(
    texts: Iterable[str],
    vocab_size: int,
    model: str = "unigram",
    suffix: Sequence[str] = (),
    rules: Mapping[str, str] | None = None,
    **options: Any,
) -> SentencePieces:
    """Learn a `seqkeras.serving.text.SentencePieces` with ids of its own.

        id("<pad>"), id("<unk>"), id("<s>"), id("</s>") = 0, 1, 2, 3

    These are the ids of a `CharacterTable`, unless an option names other ids. The four are never
    read in a text: "<unk>" is <, unk and >.

    With `character_coverage=1`, every character of the texts except NUL has a piece. Long lines are
    learned from in parts. A special token that is written in a text is learned as text. Decoding
    gives a text back as the library normalizes it: one space for several, none around the text, a
    space for "\u2581", and, without rules, in NFKC ("\ufb01" becomes "fi").

    Args:
        texts: an iterable of strings.
        vocab_size: the number of pieces, with <pad>, <unk>, <s> and </s>.
        model: "unigram" or "bpe".
        suffix: tokens that `analyze` sets after a text, such as "</s>".
        rules: character -> what it is read as, {"A": "a"}, in place of the library's
            normalization. Tabs and ends of lines are spaces; other characters are read as they are
            written.
        options: further options of the library, such as `character_coverage`. A call that names one
            of `pad_id`, `unk_id`, `bos_id` and `eos_id` has the library's defaults for the others.

    Returns:
        The `SentencePieces`.

    Raises:
        ValueError: if the model is unknown, or the texts make too few pieces.

    Reference: Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226; "unigram": Kudo 2018,
    https://arxiv.org/abs/1804.10959

    Example:
        >>> from seqkeras.tokenizers import learn_sentence_pieces
        >>> tokenizer = learn_sentence_pieces(["low lower lowest"] * 9, vocab_size=14, model="bpe")
        >>> [tokenizer.token_of(token_id) for token_id in tokenizer.encode("low lower")]
        ['▁', 'low', '▁', 'low', 'e', 'r']
    """
    if model not in MODELS:
        raise ValueError(
            f"learn_sentence_pieces: model must be one of {', '.join(MODELS)}; received {model!r}."
        )
    texts = [text.replace("\0", " ") for text in texts]
    stand_ins = _stand_ins(texts, options)
    lines = (
        part.replace(RESERVED, stand_ins[RESERVED])
        for text in texts
        for part in _parts(text, options.get("max_sentence_length", MOST_BYTES))
    )
    ids = {} if set(PIECES) & set(options) else PIECES
    names = {name: stand_in for name, stand_in in stand_ins.items() if name != RESERVED}
    with tempfile.TemporaryDirectory() as folder:
        if rules:
            options["normalization_rule_tsv"] = _written(
                {**SPACES, **rules}, Path(folder) / "rules.tsv"
            )
        options = {"vocab_size": vocab_size, "model_type": model, **ids, **names, **options}
        trained = _trained_pieces(lines, options, Path(folder) / "warnings")
    return SentencePieces(_named(trained, stand_ins), suffix=suffix)


def scores_of(learned: SentencePieces) -> list[tuple[str, float]]:
    """Return (piece, score) of each piece of a `SentencePieces`, by its id in the model."""
    from sentencepiece import sentencepiece_model_pb2

    protocol: Any = sentencepiece_model_pb2
    model = protocol.ModelProto.FromString(learned.model)
    return [(piece.piece, piece.score) for piece in model.pieces]


def _stand_ins(texts, options):
    """Return characters that no text holds: for the name of each special piece, unless an option
    gives it, and for RESERVED. The library learns nothing of a special piece's name in a text."""
    taken = set().union(*texts)
    private = map(chr, itertools.chain(*PRIVATE))
    free = (character for character in private if character not in taken)
    names = [name for name in (f"{piece}_piece" for piece in PIECE_NAMES) if name not in options]
    return dict(zip([*names, RESERVED], free))


def _parts(text, most):
    """Yield a text in parts of `most` bytes at most, which begin at a space if possible."""
    content, start = text.encode(), 0
    while len(content) - start > most:
        end = start + most
        space = max(content.rfind(space, start + 1, end + 1) for space in (b" ", b"\t", b"\n"))
        while space < 0 and content[end] & 0xC0 == 0x80:  # within a character
            end -= 1
        end = end if space < 0 else space
        yield content[start:end].decode()
        start = end
    yield content[start:].decode()


def _trained_pieces(lines, options, log):
    """Return the bytes of a model; a warning of the library is a warning of ours, in one line.

    Args:
        lines: yields strings.
        options: options of the library.
        log: the path of a file that is written.
    """
    sentencepiece, written = require_sentencepiece(), io.BytesIO()
    with log.open("w") as said:
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=lines,
                model_writer=written,
                minloglevel=1,  # warnings and errors
                logstream=said if _has_descriptor(sys.stderr) else None,
                **options,
            )
        except RuntimeError as error:
            raise ValueError(f"learn_sentence_pieces: {_refusal(error, options)}.") from error
    said = log.read_text(encoding="utf-8", errors="replace")
    messages = re.findall(r"^W.*?\] (.+)$", said, re.MULTILINE)
    for warning in dict.fromkeys(messages):
        if warning.strip() != FEWER_PIECES:  # the length of the vocabulary says so
            warnings.warn(f"learn_sentence_pieces: sentencepiece warns: {warning}", stacklevel=3)
    return written.getvalue()


def _refusal(error, options):
    """Return what is wrong with texts and options, in their own names."""
    for pattern, message in REFUSALS.items():
        if match := re.search(pattern, str(error)):
            return message.format(*match.groups(), **options)
    return re.sub(r"^[A-Z_]+: (src/\S+ (?=\[)|src/\S+ \[.*\] (?=\S))?", "", str(error)).rstrip(". ")


def _has_descriptor(stream):
    try:
        return stream.fileno() >= 0
    except (AttributeError, OSError, ValueError):  # a notebook's, or none
        return False


def _named(trained, stand_ins):
    """Return bytes of a model with the names of its special pieces, and RESERVED in its pieces."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(trained)
    names = {}
    for piece, name in PIECE_NAMES.items():
        if f"{piece}_piece" in stand_ins:
            setattr(model.trainer_spec, f"{piece}_piece", name)
            names[stand_ins[f"{piece}_piece"]] = name
    of_name = {name: stand_in for stand_in, name in names.items()}
    for piece in model.pieces:
        if piece.type == NORMAL:  # one that is written like a special piece is never read
            text = piece.piece.replace(stand_ins[RESERVED], RESERVED)
            piece.piece = of_name.get(text, text)
        else:
            piece.piece = names.get(piece.piece, piece.piece)
    return model.SerializeToString()


def _written(rules, path):
    """Return the path of a file of SentencePiece's rules: a code point, a tab, what it becomes."""
    lines = []
    for character, replacement in rules.items():
        code_points = " ".join(f"{ord(letter):X}" for letter in replacement)
        lines.append(f"{ord(character):X}\t{code_points}\n")
    path.write_text("".join(lines), encoding="ascii")
    return str(path)

"""Requirements on a `tokenizer.json` whose tokens a graph gives as the library does.

Other tokenizers are refused, with every reason.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from seqkeras.export.text_graphs.characters import MOST_ADDED_TOKENS
from seqkeras.tokenizers.keras_nlp_tokenizers import SPLITS

BYTE_LEVEL = ("ByteLevel", "RobertaProcessing")  # post-processors that may trim offsets


def require_word_piece(content: Mapping[str, Any]) -> None:
    """Raise a ValueError, with every reason, unless a graph can split like this WordPiece."""
    kinds = {name: (content[name] or {}).get("type") for name in ("normalizer", "pre_tokenizer")}
    by_bert = kinds["pre_tokenizer"] == "BertPreTokenizer"
    problems = [
        (
            kinds["normalizer"] != "BertNormalizer",
            "its normalizer must be BERT's, or KerasNLP's without lowercase",
        ),
        (
            not by_bert and not _is_of_keras_nlp(content["pre_tokenizer"]),
            "its pre_tokenizer must be BERT's or KerasNLP's",
        ),
        (trimming(content) is not None, "its post_processor must trim no places"),
    ]
    _require("WordPiece", [*problems, *_of_added_tokens(content), *_of_post_processor(content)])


def require_byte_pairs(content: Mapping[str, Any], byte_characters: Sequence[str]) -> None:
    """Raise a ValueError, with every reason, unless a graph can split like these byte pairs.

    The byte characters are those that represent the 256 bytes.
    """
    model, splits = content["model"], content["pre_tokenizer"] or {}
    plain = splits.get("type") == "ByteLevel" and splits.get("use_regex", True)
    missing = sum(character not in model["vocab"] for character in byte_characters)
    problems = [
        (content["normalizer"], "nothing may be normalized"),
        (not plain or splits.get("add_prefix_space"), "words must be split as GPT-2's are"),
        (missing, f"the vocabulary must hold every byte; it lacks {missing}"),
        (not _in_order(pairs_of(model)), "a pair must stand after those that make its parts"),
    ]
    for option in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"):
        problems.append((model.get(option), f"{option} must not be set"))
    _require("BytePairs", [*problems, *_of_added_tokens(content), *_of_post_processor(content)])


def require_decoder(content: Mapping[str, Any]) -> None:
    """Raise a ValueError unless a graph can join tokens like this tokenizer."""
    model, decoder = content["model"], content["decoder"] or {}
    expected = {"type": "ByteLevel"}
    if model["type"] == "WordPiece":
        expected = {"type": "WordPiece", "prefix": model["continuing_subword_prefix"]}
    wrong = any(decoder.get(name) != value for name, value in expected.items())
    _require(model["type"], [(wrong, f"its decoder must be {expected}")])


def pairs_of(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the merges of a model as pairs of tokens."""
    return [tuple(e.split(" ")) if isinstance(e, str) else tuple(e) for e in model["merges"]]


def trimming(content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the post-processor that trims the offsets of tokens, or None."""
    trims = [e for e in _processors(content) if e["type"] in BYTE_LEVEL and e["trim_offsets"]]
    return trims[0] if trims else None


def _processors(content):
    processor = content["post_processor"]
    if not processor:
        return []
    return processor["processors"] if processor["type"] == "Sequence" else [processor]


def _of_post_processor(content):
    known = ("TemplateProcessing", "BertProcessing", *BYTE_LEVEL)
    kinds = [processor["type"] for processor in _processors(content)]
    yield set(kinds) - {*known}, f"its post_processor must be one of {', '.join(known)}"
    yield len(set(kinds) & {*BYTE_LEVEL}) > 1, "its post_processor must trim places once"


def _of_added_tokens(content):
    added = content["added_tokens"]
    takes_spaces = any(token["lstrip"] or token["rstrip"] for token in added)
    has_spaces = any(token["content"] != token["content"].strip() for token in added)
    yield len(added) > MOST_ADDED_TOKENS, f"{MOST_ADDED_TOKENS} added tokens at most"
    yield any(token["single_word"] for token in added), "no added token may be a single_word"
    yield (
        content["normalizer"] and any(token["normalized"] for token in added),
        "no added token may be normalized",
    )
    yield (
        takes_spaces and has_spaces,
        "an added token may take the spaces beside it, or another one hold some, but not both",
    )


def _is_of_keras_nlp(pre_tokenizer):
    """Return whether words are split like `from_keras_nlp`'s: by class of character."""
    splits = (pre_tokenizer or {}).get("pretokenizers", [])
    return bool(splits) and all(
        split["type"] == "Split" and (split["pattern"].get("Regex"), split["behavior"]) in SPLITS
        for split in splits
    )


def _in_order(pairs):
    """Return whether each merge uses results of earlier merges only."""
    made = {}
    for rank, (left, right) in enumerate(pairs):
        made[left + right] = rank
    return all(made.get(part, -1) < rank for rank, pair in enumerate(pairs) for part in pair)


def _require(who, problems):
    reasons = [message for wrong, message in problems if wrong]
    if reasons:
        raise ValueError(f"{who} in a graph: {'; '.join(reasons)}.")

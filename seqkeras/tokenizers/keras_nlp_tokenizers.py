"""Convert tokenizers of KerasNLP (KerasHub): WordPiece, byte-level BPE, SentencePiece.

A tokenizer is recognised by its classes and attributes: KerasNLP itself is not imported. Not
supported are tokenizers that change texts or ids by their own code (CLIP, XLM-RoBERTa, DeBERTa V3,
Whisper, Mistral's Tekken).
"""

import functools
import importlib.util
import unicodedata
from typing import Any

from seqkeras.serving.text.sentence_pieces import SentencePieces
from seqkeras.serving.text.subwords import Subwords, require_library

BASES = ("WordPieceTokenizer", "BytePairTokenizer", "SentencePieceTokenizer")
PACKAGES = ("keras_hub", "keras_nlp")
# Methods with which a class may read texts differently from its base.
OWN = (
    "tokenize",
    "call",
    "_tokenize_tf",
    "_tokenize_python",
    "_tokenize_tokenizers",
    "_tokenize_spm",
    "set_vocabulary",
    "set_vocabulary_and_merges",
    "set_proto",
    "vocabulary_size",
    "token_to_id",
)
LONGEST_WORD = 100
SPACES = r"[ \t\n\r\f]|\p{Cc}|\p{Cf}"  # RE2's \s, and invisible characters
PUNCTUATION = r"[!-/:-@\[-`{-~]|\p{P}"
CHINESE = (  # characters that stand alone, as in BERT
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)
# What stands between words, and what is a word by itself: a regular expression of the library
# tokenizers, and what becomes of its matches, as a tokenizer.json says them.
SPLITS = ((SPACES, "Removed"), (PUNCTUATION, "Isolated"), (f"{PUNCTUATION}|{CHINESE}", "Isolated"))
FIRST_UNCHANGED = 0x30000  # of the code points after all that folding changes
OPEN, CLOSE, NO_TOKEN = "\x01", "\x02", "\x03"
FOLDED_SPACES = f"[\n{OPEN}{CLOSE}]", "Removed"
# Invisible characters that are not control characters (Default_Ignorable_Code_Point).
IGNORED = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0"
    "\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


def from_keras_nlp(source: Any, in_tf_data: bool | None = None) -> Subwords | SentencePieces:
    """Return the tokenizer of `seqkeras.serving.text` that reads texts like one of KerasNLP.

    | theirs | ours |
    |---|---|
    | `WordPieceTokenizer`, and the tokenizers of BERT, DistilBERT, ELECTRA | `Subwords` |
    | `BytePairTokenizer`, and the tokenizers of GPT-2, RoBERTa, BART, OPT … | `Subwords` |
    | `SentencePieceTokenizer`, and the tokenizers of ALBERT, FNet, T5, Gemma … | `SentencePieces` |

    Every flag is kept: `lowercase` (Unicode's NFKC_Casefold), `strip_accents`, `split_on_cjk`,
    `suffix_indicator`, `oov_token`, `special_tokens_in_strings`, `add_prefix_space`,
    `unsplittable_tokens`, `add_bos`, `add_eos`. A `sequence_length` is not kept: a run's limits say
    what is too long. Around a text stand the special tokens that the preprocessor packs around it.
    Without a preprocessor, an encoder's tokenizer, which has a mask, gives its own special tokens;
    others give none.

    The two differ in rare texts:

    - A word of WordPiece is unknown to theirs above 100 bytes, to ours above 100 characters.
    - With `lowercase`, a letter may become a sign within a word, as ⑴ becomes (1), and the
      vocabulary may have tokens of both.
    - A text may hold NUL.
    - Byte pairs differ where white spaces stand together, and where an `add_prefix_space` meets
      special tokens in a text.
    - Two ways to split a word into SentencePieces may have one score.

    Args:
        source: a tokenizer, or the preprocessor of a model, such as `model.preprocessor`.
        in_tf_data: whether texts were read in `tf.data`. False where the tokenizer was called on
            strings of Python: a `BytePairTokenizer` splits words otherwise then, as Llama 3 does.
            None: as `fit` of a KerasNLP model reads texts, in `tf.data` unless the library grain
            is installed.

    Returns:
        A `Subwords` or a `SentencePieces` with the same ids.

    Raises:
        ValueError: if the source has no vocabulary, or reads texts in a way that ours can not; the
            message names the way out.

    Reference: https://github.com/keras-team/keras-hub (keras_hub/src/tokenizers)

    Example:
        >>> import keras_nlp
        >>> from seqkeras.tokenizers import from_keras_nlp
        >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing"]
        >>> theirs = keras_nlp.tokenizers.BertTokenizer(vocabulary=words, lowercase=True)
        >>> from_keras_nlp(theirs).encode("Playing")
        [5, 6]
    """
    tokenizer = getattr(source, "tokenizer", source)
    base = _base(tokenizer)
    packed = _packed(source, tokenizer)
    if base == "WordPieceTokenizer":
        return _word_piece(tokenizer, packed)
    if base == "BytePairTokenizer":
        if in_tf_data is None:
            in_tf_data = reads_in_tf_data()
        return _byte_pairs(tokenizer, packed, in_tf_data)
    return _sentence_pieces(tokenizer, packed)


def reads_in_tf_data() -> bool:
    """Return whether `fit` of a KerasNLP model reads texts in `tf.data`, rather than by the library
    grain."""
    return importlib.util.find_spec("grain") is None


def _base(tokenizer):
    """Return the name, of `BASES`, of the class whose reading of texts it has."""
    kind = type(tokenizer)
    changed, base = set(), None
    for parent in kind.__mro__:
        if parent.__name__ in BASES and parent.__module__.split(".")[0] in PACKAGES:
            base = parent.__name__
            break
        changed |= vars(parent).keys() & set(OWN)
    if base is None:
        raise ValueError(
            f"from_keras_nlp: it must be one of KerasNLP's {', '.join(BASES)}, or a preprocessor "
            f"with one; received a {kind.__name__}."
        )
    if changed:
        raise ValueError(
            f"from_keras_nlp: a {kind.__name__} must read texts as a {base} does; it has a "
            f"{', '.join(sorted(changed))} of its own. Load the same model's tokenizer.json by "
            "Subwords.from_file instead."
        )
    if (tokenizer.proto if base == BASES[2] else tokenizer.vocabulary) is None:
        raise ValueError(
            f"from_keras_nlp: the {kind.__name__} must have a vocabulary; it has none."
        )
    return base


def _packed(source, tokenizer):
    """Return ids before a text, between two and after the last, as lists; None: none of them."""
    if source is not tokenizer:
        if getattr(source, "packer", None) is None:
            source.build(None)
        packer = source.packer
        parts = (getattr(packer, f"{name}_value", None) for name in ("start", "sep", "end"))
        return tuple([] if part is None else list(part) for part in map(_listed, parts))
    special = [getattr(tokenizer, f"{name}_token_id", None) for name in ("start", "end", "mask")]
    if None in special:
        return [], [], []
    start, end, _ = special
    doubled = any(parent.__name__ == "RobertaTokenizer" for parent in type(tokenizer).__mro__)
    return [start], [end] * (1 + doubled), [end]


def _listed(value):
    return [value] if isinstance(value, int) else value


def _word_piece(tokenizer, packed):
    if not tokenizer.split:
        raise ValueError(
            "from_keras_nlp: split must be True; with split=False a tokenizer reads words, and who "
            "makes them of a text is not known. Split in the tokenizer, or join each text's words "
            "by spaces and train on these with split=True."
        )
    library = require_library()
    ids = {token: index for index, token in enumerate(tokenizer.vocabulary)}
    if len(ids) < len(tokenizer.vocabulary):
        raise ValueError("from_keras_nlp: the vocabulary must hold each token once; one is twice.")
    made = library.Tokenizer(
        library.models.WordPiece(
            ids,
            unk_token=tokenizer.oov_token,
            max_input_chars_per_word=LONGEST_WORD,
            continuing_subword_prefix=tokenizer.suffix_indicator,
        )
    )
    made.normalizer = library.normalizers.BertNormalizer(
        clean_text=False,
        handle_chinese_chars=False,
        strip_accents=tokenizer.strip_accents,
        lowercase=False,
    )
    between, alone, alone_and_chinese = SPLITS
    splits = [between, alone_and_chinese if tokenizer.split_on_cjk else alone]
    if tokenizer.lowercase:
        [[pattern, behavior]] = splits[1:]
        folding = _folding(library, pattern, _inner_characters(tokenizer))
        made.normalizer = library.normalizers.Sequence([made.normalizer, *folding])
        splits = [(f"(?<={OPEN})[^{CLOSE}]+(?={CLOSE})|{pattern}", behavior), FOLDED_SPACES]
    made.pre_tokenizer = library.pre_tokenizers.Sequence(
        [
            library.pre_tokenizers.Split(library.Regex(pattern), behavior.lower())
            for pattern, behavior in splits
        ]
    )
    made.decoder = library.decoders.WordPiece(prefix=tokenizer.suffix_indicator)
    tokens = []
    if tokenizer.special_tokens_in_strings:
        special = getattr(tokenizer, "_init_special_tokens", None) or ()
        tokens = sorted({*tokenizer.special_tokens, *special})
    return _finished(made, packed, [token for token in tokens if token in ids])


def _folding(library, alone, inner):
    """Return normalizers that fold case as Unicode's NFKC_Casefold does, one after the other.

    KerasNLP folds words, which it has split before. So a sign that becomes several stays one word,
    between `OPEN` and `CLOSE`; and a letter becomes `NO_TOKEN` if it would be split then, and no
    token can hold what becomes of it.

    Args:
        library: `tokenizers`.
        alone: regular expression of what is a word by itself.
        inner: characters that tokens hold after the first of a word.

    Reference: https://www.unicode.org/reports/tr44/ (NFKC_Casefold)
    """
    normalizers, (signs, letters, folds) = library.normalizers, _changes(alone)
    unknown = "".join(character for character, splits in letters if not set(splits) <= inner)
    return [
        normalizers.Replace(library.Regex(SPACES), "\n"),
        *([normalizers.Replace(library.Regex(f"[{unknown}]"), NO_TOKEN)] if unknown else []),
        *(normalizers.Replace(sign, f"{OPEN}{became}{CLOSE}") for sign, became in signs),
        normalizers.NFKC(),
        normalizers.Lowercase(),
        *(normalizers.Replace(*fold) for fold in folds),
        normalizers.NFKC(),
        normalizers.Replace(library.Regex(IGNORED), ""),
    ]


def _inner_characters(tokenizer):
    """Return the characters that tokens hold after the first of a word."""
    prefix, characters = tokenizer.suffix_indicator, set()
    for token in tokenizer.vocabulary:
        characters |= set(token.removeprefix(prefix) if token.startswith(prefix) else token[1:])
    return characters


@functools.cache
def _changes(alone):
    """Return what folding changes of words that are split before.

    Args:
        alone: regular expression of what is a word by itself.

    Returns:
        Signs that become several, as pairs of character and what it becomes; letters that become
        such as stand alone, and these; letters in lower case that case folding changes, as pairs.
    """
    everything = (
        chr(code_point)
        for code_point in range(FIRST_UNCHANGED)
        if not 0xD800 <= code_point < 0xE000
    )
    forms = {character: _normalized(_normalized(character).casefold()) for character in everything}
    forms = {character: form for character, form in forms.items() if form != character}
    stands_alone = _matches(alone, sorted({*forms, *"".join(forms.values())}))
    signs, letters = [], []
    for character, form in forms.items():
        if character in stands_alone:
            signs += [(character, form)] * (len(form) > 1)
        elif splits := [part for part in form if part in stands_alone]:
            letters.append((character, splits))
    lower = {_normalized(part) for character in forms for part in _normalized(character).lower()}
    folds = [
        (character, character.casefold())
        for character in sorted(lower)
        if character.casefold() != character
    ]
    return signs, letters, folds


def _matches(pattern, characters):
    """Return the characters that a regular expression of the library matches."""
    library = require_library()
    split = library.pre_tokenizers.Split(library.Regex(pattern), "removed")
    parts = {part for part, _ in split.pre_tokenize_str("a".join(characters))}
    return set(characters) - set("".join(parts))


def _normalized(text):
    return unicodedata.normalize("NFKC", text)


def _byte_pairs(tokenizer, packed, in_tf_data):
    library = require_library()
    pairs = [merge.split(" ") for merge in tokenizer.merges if "#version:" not in merge]
    missing = [
        character
        for character in library.pre_tokenizers.ByteLevel.alphabet()
        if character not in tokenizer.vocabulary
    ]
    if missing:
        raise ValueError(
            "from_keras_nlp: the vocabulary must hold a token for each of the 256 bytes; it lacks "
            f"{len(missing)}, whose id is -1 to KerasNLP. Add them, and train again."
        )
    try:
        model = library.models.BPE(tokenizer.vocabulary, [tuple(pair) for pair in pairs])
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(
            f"from_keras_nlp: the merges must be of the vocabulary: {error}."
        ) from error
    made = library.Tokenizer(model)
    splits = library.pre_tokenizers
    if in_tf_data:
        made.pre_tokenizer = splits.ByteLevel(add_prefix_space=False)
        if tokenizer.add_prefix_space:
            made.normalizer = library.normalizers.Prepend(" ")
    else:
        made.pre_tokenizer = tokenizer._tokenizer.pre_tokenizer
    made.decoder = library.decoders.ByteLevel()
    whole = tokenizer.unsplittable_tokens or ()
    if unknown := [token for token in whole if token not in tokenizer.vocabulary]:
        raise ValueError(
            f"from_keras_nlp: unsplittable_tokens must be in the vocabulary; {unknown} are not, so "
            "that their id is -1 to KerasNLP. Add them, and train again."
        )
    return _finished(made, packed, whole)


def _finished(made, packed, special):
    """Return the `Subwords` of a library's tokenizer.

    Args:
        made: without special tokens.
        packed: the result of `_packed`.
        special: tokens that are found in texts.
    """
    library = require_library()
    before, between, behind = [[made.id_to_token(token_id) for token_id in part] for part in packed]
    around = {token for part in (before, between, behind) for token in part}
    if around:
        made.post_processor = library.processors.TemplateProcessing(
            single=[*before, "$A", *behind],
            pair=[*before, "$A", *between, "$B:1", *(f"{token}:1" for token in behind)],
            special_tokens=[(token, made.token_to_id(token)) for token in sorted(around)],
        )
    made.add_special_tokens(
        [library.AddedToken(token, special=True, normalized=False) for token in special]
    )
    return Subwords(made.to_str())


def _sentence_pieces(tokenizer, packed):
    bare = SentencePieces(tokenizer.proto)
    before, _, behind = [[bare.token_of(token) for token in part] for part in packed]
    prefix = [*before, *(["<s>"] if tokenizer.add_bos else [])]
    suffix = [*(["</s>"] if tokenizer.add_eos else []), *behind]
    return SentencePieces(tokenizer.proto, prefix=prefix, suffix=suffix)

"""Write what Python's tokenizers make of texts, for `serving/javascript`.

Without public data these are small vocabularies, random texts, and code points between two letters.
"""

import gzip
import json
import os
import random
from pathlib import Path

from seqkeras.serving.text import byte_pairs, read_byte_pairs, read_vocabulary, word_piece
from seqkeras.tokenizers import learn_byte_pairs, learn_word_piece
from tests.seqkeras.tokenizers.texts import special_texts
from tests.serving.javascript.bundles import TEXTS

MIXED = "ab Z'.,s\u0301\u03a3\t[MASK]<s>"
LAST = 0x110000
SURROGATES = range(0xD800, 0xE000)
OWN_TEXTS = [
    *TEXTS,
    "don't I'll  two  spaces \n\n new",
    *special_texts(),
    " ",
    "\u039f\u0394\u039f\u03a3 \u03a3",
]


def write(folder):
    """Write tokens.json: texts, and for each tokenizer its file and its encodings."""
    texts = [*OWN_TEXTS, *random_texts(1000), *public_texts()]
    found = {name: described(tokenizer, texts) for name, tokenizer in tokenizers().items()}
    content = json.dumps({"texts": [*texts, *code_points()], "tokenizers": found})
    (folder / "tokens.json").write_text(content, encoding="utf-8")


def described(tokenizer, texts):
    encodings = [tokenizer.analyze(text) for text in [*texts, *code_points()]]
    pair = tokenizer.analyze("the cat", "sat on")
    return {
        "file": json.loads(tokenizer.to_json()),
        "ids": [encoding.token_ids for encoding in encodings],
        "offsets": [encoding.offsets for encoding in encodings[: len(texts)]],
        "texts": [tokenizer.decode(encoding.token_ids) for encoding in encodings],
        "pair": {"ids": pair.token_ids, "segments": pair.segment_ids},
    }


def tokenizers():
    """Name -> tokenizer; of the vocabularies in SEQKERAS_DATA, where there are any."""
    learned = [*OWN_TEXTS, *random_texts(300)]
    bytes_of_own = learn_byte_pairs(learned, 400)
    found = {
        "word pieces": learn_word_piece(learned, 4000, True),
        "cased word pieces": learn_word_piece(learned, 4000, False),
        "word pieces with masks": learn_word_piece(learned, 4000, masks=True),
        "bytes": bytes_of_own,
        "bytes with masks": learn_byte_pairs(learned, 400, form="roberta", masks=True),
    }
    data = Path(os.environ.get("SEQKERAS_DATA", ""))
    if "SEQKERAS_DATA" not in os.environ or not (data / "vocab-bert").is_dir():
        return found
    bert, gpt2 = data / "vocab-bert", data / "vocab-gpt2"
    vocabulary, merges = read_byte_pairs(gpt2 / "encoder.json", gpt2 / "vocab.bpe")
    for token in ("<s>", "<pad>", "</s>", "<unk>", "<mask>"):
        vocabulary.setdefault(token, len(vocabulary))
    return found | {
        "bert": word_piece(read_vocabulary(bert / "bert-base-uncased-vocab.txt")),
        "chinese": word_piece(
            read_vocabulary(bert / "bert-base-chinese-vocab.txt"), lowercase=False
        ),
        "gpt2": byte_pairs(*read_byte_pairs(gpt2 / "encoder.json", gpt2 / "vocab.bpe")),
        "roberta": byte_pairs(vocabulary, merges, "roberta"),
    }


def random_texts(count):
    """Texts of any code points among letters, spaces and marks."""
    choice = random.Random(0)

    def character():
        code = choice.randrange(LAST if choice.random() < 0.5 else 0x3000)
        return character() if code in SURROGATES else chr(code)

    return [
        "".join(
            choice.choice([character(), choice.choice(MIXED)])
            for _ in range(choice.randrange(1, 20))
        )
        for _ in range(count)
    ]


def code_points():
    """Code points between two letters: of the planes of scripts and signs all, of others some."""
    codes = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xF8F0, 0x20000)]
    codes += [*range(0xE0000, 0xE0200), *range(0x3400, 0xD800, 97), *range(0x20000, LAST, 997)]
    return [
        " ".join(f"a{chr(code)}b" for code in codes[start : start + 500])
        for start in range(0, len(codes), 500)
    ]


def public_texts():
    """Questions and sentences in English, German, French and Chinese of SEQKERAS_DATA."""
    data = Path(os.environ.get("SEQKERAS_DATA", ""))
    questions = data / "reference-tokenization/bert_uncased_questions.jsonl.gz"
    if "SEQKERAS_DATA" not in os.environ or not questions.is_file():
        return []
    with gzip.open(questions) as lines:
        texts = [json.loads(line)["text"] for line in lines][:1000]
    for name in ("bert_uncased_edge_cases", "gpt2_edge_cases"):
        cases = json.loads((data / f"reference-tokenization/{name}.json").read_bytes())
        texts += [case["text"] for case in cases]
    for name in ("eng-deu", "eng-cmn", "eng-fra"):
        lines = (data / f"tatoeba/{name}.txt").read_bytes().decode().split("\n")
        texts += [line.split("\t")[1] for line in lines[:500]]
    return texts

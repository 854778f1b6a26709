"""A translator that is trained within seconds, of made sentences, for pictures of decoding.

English of a small grammar becomes Chinese, word by word, with measure words; some words have two
translations, each with its own probability, so that a search has a choice.
"""

import numpy as np

from seqkeras.tokenizers import pad

SPECIAL = ["<pad>", "<bos>", "<eos>"]
BOS, EOS = 1, 2
BATCH = 64
NOUNS = {"cat": ("只", "猫"), "dog": ("条", "狗"), "bird": ("只", "鸟"), "horse": ("匹", "马")}
ADJECTIVES = {"black": "黑", "white": "白", "small": "小"}
COUNTS = {"one": {"一": 1.0}, "two": {"两": 1.0}, "the": {"这": 0.7, "那": 0.3}}
VERBS = {
    "sees": {"看见": 0.6, "看到": 0.4},
    "likes": {"喜欢": 0.8, "爱": 0.2},
    "hears": {"听见": 0.5, "听到": 0.5},
}
HIDDEN_DIM, NUM_HEADS = 32, 2
LONGEST = 10  # Chinese words, and <eos>


def sentence(random):
    """Return the English and the Chinese words of a random sentence."""
    subject, subject_zh = _noun_phrase(random)
    verb, choices = _choice(random, VERBS)
    noun, noun_zh = _noun_phrase(random)
    words = random.choice([*choices], p=[*choices.values()])
    return [*subject, verb, *noun], [*subject_zh, str(words), *noun_zh]


def _noun_phrase(random):
    count, choices = _choice(random, COUNTS)
    adjective, adjective_zh = _choice(random, ADJECTIVES)
    noun, (measure, noun_zh) = _choice(random, NOUNS)
    noun = f"{noun}s" if count == "two" else noun
    count_zh = str(random.choice([*choices], p=[*choices.values()]))
    if random.random() < 0.5:
        return [count, noun], [count_zh, measure, noun_zh]
    return [count, adjective, noun], [count_zh, measure, adjective_zh, noun_zh]


def _choice(random, table):
    key = str(random.choice([*table]))
    return key, table[key]


def vocabularies():
    """Return the lists of English and Chinese words, special tokens first."""
    chinese = [word for pair in NOUNS.values() for word in pair] + [*ADJECTIVES.values()]
    chinese += [word for table in (COUNTS, VERBS) for words in table.values() for word in words]
    english = [word for table in (NOUNS, ADJECTIVES, COUNTS, VERBS) for word in table]
    english += [f"{noun}s" for noun in NOUNS]
    return [*SPECIAL, *english], [*SPECIAL, *dict.fromkeys(chinese)]


def encode(sentences, vocabulary):
    """Return (B, S) ids of lists of words, padded, and (B,) lengths."""
    return pad([[*map(vocabulary.index, words)] for words in sentences])


def train(steps=300, seed=0):
    """Return a `Transformer` of one layer, after so many steps of `BATCH` sentences.

    Raises:
        ValueError: if there is no step.
    """
    if steps < 1:
        raise ValueError(f"train: steps must be at least 1; received {steps}.")
    import keras

    from seqkeras.models import Transformer

    keras.utils.set_random_seed(seed)
    random = np.random.default_rng(seed)
    sources, targets = zip(*(sentence(random) for _ in range(BATCH * steps)))
    english, chinese = vocabularies()
    token_ids, lengths = encode(sources, english)
    next_ids, _ = encode([[*words, "<eos>"] for words in targets], chinese)
    target_ids, _ = encode([["<bos>", *words] for words in targets], chinese)
    sizes = len(english), len(chinese), HIDDEN_DIM, 1, NUM_HEADS, 2 * HIDDEN_DIM
    model = Transformer(*sizes, never_generated=(0, BOS))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.Adam(5e-3), loss)
    inputs = {"token_ids": token_ids, "lengths": lengths, "target_ids": target_ids}
    model.fit(inputs, next_ids, batch_size=BATCH, verbose=0, shuffle=False)
    return model


def read(text):
    """Return the words of a sentence, and their ids and length as a batch of one.

    Raises:
        ValueError: if there is none, or one that the translator does not know.
    """
    words, (english, _) = text.split(), vocabularies()
    unknown = [word for word in words if word not in english[len(SPECIAL) :]]
    if unknown or not words:
        raise ValueError(
            f"text must be words of {', '.join(english[len(SPECIAL) :])}; received "
            f"{unknown[0] if unknown else text!r}."
        )
    return words, *encode([words], english)

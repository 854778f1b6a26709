"""A small encoder that is trained within seconds to find what "it" stands for.

"The dog did not cross the street because it was too tired": a dog is tired, a street is wide. Alike
in Chinese: "狗 没有 过 街 因为 它 太 累". The classifier sees the place of "it" alone, so what it
knows of the sentence comes by attention.

Reference: Vaswani et al. 2017, and the blog post of the authors,
https://research.google/blog/transformer-a-novel-neural-network-architecture-for-language-understanding/
"""

import numpy as np

from seqkeras.tokenizers import pad

LANGUAGES = {  # template, animals and their adjectives, places and theirs, and the pronoun
    "en": (
        "the {} did not cross the {} because it was too {}",
        ("dog", "cat", "animal"), ("tired", "afraid"),
        ("street", "river", "bridge"), ("wide", "long"), "it",
    ),
    "zh": (
        "{} 没有 过 {} 因为 它 太 {} 了",
        ("狗", "猫", "动物"), ("累", "害怕"), ("街", "河", "桥"), ("宽", "长"), "它",
    ),
}  # fmt: skip
PRONOUNS = [pronoun for *_, pronoun in LANGUAGES.values()]
LONGEST, BATCH = 12, 64
HIDDEN_DIM, NUM_HEADS, NUM_LAYERS = 32, 4, 2


def sentence(random):
    """Return the words of a random sentence, the place of "it", and the place of its antecedent."""
    template, animals, of_animals, places, of_places, pronoun = LANGUAGES[
        str(random.choice([*LANGUAGES]))
    ]
    animal, location = str(random.choice(animals)), str(random.choice(places))
    adjective = str(random.choice(of_animals + of_places))
    words = template.format(animal, location, adjective).split()
    antecedent = animal if adjective in of_animals else location
    return words, words.index(pronoun), words.index(antecedent)


def vocabulary():
    """Return the list of words of both languages, padding first."""
    words = [
        word
        for template, *lists, _ in LANGUAGES.values()
        for part in (template.replace("{}", "").split(), *lists)
        for word in part
    ]
    return ["<pad>", *dict.fromkeys(words)]


def train(steps=200, seed=1):
    """Return a `Bert` with a classifier for each place, after so many steps of `BATCH` sentences.

    Raises:
        ValueError: if there is no step.
    """
    import keras

    from seqkeras.models import Bert, TaggingHead, WithHeads

    if steps < 1:
        raise ValueError(f"train: steps must be at least 1; received {steps}.")
    keras.utils.set_random_seed(seed)
    random = np.random.default_rng(seed)
    words, pronouns, antecedents = zip(*(sentence(random) for _ in range(BATCH * steps)))
    token_ids, lengths = encode(words)
    labels = np.zeros_like(token_ids)  # 0 is not counted
    rows = np.arange(len(words))
    labels[rows, list(pronouns)] = token_ids[rows, list(antecedents)]
    count = len(vocabulary())
    sizes = count, HIDDEN_DIM, NUM_LAYERS, NUM_HEADS, 2 * HIDDEN_DIM, LONGEST
    model = WithHeads(Bert(*sizes, num_segments=0, pooler=None), {"word": TaggingHead(count)})
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.Adam(3e-3), {"word": loss})
    inputs = {"token_ids": token_ids, "lengths": lengths}
    model.fit(inputs, {"word": labels}, batch_size=BATCH, verbose=0, shuffle=False)
    return model


def encode(sentences):
    """Return (B, T) ids of lists of words, padded, and (B,) lengths."""
    known = vocabulary()
    return pad([[*map(known.index, words)] for words in sentences])


def read(text):
    """Return the words of a sentence, and the place of "it".

    Raises:
        ValueError: if there is none, or a word that the grammar does not know, or the sentence is
            too long.
    """
    words, known = text.split(), vocabulary()
    unknown = [word for word in words if word not in known]
    pronouns = [index for index, word in enumerate(words) if word in PRONOUNS]
    if unknown or len(pronouns) != 1 or len(words) > LONGEST:
        raise ValueError(
            f"text must be at most {LONGEST} words of {', '.join(known[1:])}, one of them "
            f"{' or '.join(PRONOUNS)}; received {unknown[0] if unknown else text!r}."
        )
    return words, *pronouns

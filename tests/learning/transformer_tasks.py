"""Tasks for Transformers: transductions of short sequences, and a language whose best answers are
known.

Each takes a number of examples and a NumPy random generator.
"""

import numpy as np

PAD, BOS, EOS = range(3)
SYMBOLS = np.arange(3, 11)
TASKS = {"copy": 11, "reverse": 12, "sort": 13}  # the source's first token says which
VOCAB_SIZE = 14
RIGHT = {"copy": lambda source: source, "reverse": lambda source: source[::-1], "sort": np.sort}


def transductions(examples, lengths, random, names=tuple(TASKS)):
    """Sequences to copy, to reverse or to sort; the longer a length, the more often it is drawn.

    Returns:
        Inputs as `Transformer` takes them, and the (N, T) targets, padded: the answer and <eos>.
    """
    weights = np.array(lengths) ** 1.5
    drawn = random.choice(lengths, size=examples, p=weights / weights.sum())
    width = max(lengths) + 2
    token_ids, target_ids, targets = np.zeros((3, examples, width), int)
    for row, length in enumerate(drawn):
        name, source = names[row % len(names)], random.choice(SYMBOLS, length)
        answer = RIGHT[name](source)
        token_ids[row, : length + 2] = [TASKS[name], *source, EOS]
        target_ids[row, : length + 1] = [BOS, *answer]
        targets[row, : length + 1] = [*answer, EOS]
    inputs = {"token_ids": token_ids, "lengths": drawn + 2, "target_ids": target_ids}
    return inputs, targets


CLS, SEP, MASK = 1, 2, 3
NUM_TOPICS = 4
NOUNS = np.arange(4, 12).reshape(NUM_TOPICS, 2)
VERBS = np.arange(12, 16)
LANGUAGE_SIZE = 16


def pairs_of_sentences(examples, random):
    """Two sentences, noun verb noun verb, each about one topic, with a token masked in each.

    A topic has two nouns and one verb: a masked verb is known from what stands around it, and a
    masked noun is one of two. The second sentence follows the first one, and has its topic, or is
    drawn anew, by chance of the same topic.

    Returns:
        Inputs as `WithHeads` takes them; targets of "masked" and "next"; and the probability that
        who knows the language gives each target.
    """
    first = random.integers(NUM_TOPICS, size=examples)
    follows = random.integers(2, size=examples) == 0
    second = np.where(follows, first, random.integers(NUM_TOPICS, size=examples))
    ones = np.ones((examples, 1), int)
    sentences = [_sentences(topics, random) for topics in (first, second)]
    token_ids = np.hstack([CLS * ones, sentences[0], SEP * ones, sentences[1], SEP * ones])
    places = np.stack([random.integers(1, 5, examples), random.integers(6, 10, examples)], axis=1)
    masked = np.take_along_axis(token_ids, places, axis=1)
    np.put_along_axis(token_ids, places, MASK, axis=1)
    inputs = {
        "token_ids": token_ids,
        "segment_ids": np.tile([0] * 6 + [1] * 5, (examples, 1)),
        "masked_positions": places,
    }
    # Of pairs with one topic: 1/2 follow, and 1/2 * 1/4 are drawn so.
    by_chance = 0.5 / NUM_TOPICS
    follow = np.where(first == second, 0.5 / (0.5 + by_chance), 0.0)
    known = {
        "masked": np.where(masked >= VERBS[0], 1.0, 0.5),
        "next": np.where(follows, follow, 1 - follow),
    }
    return inputs, {"masked": masked, "next": (~follows).astype(int)}, known


def _sentences(topics, random):
    nouns = NOUNS[topics[:, None], random.integers(2, size=(len(topics), 2))]
    verbs = VERBS[topics]
    return np.stack([nouns[:, 0], verbs, nouns[:, 1], verbs], axis=1)

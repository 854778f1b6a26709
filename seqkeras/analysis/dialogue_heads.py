"""The attention of several heads over a dialogue: whose words each head follows.

Two speakers say what they drink and which town they visit; one of them goes on "so we drink". A
small encoder tells at the last word what that speaker drinks, and what the other one does, so it
needs the words of both; the heads share the work.

Reference: Vaswani et al. 2017, section 3.2.2 and figures 3 to 5, https://arxiv.org/abs/1706.03762
"""

import numpy as np

from seqkeras.analysis.attention_heads import HeadsOfWord, draw_panel
from seqkeras.analysis.figure_style import INK, RULE, new_figure, write_png
from seqkeras.tokenizers import pad

SPEAKERS = ("ann", "bob")
TOPICS = {
    "drink": ("tea", "milk", "juice", "water", "cocoa"),
    "visit": ("rome", "oslo", "paris", "delhi", "lima"),
}
BATCH, LONGEST, EASY = 64, 20, 3 / 8
NAMES = -0.6  # place of the speakers' names
HIDDEN_DIM, NUM_HEADS, NUM_LAYERS = 32, 4, 1
DIALOGUE = (
    ("ann", "i drink tea"),
    ("bob", "i visit oslo"),
    ("bob", "i drink milk"),
    ("ann", "i visit rome"),
)


def facts(turns):
    """Return (speaker, topic) -> value of turns (speaker, text)."""
    return {
        (speaker, topic): text.split()[-1]
        for speaker, text in turns
        for topic in TOPICS
        if text.startswith(f"i {topic} ")
    }


def asked(turns, speaker, topic):
    """Return a dialogue that ends with a question, the answer of each head, and its place.

    Args:
        turns: list of (speaker, text), among them what both speakers say of the topic.
        speaker: the one who asks.
        topic: a key of `TOPICS`.

    Returns:
        The turns; the words of the speaker and of the other one that answer.
    """
    known = facts(turns)
    other = SPEAKERS[1 - SPEAKERS.index(speaker)]
    return [*turns, (speaker, f"so we {topic}")], (known[speaker, topic], known[other, topic])


def dialogue(random, asking=SPEAKERS):
    """Return a random dialogue, whose last speaker is one of those asking, as `asked` returns
    it."""
    turns = [
        (speaker, f"i {topic} {random.choice(values)}")
        for speaker in SPEAKERS
        for topic, values in TOPICS.items()
    ]
    turns = [turns[index] for index in random.permutation(len(turns))]
    return asked(turns, str(random.choice(asking)), str(random.choice([*TOPICS])))


def vocabulary():
    """Return the list of words, padding first."""
    words = [word for topic, values in TOPICS.items() for word in (topic, *values)]
    return ["<pad>", "i", "so", "we", *words]


def encode(dialogues):
    """Return the inputs of the model for lists of turns."""
    known = vocabulary()
    words = [[word for _, text in turns for word in text.split()] for turns in dialogues]
    speakers = [
        [SPEAKERS.index(speaker) for speaker, text in turns for _ in text.split()]
        for turns in dialogues
    ]
    token_ids, lengths = pad([[*map(known.index, row)] for row in words])
    return {"token_ids": token_ids, "lengths": lengths, "segment_ids": pad(speakers)[0]}


def train(steps=400, seed=1):
    """Return a `Bert` that tells the speaker's word and the other's at the last word, after so many
    steps of `BATCH` dialogues.

    The first speaker asks in the first dialogues, `EASY` of all: who is meant by the speaker and
    the other is then a matter of keys alone, and the rest is learned within seconds.

    Raises:
        ValueError: if there is no step.
    """
    import keras

    from seqkeras.models import Bert, TaggingHead, WithHeads

    if steps < 1:
        raise ValueError(f"train: steps must be at least 1; received {steps}.")
    keras.utils.set_random_seed(seed)
    random = np.random.default_rng(seed)
    count = BATCH * steps
    easy = [dialogue(random, SPEAKERS[:1]) for _ in range(int(EASY * count))]
    others = [dialogue(random) for _ in range(count - len(easy))]
    dialogues, answers = zip(*easy, *others)
    inputs, known = encode(dialogues), vocabulary()
    labels = {}
    for index, name in enumerate(("own", "other")):
        labels[name] = np.zeros_like(inputs["token_ids"])  # 0 is not counted
        places = np.arange(len(dialogues)), inputs["lengths"] - 1
        labels[name][places] = [known.index(words[index]) for words in answers]
    sizes = len(known), HIDDEN_DIM, NUM_LAYERS, NUM_HEADS, 2 * HIDDEN_DIM, LONGEST
    model = WithHeads(
        Bert(*sizes, num_segments=2, pooler=None),
        {name: TaggingHead(len(known)) for name in labels},
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.Adam(3e-3), dict.fromkeys(labels, loss))
    model.fit(inputs, labels, batch_size=BATCH, verbose=0, shuffle=False)
    return model


def answers_of(model, dialogues):
    """Return the words that a model gives for each dialogue: the speaker's and the other
    speaker's."""
    inputs, known = encode(dialogues), vocabulary()
    outputs, rows = model(inputs), np.arange(len(dialogues))
    best = [
        np.asarray(outputs[name])[rows, inputs["lengths"] - 1].argmax(axis=-1)
        for name in ("own", "other")
    ]
    return [tuple(known[index] for index in pair) for pair in zip(*best)]


def shares(model, dialogues):
    """Return two (B, L, N) arrays: the shares of the last word's attention on the speaker's earlier
    turns, and on the other speaker's earlier turns."""
    from keras import ops

    inputs = encode(dialogues)
    weights = ops.convert_to_numpy(model.attention_weights(inputs)["encoder"])
    rows, last = np.arange(len(dialogues)), inputs["lengths"] - 1
    weights = weights[rows, :, :, last]  # (B, L, N, T)
    segments = inputs["segment_ids"]
    questions = [len(turns[-1][1].split()) for turns in dialogues]
    earlier = np.arange(segments.shape[1]) < (inputs["lengths"] - questions)[:, None]
    mine = segments == segments[rows, last][:, None]
    return [(weights * (mask & earlier)[:, None, None]).sum(axis=-1) for mask in (mine, ~mine)]


def panel_of(model, turns):
    """Return what the last word of a dialogue attends to in the last layer, a `HeadsOfWord`."""
    from keras import ops

    words = [word for _, text in turns for word in text.split()]
    heads = ops.convert_to_numpy(model.attention_weights(encode([turns]))["encoder"])[0, -1]
    speaker, [(speaker_word, other_word)] = turns[-1][0], answers_of(model, [turns])
    title = f"{speaker}: {turns[-1][1]} → {speaker_word}, {other_word}"
    return HeadsOfWord(words, len(words) - 1, heads[:, -1], title)


def dialogue_figure(panels):
    """Return the matplotlib Figure of pairs of a `HeadsOfWord` and the turns of its dialogue."""
    height = max(len(panel.words) for panel, _ in panels) + 2
    figure = new_figure(6.4 * len(panels), 0.27 * height + 0.4)
    for axes, (panel, turns) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        draw_panel(axes, panel)
        begin = 0
        for speaker, text in turns:
            axes.text(NAMES, begin, f"{speaker}:", va="center", color=INK)
            begin += len(text.split())
            if begin < len(panel.words):
                axes.axhline(begin - 0.5, color=RULE, linewidth=0.8, zorder=0)
        axes.set_xlim(NAMES - 0.1, None)
    return figure


def plot_dialogue(path, topic="drink", steps=400, seed=1):
    """Train the small encoder, and draw what the last word of a dialogue attends to, once for each
    speaker who asks, into a PNG file.

    Args:
        path: the file, replaced if it exists.
        topic: a key of `TOPICS`.
        steps, seed: of the training.

    Raises:
        ValueError: if the topic is unknown.
    """
    if topic not in TOPICS:
        raise ValueError(f"topic must be one of {', '.join(TOPICS)}; received {topic!r}.")
    model = train(steps, seed)
    dialogues = [asked(list(DIALOGUE), speaker, topic)[0] for speaker in SPEAKERS]
    panels = [(panel_of(model, turns), turns) for turns in dialogues]
    write_png(lambda: dialogue_figure(panels), path)

"""Heads of a model that reads a dialogue follow different speakers."""

import numpy as np

from seqkeras.analysis import dialogue_heads
from seqkeras.analysis.attention_heads import BAR
from tests.arrays import close
from tests.conftest import long_fixture


@long_fixture
def model():
    return dialogue_heads.train()


def test_the_model_tells_the_words_of_both_speakers_in_new_dialogues(model):
    random = np.random.default_rng(11)
    dialogues, answers = zip(*(dialogue_heads.dialogue(random) for _ in range(100)))
    found = dialogue_heads.answers_of(model, dialogues)
    assert np.mean([one == other for one, other in zip(found, answers)]) > 0.95


def test_one_head_follows_the_speaker_and_another_the_other(model):
    random = np.random.default_rng(12)
    dialogues, _ = zip(*(dialogue_heads.dialogue(random) for _ in range(100)))
    own, other = (share.mean(axis=0)[-1] for share in dialogue_heads.shares(model, dialogues))
    assert own.max() > 2 * other[own.argmax()]
    assert other.max() > 2 * own[other.argmax()]


def test_a_panel_shows_the_question_its_answers_and_the_weights(model):
    turns, (own, other) = dialogue_heads.asked([*dialogue_heads.DIALOGUE], "bob", "visit")
    assert (own, other) == ("oslo", "rome")
    panel = dialogue_heads.panel_of(model, turns)
    assert panel.title == "bob: so we visit → oslo, rome"
    assert panel.words[panel.row] == "visit"
    [axes] = dialogue_heads.dialogue_figure([(panel, turns)]).axes
    bars = [bar.get_width() for bar in axes.patches][1::2]  # each after its frame
    weights = np.asarray(model.attention_weights(dialogue_heads.encode([turns]))["encoder"])
    close(np.array(bars) / BAR, weights[0, -1, :, -1].ravel(), atol=1e-5)
    names = [text.get_text() for text in axes.texts if text.get_text().endswith(":")]
    assert names == ["ann:", "bob:", "bob:", "ann:", "bob:"]

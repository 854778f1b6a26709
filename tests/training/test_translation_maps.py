"""The picture of where a translator looks: the last layer, and the model's answers."""

from types import SimpleNamespace

import numpy as np

from seqkeras.tokenizers import BOS, learn_tokenizer, word_piece
from seqkeras.training.parts import translation_maps

LAYERS, HEADS = 3, 2
SOURCES = ["I am here", "I was there", "a text that is far too long " * 9, "we are here", "no"]
ANSWERS = {
    "I am here": "我在这里",
    "I was there": "我在那里",
    "we are here": "我们在这里",
    "no": "",
}


class Model:
    """Attention that tells its layer: in layer l all of it is at token l of the source."""

    def __init__(self):
        self.read = []

    def attention_weights(self, inputs):
        shape = LAYERS, HEADS, inputs["target_ids"].shape[1], inputs["token_ids"].shape[1]
        weights = np.zeros((1, *shape), "float32")
        for layer in range(LAYERS):
            weights[0, layer, ..., layer] = 1
        self.read.append(inputs)
        return {"cross": weights}


def test_it_is_of_the_last_layer_and_the_answers_token_by_token(monkeypatch):
    source = learn_tokenizer("bpe", [*SOURCES] * 9, 60)
    target = learn_tokenizer("bpe", [*ANSWERS.values(), "别的译文"] * 9, 19)
    run = SimpleNamespace(
        tokenizers={"source": source, "target": target},
        validation=[{"text": text, "target": "别的译文"} for text in SOURCES],
        record=SimpleNamespace(decoding={"start_id": BOS}),
    )
    answered, drawn = [], []

    def answers(run):
        def answer(model, texts):
            answered.extend(texts)
            return [SimpleNamespace(text=ANSWERS[text]) for text in texts]

        return answer

    monkeypatch.setattr(translation_maps, "Translate", answers)
    monkeypatch.setattr(
        translation_maps, "plot_attention_maps", lambda panels, path: drawn.extend(panels)
    )
    model = Model()
    translation_maps.draw_attention(model, run, "attention.png")
    assert answered == [SOURCES[0], SOURCES[1], SOURCES[3], SOURCES[4]]
    shown = [SOURCES[place] for place in (0, 1, 3)]
    targets = [[BOS, *target.encode(ANSWERS[text])[:-1]] for text in shown]
    assert [inputs["target_ids"].tolist() for inputs in model.read] == [[row] for row in targets]
    titles = [None] * 3 + [f"layer {LAYERS - 1}, head {head}" for head in range(HEADS)]
    assert [panel.title for panel in drawn] == titles
    for panel, text in zip(drawn, [*shown, *shown[-1:] * HEADS], strict=True):
        assert "".join(panel.target) == ANSWERS[text] and len(panel.target) > 1
        ends = np.cumsum([count for _, count in source.analyze(text).words()])
        looked_at = int(np.searchsorted(ends, LAYERS - 1, side="right"))
        assert (np.argmax(panel.weights, axis=1) == looked_at).all()


def test_an_answer_of_word_pieces_is_read_without_its_special_tokens():
    table = word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "we", "are", "##n"])
    read = translation_maps._read(table, "we aren", special_tokens=False)
    assert read.tokens == ["we", "are", "##n"]
    assert read.token_ids == table.analyze("we aren").token_ids[1:-1]
    assert None not in read.offsets and read.texts == ("we aren",)
    assert translation_maps._read(table, "we aren").tokens[0] == "[CLS]"

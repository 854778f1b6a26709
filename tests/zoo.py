"""A small model of every pipeline with random weights, saved as a run.

A maker takes the run's folder, writes the run, and returns real inputs of its pipeline.
"""

import keras

from seqkeras.attention import StructuredSelfAttention
from seqkeras.export import save_run
from seqkeras.models import (
    GPT,
    Bert,
    BiDAF,
    BiLM,
    ClassificationHead,
    Forecaster,
    MaskedLMHead,
    MultipleChoiceHead,
    NextSentenceHead,
    RegressionHead,
    RNNLanguageModel,
    SentenceEncoder,
    TaggingHead,
    Transformer,
    TreeClassifier,
    WithHeads,
)
from seqkeras.recurrent import GRU
from seqkeras.tokenizers import CharacterTable, WordTable, word_places
from seqkeras.tokenizers.learn import learn_byte_pairs, learn_word_piece
from tests.arrays import floats, randomize
from tests.export.test_text_graphs import pairs as byte_pairs_of_roberta

TEXTS = [
    "A model may be small.",
    "Small words, and smaller ones!",
    "What is here is there.",
    "The model reads a few words.",
    "Nothing else is said here.",
    "Words are made of parts.",
]
LIMIT = 24


def encoder(vocab_size):
    return Bert(vocab_size, 16, 1, 2, 24, max_length=LIMIT)


def classify(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    model = WithHeads(encoder(len(tokenizer)), {"label": ClassificationHead(3)})
    settings = {"output": "label", "labels": ["low", "middle", "high"]}
    targets = ["low", "middle", "low", "high"]
    return saved(folder, model, "Classify", tokenizer, TEXTS, settings=settings, targets=targets)


def classify_frames(folder):
    frames = keras.Input((None, 3), name="frames")
    hidden = GRU(7, return_sequences=True)(frames)
    hidden = keras.layers.Dense(2)(StructuredSelfAttention(5, 2)(hidden)[0])
    model = keras.Model(frames, hidden)
    settings = {"labels": ["wave", "still"]}
    recordings = [floats(length, 3, seed=length) for length in (5, 7, 11)]
    return saved(folder, model, "Classify", {}, recordings, settings=settings)


def regress(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    model = WithHeads(encoder(len(tokenizer)), {"score": RegressionHead(1)})
    return saved(folder, model, "Classify", tokenizer, TEXTS, settings={"output": "score"})


def tag(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    model = WithHeads(encoder(len(tokenizer)), {"tags": TaggingHead(3)})
    settings = {"output": "tags", "labels": ["O", "B-THING", "I-THING"]}
    return saved(folder, model, "Tag", tokenizer, TEXTS, settings=settings)


def fill_mask(folder):
    tokenizer = learn_word_piece(TEXTS, 80, masks=True)
    heads = {"token": MaskedLMHead(len(tokenizer)), "next": NextSentenceHead()}
    texts = [text.replace("a", "[MASK]", 2) for text in TEXTS]
    texts = [text for text in texts if "[MASK]" in text]
    model = WithHeads(encoder(len(tokenizer)), heads)
    return saved(folder, model, "FillMask", tokenizer, texts, settings={"output": "token"})


def fill_mask_of_byte_pairs(folder):
    tokenizer = byte_pairs_of_roberta("roberta")
    texts = ["A model <mask> <mask>.", "<mask> small", "What is  <mask>\nsaid<mask>?"]
    model = WithHeads(encoder(len(tokenizer)), {"token": MaskedLMHead(len(tokenizer))})
    settings = {"output": "token", "mask_token": "<mask>"}
    return saved(folder, model, "FillMask", tokenizer, texts, settings=settings)


def choose(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    model = WithHeads(encoder(len(tokenizer)), {"choice": MultipleChoiceHead()})
    model.build({"token_ids": (None, None, None)})
    inputs = [
        {"text": text, "choices": ["small", "words", "said"][: 2 + place % 2]}
        for place, text in enumerate(TEXTS)
    ]
    return saved(folder, model, "Choose", tokenizer, inputs, settings={"output": "choice"})


def answer_of_words(folder):
    words = [text[start:end] for text in TEXTS for start, end in word_places(text)]
    tables = {"words": WordTable.learn(words), "characters": CharacterTable.learn(TEXTS)}
    sizes = [len(table) for table in tables.values()]
    model = BiDAF(sizes[0], 5, sizes[1], 3, 7, 5)
    model.build(None)
    settings = {"start": "start_logits", "end": "end_logits", "question_length": 9}
    pairs = [("What is small?", text) for text in TEXTS]
    return saved(folder, model, "Answer", tables, pairs, settings=settings)


TREES = ["(3 (2 A) (4 (2 small) (2 model)))", "((a) (film))", "(2 words)"]


def classify_trees(folder):
    model = TreeClassifier(9, 5, 7, 3)
    model.build(None)
    tables = {"words": WordTable.learn(["a", "small", "model", "words"])}
    settings = {"labels": ["low", "middle", "high"]}
    return saved(folder, model, "Classify", tables, TREES, settings=settings)


def embed(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    return saved(folder, SentenceEncoder(encoder(len(tokenizer))), "Embed", tokenizer, TEXTS)


def embed_words(folder):
    characters = CharacterTable.learn(TEXTS)
    model = BiLM(17, len(characters), 5, [1, 3], [7, 11], 13, 7, num_layers=3)
    model.build(None)
    return saved(folder, model, "Embed", {"characters": characters}, TEXTS)


def forecast(folder):
    model = Forecaster(horizon=5, units=7, num_targets=2)
    model.build({"window": (None, None, 3)})
    windows = [floats(length, 3, seed=length).tolist() for length in (11, 13, 17)]
    return saved(folder, model, "Forecast", None, windows)


def generate(folder):
    tokenizer = learn_byte_pairs(TEXTS, 300)
    model = GPT(len(tokenizer), 16, 2, 2, 24, LIMIT)
    return saved(folder, model, "Generate", tokenizer, TEXTS, target_length=LIMIT)


def generate_by_characters(folder):
    tokenizer = CharacterTable.learn(TEXTS)
    model = RNNLanguageModel(len(tokenizer), 5, 7)
    return saved(folder, model, "Generate", tokenizer, TEXTS, target_length=LIMIT + 9, end_id=3)


def translate(folder):
    table = CharacterTable.learn(TEXTS)
    model = Transformer(len(table), len(table), 16, 2, 2, 24, max_length=11)
    model.build()
    randomize(model)
    save_run(
        folder,
        model,
        "Translate",
        [{"text": text, "target": text[::-1][:8]} for text in TEXTS],
        {"source_length": 40, "target_length": 11},
        {"source": table, "target": table},
        decoding={"num_beams": 2},
    )
    return TEXTS


def saved(
    folder, model, pipeline, tokenizer, inputs, target_length=1, settings=None, targets=(), end_id=1
):
    if not model.built:
        model.build({"token_ids": (None, None)})
    randomize(model)
    save_run(
        folder,
        model,
        pipeline,
        [
            {"input": each} | ({"target": targets[place]} if place < len(targets) else {})
            for place, each in enumerate(inputs)
        ],
        {
            "source_length": LIMIT if target_length == 1 else LIMIT + 8,
            "target_length": target_length,
        },
        tokenizer if isinstance(tokenizer, dict | None) else {"text": tokenizer},
        settings=settings,
        decoding={"start_id": 0, "end_id": end_id} if target_length > 1 else None,
    )
    return inputs


MAKERS = [
    classify,
    forecast,
    generate,
    classify_trees,
    tag,
    fill_mask,
    fill_mask_of_byte_pairs,
    choose,
    answer_of_words,
    embed,
    embed_words,
    generate_by_characters,
    translate,
]

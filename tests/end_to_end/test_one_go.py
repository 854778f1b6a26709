"""Pipelines on exported models give the numbers of the Keras models."""

import numpy as np
import pytest

from seqkeras import models, serving
from seqkeras.decoding import best_spans
from seqkeras.export.families import plan_export
from seqkeras.serving.manifest import Limits
from seqkeras.serving.text import CharacterTable, WordTable, word_places
from tests.arrays import numbers, randomize
from tests.serving.exported import export_graphs
from tests.serving.written import write

LIMIT = 29


def pipeline_of(model, folder, pipeline, settings, tokenizers):
    graphs = export_graphs(folder, plan_export(model))
    write(folder, pipeline, graphs, tokenizers, limits=Limits(LIMIT), settings=settings)
    return serving.load(folder, threads=2)


QUESTIONS = [
    ("Who sat on the mat?", "The big dog ran to Paris; the cat's on the old mat, says Åke."),
    ("where", "New York"),
    ("Is this extraordinarily long?", "no, unextraordinary: the old mat"),
    ("Who?", "cat."),
]


def words_of(text):
    return [text[start:end] for start, end in word_places(text)]


def ids_of(texts, words, characters, most):
    """The ids of the words and of the first characters of each, in loops."""
    split = [words_of(text) for text in texts]
    longest = max(map(len, split))
    width = max(min(len(word), most) for row in split for word in row)
    word_ids = np.zeros((len(texts), longest), int)
    character_ids = np.zeros((len(texts), longest, width), int)
    for row, own in enumerate(split):
        for place, word in enumerate(own):
            known = word.lower() in words.words
            word_ids[row, place] = words.id_of(word.lower()) if known else 1
            for at, character in enumerate(word[:most]):
                known = character in characters.characters
                character_ids[row, place, at] = characters.id_of(character) if known else 1
    return word_ids, character_ids, np.array([len(own) for own in split])


@pytest.mark.long
def test_answers_of_words_and_characters(tmp_path):
    """BiDAF: the best spans by its own decoding, of all questions at once."""
    known = "the cat sat on old mat big dog ran to paris , . ? who where".split()
    words = WordTable.learn(known, lowercase=True)
    characters = CharacterTable.learn(["abcdefghijklmnoprstuwyNTPÅ,.?"])
    model = models.BiDAF(len(words), 7, len(characters), 5, 11, 6, character_width=3)
    inputs = {}
    for side, texts in zip(("query", "context"), zip(*QUESTIONS, strict=True), strict=True):
        found = ids_of(texts, words, characters, most=5)
        names = [f"{side}_{part}" for part in ("ids", "characters", "lengths")]
        inputs |= dict(zip(names, found, strict=True))
    model(inputs)
    randomize(model)
    settings = {"start": "start_logits", "end": "end_logits"}
    settings |= {"answer_length": 3, "word_length": 5, "question_length": 7}
    tables = {"words": words, "characters": characters}
    ask = pipeline_of(model, tmp_path, "Answer", settings, tables)
    outputs = model(inputs)
    starts, ends, scores = map(
        numbers, best_spans(outputs["start_logits"], outputs["end_logits"], 3)
    )
    logits = {name: numbers(value).astype("float64") for name, value in outputs.items()}
    answers = ask(QUESTIONS, token_budget=8)
    assert [ask(each).text for each in QUESTIONS] == [answer.text for answer in answers]
    assert len({answer.text for answer in answers}) > 2
    for row, ((_, context), answer) in enumerate(zip(QUESTIONS, answers, strict=True)):
        places = word_places(context)
        assert (answer.start, answer.end) == (places[starts[row]][0], places[ends[row]][1])
        assert answer.text == context[answer.start : answer.end]
        start, end = logits["start_logits"][row], logits["end_logits"][row]
        spans = [
            start[i] + end[j] for i in range(len(places)) for j in range(i, min(i + 3, len(places)))
        ]
        best = start[starts[row]] + end[ends[row]]
        assert answer.score == pytest.approx(np.exp(best) / np.exp(spans).sum(), abs=1e-5)
    for pair, message in {
        ("who", "cat " * 30): "context has 30 words; the limit is 29. ",
        ("who " * 8, "cat"): "question has 8 words; the limit is 7. ",
        ("who", "\0"): "context has no word; write something",
    }.items():
        with pytest.raises(ValueError, match=f"^Answer: input, {message}"):
            ask(pair)
    expected = ask(("who " * 7, "cat " * 29))
    assert ask(("who " * 8, "cat " * 30), truncate=True) == expected

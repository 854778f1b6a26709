"""The whole road of the dates task: what was trained is what is served."""

import json
import re

import keras
import numpy as np

from seqkeras import serving
from seqkeras.data import dates
from seqkeras.decoding import Constraint, greedy, in_batches
from seqkeras.tokenizers import BOS, EOS, CharacterTable, pad
from seqkeras.training.parts.dates import KINDS


def test_the_bundle_answers_unseen_dates_as_well_as_training_measured(dates_run, dates_bundle):
    scores = json.loads((dates_run / "scores.json").read_text())
    translate = serving.load(dates_bundle)
    for kind, shares in KINDS.items():
        examples = dates.sample("test", scores["examples"], 0, locales=("de", "ja"), **shares)
        answers = translate([example.text for example in examples])
        right = [a.text == e.target for a, e in zip(answers, examples, strict=True)]
        assert np.mean(right) == scores[kind]


def test_serving_answers_as_the_keras_model_does(dates_run, dates_bundle):
    model = keras.models.load_model(dates_run / "model.keras")
    source, target = (
        CharacterTable.from_file(dates_run / "tokenizer" / f"{role}.json")
        for role in ("source", "target")
    )
    texts = [example.text for example in dates.sample("validation", 100, 5, 0.5, ("de", "ja"))]

    def decode(token_ids, lengths):
        state = model.encode(token_ids, lengths)
        constraint = Constraint.of_regex(dates.ANSWERS, target, EOS)
        return greedy(
            model.step, state, start_id=BOS, end_id=EOS, max_length=11, constraint=constraint
        )

    token_ids, _, scores = in_batches(decode, [source.encode(text) for text in texts], pad, 32)
    answers = serving.load(dates_bundle)(texts)
    assert [answer.text for answer in answers] == [target.decode(row) for row in token_ids]
    np.testing.assert_allclose([answer.score for answer in answers], scores, atol=1e-4)


def test_no_answer_is_a_date_that_the_calendar_lacks(dates_bundle):
    texts = [
        "de|30. Februar 2014",
        "de|31.4.2015",
        "ja|2019年2月29日",
        "de|3. Mai 1912",
        "ja|2112-12-12",
    ]
    for options in ({}, {"num_beams": 4, "n_best": 3}):
        for answer in serving.load(dates_bundle)(texts, **options):
            for each in (answer, *answer.alternatives):
                assert re.fullmatch(dates.ANSWERS, each.text), each

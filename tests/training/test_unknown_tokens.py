"""Every task tells which tokens of its inputs and targets its vocabularies do not know."""

import pytest

from seqkeras.runs import RunError
from seqkeras.tokenizers import CharacterTable, WordTable
from seqkeras.training.tasks import TASKS
from seqkeras.training.unknown_tokens import require_known_targets, tell_unknown_tokens

WITHOUT_TEXTS = ("forecasting", "several")  # of several tasks each says its own


class Toy:
    """What is read of a task: two corpora of inputs, and targets."""

    name, way_out_of_unknown = "toy", "Choose another."

    @property
    def reading(self):
        return self

    def texts_read(self, examples, tokenizers):
        yield "inputs", "words", [text for text, _ in examples]
        yield "inputs", "words", [("x", "a")]
        yield "targets", "characters", [target for _, target in examples]


TOKENIZERS = {"words": WordTable.learn(["a", "b"]), "characters": CharacterTable.learn(["xy"])}


def test_a_line_tells_the_shares_and_the_most_frequent_unknown_tokens(capsys):
    examples = [("a \u20ac \u20ac 1", "xy17"), ("a b", "xxyyy1")]
    found = tell_unknown_tokens(Toy(), examples, TOKENIZERS, "training")
    assert {use: (own.count, own.total) for use, own in found.items()} == {
        "inputs": (4, 8),
        "targets": (3, 10),
    }
    assert capsys.readouterr().out == (
        "  training: the vocabulary does not know 50.00% of the tokens of inputs ('\u20ac', '1', "
        "'x') and 30.00% of the tokens of targets ('1', '7')\n"
    )
    require_known_targets(Toy(), found, 0.3)
    message = (
        "^toy: the vocabulary does not know 30.00% of the tokens of targets, more than "
        "--unknown-targets 0.29; an answer can not hold them. The most frequent are '1', '7'. "
        "Choose another.$"
    )
    with pytest.raises(RunError, match=message):
        require_known_targets(Toy(), found, 0.29)


def test_nothing_is_said_of_a_vocabulary_that_knows_all(capsys):
    tokenizers = {**TOKENIZERS, "words": WordTable.learn(["a", "x"])}
    found = tell_unknown_tokens(Toy(), [("a", "x")], tokenizers, "a.csv")
    require_known_targets(Toy(), found, 0.0)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", sorted({*TASKS} - {*WITHOUT_TEXTS}))
def test_every_task_of_texts_says_what_its_vocabularies_read(name):
    from seqkeras.training.task import Reading

    assert type(TASKS[name]().make().reading).texts_read is not Reading.texts_read

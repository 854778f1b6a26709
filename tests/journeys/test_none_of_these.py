"""A user's file becomes a classifier that is served, and that answers null to other texts."""

import csv
import json
import random
import re

from tests.conftest import CHECKOUT
from tests.journeys.test_journeys import run
from tests.serving.http.served import as_process, ask

TOPICS = {
    "card": ["my card is {}", "the card that you sent is {}", "why is my {} card not here"],
    "transfer": ["a transfer is {}", "my {} transfer did not arrive", "the money is {}"],
    "rate": ["the exchange rate is {}", "why is the {} rate so high", "which rate is {}"],
}
WORDS = "lost late blocked wrong missing stuck gone strange broken old".split()
OTHERS = ["it is a charming film", "where is the nearest station", "the cat sat on the mat"]


def tickets(path, count=600):
    """Sentences of three topics."""
    draw = random.Random(0)
    rows = []
    for _ in range(count):
        topic = draw.choice([*TOPICS])
        rows.append((draw.choice(TOPICS[topic]).format(draw.choice(WORDS)), topic))
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])


def test_a_file_becomes_a_server_that_answers_null_to_texts_of_other_topics(tmp_path):
    tickets(tmp_path / "tickets.csv")
    page = (CHECKOUT / "docs/training/none-of-these.md").read_text(encoding="utf-8")
    found = re.findall(r"^seqkeras .* (?:runs|bundles)/tickets\b.*$", page, re.MULTILINE)
    commands = [line for line in found if not {"evaluate", "describe"} & {*line.split()}][:3]
    trained, exported, answer = [run(command, tmp_path, CHECKOUT) for command in commands]
    assert trained.splitlines()[-1] == f"next: {commands[1]}"
    assert "next: seqkeras predict bundles/tickets " in exported
    printed = json.loads(answer)
    assert printed["labels"] == [None] and printed["score"] > max(printed["scores"].values())
    card = (tmp_path / "bundles/tickets/README.md").read_text(encoding="utf-8")
    assert re.search(r"^Null is the answer to \d+\.\d% of 60 held-out examples", card, re.MULTILINE)
    with as_process(str(tmp_path / "bundles/tickets")) as (_, _, port):
        texts = [*OTHERS, "my card is lost"]
        status, content = ask(port, "/v1/bundles/tickets", {"inputs": texts})
        assert status == 200
        labels = [answer["labels"] for answer in content["answers"]]
        assert labels == [[None], [None], [None], ["card"]]
        instances = [{"text": text} for text in texts]
        path = "/v1/models/tickets:predict"
        status, content = ask(port, path, {"instances": instances})
        assert status == 200
        assert [row["label"] for row in content["predictions"]] == ["", "", "", "card"]

"""Chinese from a user's file to an answer and a picture: the served answer is Keras's own.

A character without a glyph is a warning of matplotlib's, and so an error of the test.
"""

import csv
import datetime
import itertools
import json
import math
import random
from collections import Counter

import keras
import numpy as np
import pytest
from matplotlib import image

from seqkeras import serving
from seqkeras.runs import RunFiles
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.pipelines.forecast import Settings
from seqkeras.tokenizers import read_tokenizer
from seqkeras.training.answering import answerer
from tests.arrays import close
from tests.training.commands import exported, printed, scores_of, scores_of_both

pytestmark = pytest.mark.long
SMALL = "--learning-rate 0.03 --batch-size 8 --looks 2 --tensorboard false".split()
PEOPLE, TOWNS = ["王小明", "李红", "欧阳修", "张伟"], ["北京", "上海市", "乌鲁木齐", "成都"]
NOUNS = {"电影": "film", "书": "book", "故事": "story", "城市": "town"}
COLOURS = {"新": "new", "旧": "old", "小": "small", "大": "big"}
VERBS = {"喜欢": "likes", "看见": "sees", "知道": "knows"}
WHO = {"我": "i", "他": "he", "她": "she"}
FORECAST = "--time 日期 --time-format %Y年%m月%d日 --targets 收盘价 --numbers 成交额 --cycles week"


def keras_model(folder):
    return keras.models.load_model(folder / "run/model.keras", compile=False)


def of_keras(folder, texts):
    """Return the answers of the Keras model to texts."""
    return answerer(RunFiles.read(folder / "run"))(keras_model(folder), texts)


def probabilities(folder, text):
    """Return (...) probabilities of the model's own call on a text's tokens."""
    tokenizer = read_tokenizer(folder / "run/tokenizer/text.json")
    logits = keras_model(folder)({"token_ids": np.array([tokenizer.analyze(text).token_ids])})
    return keras.ops.convert_to_numpy(keras.ops.softmax(logits))[0]


def with_full_width_digits(text):
    return text.translate({ord("0") + digit: ord("０") + digit for digit in range(10)})


def spelled(name, label):
    """Return the lines of a name's characters in BMES."""
    letters = "S" if len(name) == 1 else "B" + "M" * (len(name) - 2) + "E"
    return [f"{character} {letter}-{label}" for character, letter in zip(name, letters)]


def test_characters_get_tags_of_entities_in_bmes(tmp_path):
    draw, lines = random.Random(0), []
    for _ in range(90):
        person, town = spelled(draw.choice(PEOPLE), "人"), spelled(draw.choice(TOWNS), "地")
        for part in draw.choice([(person, "住在", town), (town, "的", person, "来了")]):
            lines += part if isinstance(part, list) else [f"{character} O" for character in part]
        lines += ["。 O", ""]
    (tmp_path / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    sizes = "--units 11 --embedding-dim 12 --passes 6".split()
    printed("tagging", tmp_path / "train.txt", *sizes, *SMALL, "--out", tmp_path / "run")
    tag = serving.load(exported(tmp_path), threads=1)
    text = "欧阳修住在乌鲁木齐。"
    answer = tag(text)
    names = [(entity.text, entity.label) for entity in answer.entities]
    assert names == [("欧阳修", "人"), ("乌鲁木齐", "地")]
    assert [word.text for word in answer.words] == [*text]
    labels = tag.manifest.settings["labels"]
    expected = probabilities(tmp_path, text)[1:-1]  # without [CLS] and [SEP]
    assert [word.tag for word in answer.words] == [labels[row.argmax()] for row in expected]
    close(np.array([word.score for word in answer.words]), expected.max(-1), rtol=1e-4, atol=1e-5)
    assert scores_of_both(tmp_path, tmp_path / "train.txt")["entity_f1"] > 0.9


def character_f1(text, target):
    """Return the F1 of the characters of an answer."""
    common = sum((Counter(text) & Counter(target)).values())
    return 2 * common / (len(text) + len(target))


def test_an_answer_is_a_span_and_is_scored_by_its_characters(tmp_path):
    draw, rows = random.Random(0), []
    for place in range(130):
        (person, other), (town, elsewhere) = draw.sample(PEOPLE, 2), draw.sample(TOWNS, 2)
        context = f"{person}住在{town}，{other}住在{elsewhere}。"
        answer = town if place < 100 else town[:2]  # 乌鲁 is a part of what the model answers
        answers = {"text": [answer], "answer_start": [context.index(town)]}
        rows.append({"question": f"{person}在哪里？", "context": context, "answers": answers})
    for name, part in (("train", rows[:100]), ("dev", rows[100:])):
        content = "\n".join(json.dumps(row, ensure_ascii=False) for row in part)
        (tmp_path / f"{name}.jsonl").write_text(content, encoding="utf-8")
    sizes = "--units 7 --embedding-dim 11 --character-filters 5 --character-dim 3 --passes 2"
    options = ["--validation", tmp_path / "dev.jsonl", "--model", "bidaf", *sizes.split()]
    out = ["--out", tmp_path / "run"]
    printed("question-answering", tmp_path / "train.jsonl", *options, *SMALL, *out)
    asked = [(row["question"], row["context"]) for row in rows[100:]]
    answers = serving.load(exported(tmp_path), threads=1)(asked)
    expected = of_keras(tmp_path, asked)
    assert [answer.text for answer in answers] == [answer.text for answer in expected]
    targets = [row["answers"]["text"][0] for row in rows[100:]]
    punctuation = str.maketrans("", "", "，。")
    f1 = [
        character_f1(answer.text.translate(punctuation), target)
        for answer, target in zip(answers, targets, strict=True)
    ]
    assert scores_of(tmp_path / "run")["f1"] == pytest.approx(np.mean(f1))
    assert 0.6 < np.mean(f1) < 0.95


@pytest.mark.parametrize("tokens", ["characters", "bpe"])
def test_chinese_becomes_english_with_a_picture_of_its_attention(tokens, tmp_path):
    pairs = [
        (f"{who}{verb}{colour}{noun}。", f"{WHO[who]} {VERBS[verb]} the {COLOURS[colour]} {en}.")
        for who, verb, colour, (noun, en) in itertools.product(WHO, VERBS, COLOURS, NOUNS.items())
    ]
    random.Random(0).shuffle(pairs)
    (tmp_path / "pairs.tsv").write_text("".join(f"{zh}\t{en}\n" for zh, en in pairs), "utf-8")
    sizes = "--vocab-size 40 --hidden-dim 24 --passes 12 --dropout 0 --num-beams 2".split()
    options = ["--tokens", tokens, "--target-tokens", "words", "--model", "bahdanau"]
    options += [*sizes, *SMALL]
    printed("translation", tmp_path / "pairs.tsv", *options, "--out", tmp_path / "run")
    assert scores_of(tmp_path / "run")["bleu"] > 90
    assert image.imread(tmp_path / "run/attention.png").std() > 0
    translate = serving.load(exported(tmp_path), threads=1)
    texts = [zh for zh, _ in pairs[:7]]
    answers = translate(texts)
    assert [answer.text for answer in answers] == [
        answer.text for answer in of_keras(tmp_path, texts)
    ]


def test_columns_dates_and_numbers_as_they_are_written_become_a_forecast(tmp_path):
    draw, day, rows = random.Random(0), datetime.date(2014, 5, 3), []
    for place in range(150):
        price = 20 + 5 * math.sin(place * math.pi / 7) + draw.gauss(0, 0.2)
        turnover = round(200 + 30 * math.sin(place * math.pi / 7), 2)
        date = f"{day.year}年{day.month}月{day.day}日"
        rows.append({"日期": date, "收盘价": f"{price:.2f}", "成交额": f"{turnover}亿"})
        day += datetime.timedelta(days=1)
    wide = [{name: with_full_width_digits(value) for name, value in row.items()} for row in rows]
    with open(tmp_path / "股票.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(one for pair in zip(rows[::2], wide[1::2]) for one in pair)
    sizes = "--decimal-point 成交额 --context 14 --horizon 7 --units 11 --passes 6".split()
    options = [*FORECAST.split(), *sizes, *SMALL, "--out", tmp_path / "run"]
    printed("forecasting", tmp_path / "股票.csv", *options)
    assert image.imread(tmp_path / "run/forecast.png").std() > 0
    forecast = serving.load(exported(tmp_path), threads=1)
    answer = forecast(tuple(rows[-14:]))
    close(forecast(tuple(wide[-14:])).values, answer.values, rtol=1e-6, atol=1e-6)
    settings = RunFiles.read(tmp_path / "run").record.settings
    columns = Settings(**parse_fields(Settings, settings, "settings", [])).rows
    window, last = columns.window(rows[-14:], "series")
    inputs = {"window": window[None], "known": columns.future((), last, 7, "known")[None]}
    scaled = keras.ops.convert_to_numpy(keras_model(tmp_path)(inputs))
    [target] = [column for column in columns.columns if column.name == "收盘价"]
    close(answer.values, target.unscaled(scaled)[0], rtol=1e-4, atol=1e-3)

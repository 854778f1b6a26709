"""Translation of a user's files: what it learns, leaves and refuses."""

import contextlib
import gzip
import io
import itertools
import json
import re
from collections import Counter

import numpy as np
import pytest
import sacrebleu

from seqkeras import serving
from seqkeras.attention import DotScore
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.runs import RunFiles
from seqkeras.schedules import LinearDecay
from seqkeras.tokenizers import BOS, EOS, PAD, TOKENIZERS
from seqkeras.training.__main__ import main
from seqkeras.training.parts.translation_models import model_of
from seqkeras.training.tasks.translation import RECURRENT, TranslationOptions
from tests.conftest import long_fixture, public_data, run_python
from tests.training.exporting import refusals_of_run

TINY = "--hidden-dim 12 --num-layers 1 --num-heads 2 --num-beams 2 --batch-size 11".split()
FAST = "--learning-rate 0.02 --label-smoothing 0 --dropout 0 --warmup-steps 7".split()
EXAMPLE = {"text": "a", "target": "b"}
PHONEMES = {"a": "AH0", "b": "B", "i": "IY1", "k": "K", "t": "T", "u": "UW1"}


def sentences():
    """All 64 sentences of one form, English and German."""
    nouns = [("house", "haus"), ("book", "buch"), ("child", "kind"), ("picture", "bild")]
    colours = [("red", "rote"), ("old", "alte"), ("small", "kleine"), ("new", "neue")]
    ends = [("big", "groß"), ("here", "hier"), ("good", "gut"), ("dear", "teuer")]
    return [
        (f"The {colour} {noun} is {end}.", f"Das {farbe} {wort} ist {ende}.")
        for (noun, wort), (colour, farbe), (end, ende) in itertools.product(nouns, colours, ends)
    ]


def tab_separated(folder, pairs=None):
    path = folder / "pairs.tsv"
    lines = ["\t".join(pair) + "\n" for pair in pairs or sentences()]
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def dictionary(folder):
    """A file in CMUdict's form: a letter a phoneme, and a word in three has a second reading."""
    words = ["".join(each) for each in itertools.product("bkt", "aiu", "bkt", "aiu")]
    lines = []
    for place, word in enumerate(words):
        phonemes = " ".join(PHONEMES[letter] for letter in word)
        lines.append(f"{word} {phonemes}\n")
        if place % 3 == 0:
            lines.append(f"{word}(2) {phonemes} T # a variant\n")
    (folder / "words.dict").write_text("".join(lines))
    return str(folder / "words.dict")


def config(folder, content):
    """The option that gives a training these lines of TOML."""
    (folder / "options.toml").write_text(content)
    return ["--config", folder / "options.toml"]


def printed(*arguments):
    """The lines of a training that ends well."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(output):
        assert main(["translation", *map(str, arguments), *TINY, *FAST]) == 0
    return output.buffer.getvalue().decode().splitlines()


def task(**options):
    return TranslationOptions(batch_size=3, **options).make()


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A run of a Transformer on sentences, and its lines."""
    folder = tmp_path_factory.mktemp("sentences")
    options = ["--passes", 30, "--vocab-size", 60, "--held-out", 0.2, "--max-length", 23]
    options += config(folder, "joint = true\nlowercase = true\n")
    return folder / "run", printed(tab_separated(folder), "--out", folder / "run", *options)


@long_fixture
def speller(tmp_path_factory):
    """A run of a recurrent model on letters and phonemes, with a file of validation."""
    folder = tmp_path_factory.mktemp("words")
    file = dictionary(folder)
    options = ["--validation", file, "--format", "cmudict", "--passes", 8]
    options += ["--model", "bahdanau", *config(folder, "several_targets = true\nstress = false")]
    options += ["--tokens", "characters", "--target-tokens", "words", "--max-length", 7]
    options += ["--teacher-forcing", 0.7, "--teacher-forcing-steps", 20]
    return folder / "run", printed(file, "--out", folder / "run", *options)


def answered(folder):
    """The validation examples of a run's folder, and what a bundle's user would read of them."""
    return json.loads((folder / "validation.json").read_text(encoding="utf-8"))


def test_it_learns_sentences_and_says_what_to_do_next(translator):
    folder, (first, tokens, *_, made, following) = translator
    scores = json.loads((folder / "scores.json").read_text())
    assert first == "translation: 51 training and 13 validation examples"
    assert re.fullmatch(r"  ([0-9]+) source and \1 target tokens", tokens)
    assert scores["examples"] == 13 and 20 < scores["bleu"] <= 100 and scores["chrf"] > 30
    assert scores["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")
    assert scores["chrf_signature"].startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|")
    assert f"BLEU is {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}" in made
    assert "attention.png" in made and (folder / "attention.png").stat().st_size > 10_000
    assert following == f"next: seqkeras export {folder} bundles/run"


def test_it_learns_to_pronounce_words_that_have_several_answers(speller):
    folder, (first, *_, made, _) = speller
    scores = json.loads((folder / "scores.json").read_text())
    assert first == "translation: 108 training and 81 validation examples"
    assert scores.keys() == {"examples", "word_error_rate", "phoneme_error_rate"}
    assert scores["examples"] == 81 and scores["phoneme_error_rate"] < 50
    assert f"wrong are {scores['word_error_rate']:.2f} % of the words" in made
    assert answered(folder)[0]["target"] == "B AH B AH"  # without the digits of stress


def test_a_file_is_scored_as_in_training(translator, speller, tmp_path):
    run, _ = speller
    out = ["--out", str(tmp_path / "scores.json")]
    words = str(run.parent / "words.dict")
    assert main(["evaluate", str(run), "--data", words, *out]) == 0
    expected = json.loads((run / "scores.json").read_text())
    assert json.loads((tmp_path / "scores.json").read_text()) == pytest.approx(expected)
    run, _ = translator
    examples = answered(run)
    for name, key in (("test.en", "text"), ("test.de", "target")):
        texts = [example[key] for example in examples]
        (tmp_path / name).write_text("\n".join(texts), encoding="utf-8")
    data = [f"--data={tmp_path / name}" for name in ("test.en", "test.de")]
    assert main(["evaluate", str(run), *data, *out]) == 0
    expected = json.loads((run / "scores.json").read_text())
    assert json.loads((tmp_path / "scores.json").read_text()) == expected


def test_export_takes_both_runs(translator, speller, tmp_path):
    assert refusals_of_run(translator[0]) == []
    run, _ = speller
    export(run, tmp_path / "bundle", options=ExportOptions(saved_models=False))
    out = tmp_path / "scores.json"
    data = ["--data", str(run.parent / "words.dict"), "--out", str(out)]
    assert main(["evaluate", str(tmp_path / "bundle"), *data]) == 0
    assert json.loads(out.read_text()) == json.loads((run / "scores.json").read_text())


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_what_is_trained_on_are_the_tokens_of_both_sides(kind, tmp_path):
    pairs = [(f"{a} {b}", f"{b} {a}".lower()) for a in "AB" for b in ("Cd", "Ef", "é")]
    file = tab_separated(tmp_path, 4 * pairs)
    trained = task(file=file, validation=file, tokens=kind, vocab_size=300)
    examples, _ = trained.reading.read()
    tokenizers = trained.reading.tokenizers(examples)
    run = RunFiles.of(
        "run", validation=[EXAMPLE], tokenizers=tokenizers, **trained.reading.record([], tokenizers)
    )
    inputs, wanted, lengths = trained.modelling.arrays(examples, run)
    rows = np.arange(len(examples))
    for example, source, given, row, length in zip(
        examples, inputs["token_ids"][rows], inputs["target_ids"][rows], wanted[rows], lengths
    ):
        target = tokenizers["target"].encode(example.target)
        assert row[row != PAD].tolist() == [*target, EOS]
        assert given[given != PAD].tolist() == [BOS, *target]
        assert tokenizers["target"].decode(target) == example.target
        assert tokenizers["source"].decode(source[source != PAD]) == example.text
        assert length == max(len(source[source != PAD]), len(target) + 1)


def test_a_source_is_in_training_or_held_out_with_all_of_its_targets(tmp_path):
    pairs = [(f"word {place // 3}", f"wort {place}") for place in range(60)]
    file = tab_separated(tmp_path, pairs)
    train, held_out = task(file=file, held_out=0.25).reading.read()
    assert Counter((each.text, each.target) for each in train + held_out) == Counter(pairs)
    assert len(held_out) == 15 and not {e.text for e in train} & {e.text for e in held_out}
    assert task(file=file, held_out=0.25, seed=1).reading.read()[1] != held_out
    same, grouped = task(file=file, held_out=0.25, several_targets=True).reading.read()
    assert same == train
    assert [each for example in grouped for each in example.targets] == [e.target for e in held_out]
    assert all(len(example.others) == 2 for example in grouped)


def test_pairs_over_the_limit_are_left_out_and_counted(tmp_path, capsys):
    pairs = [*sentences(), ("The red house " * 9, "Das"), ("The", "Das rote Haus " * 9)]
    options = {"file": tab_separated(tmp_path, pairs), "tokens": "words", "max_length": 7}
    trained = task(**options, validation=tab_separated(tmp_path, pairs))
    examples, _ = trained.reading.read()
    run = RunFiles.of(
        "run",
        validation=[EXAMPLE],
        tokenizers=trained.reading.tokenizers(examples),
        **trained.reading.record(examples, {}),
    )
    *_, lengths = trained.modelling.arrays(examples, run)
    assert len(lengths) == 64 and max(lengths) == 7
    assert (
        "  2 of 66 pairs have more than --max-length 7 tokens, and are left out"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "target, options, is_said",
    [
        ("我在北京。", {}, True),
        ("我在北京。", {"bleu_tokenizer": "zh"}, False),
        ("我 在 北京 。", {}, False),
        ("나는 서울에 있다", {}, False),
    ],
)
def test_bleu_of_targets_without_spaces_names_its_option(
    tmp_path, capsys, target, options, is_said
):
    pairs = [(f"I am in Beijing {place}", target) for place in range(7)]
    task(file=tab_separated(tmp_path, pairs), held_out=0.3, **options).reading.read()
    assert ("--bleu-tokenizer zh, or char, counts characters" in capsys.readouterr().out) == is_said


def test_files_may_be_parallel_packed_or_have_columns_with_names(tmp_path):
    sources, targets = zip(*sentences())
    for name, texts in (("train.en.gz", sources), ("train.de.gz", targets)):
        (tmp_path / name).write_bytes(gzip.compress("\n".join(texts).encode()))
    rows = [json.dumps({"en": source, "de": target}) for source, target in sentences()]
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    (tmp_path / "train.csv").write_text("source,target\n" + "\n".join(map(",".join, sentences())))
    files = {
        "tab": {"file": tab_separated(tmp_path)},
        "two": {"file": tmp_path / "train.en.gz", "targets": tmp_path / "train.de.gz"},
        "csv": {"file": tmp_path / "train.csv"},
        "named": {
            "file": tmp_path / "train.jsonl", "source_column": "en", "target_column": "de"
        },
    }  # fmt: skip
    read = [task(**options).reading.read() for options in files.values()]
    assert all(examples == read[0] for examples in read)
    assert [
        example.target for example in task(**files["tab"], lowercase=True).reading.read()[0]
    ] == [example.target.lower() for example in read[0][0]]


@pytest.mark.parametrize("name", ["transformer", *RECURRENT])
def test_every_model_answers_a_batch(name):
    options = TranslationOptions(model=name, hidden_dim=8, num_heads=2)
    model = model_of(options, 11, 13)
    inputs = {"token_ids": [[5, 3, 0]], "lengths": [2], "target_ids": [[BOS, 7, 5, 6]]}
    assert model({key: np.array(value) for key, value in inputs.items()}).shape == (1, 4, 13)
    assert list(model.never_generated) == [PAD, 1, BOS]


def test_sizes_and_scheduled_sampling_reach_a_recurrent_model():
    options = TranslationOptions(
        model="luong",
        hidden_dim=8,
        embedding_dim=5,
        num_layers=2,
        cell="gru",
        attention="dot",
        teacher_forcing=0.5,
        teacher_forcing_steps=50,
        gradient_accumulation=2,
    )
    model = model_of(options, 11, 13)
    assert [len(names) for names in model.decoder.recurrent_names] == [1, 1]  # two layers of GRU
    assert isinstance(model.decoder.attention.score, DotScore)
    assert model.source_embedding.output_dim == 5 and model.decoder.units == 8
    assert model.decoder.teacher_forcing.schedule == LinearDecay(1.0, 0.005, 0.5)  # of batches


def test_tied_weights_reach_a_recurrent_model():
    options = {"model": "bahdanau", "hidden_dim": 8, "embedding_dim": 5}
    tied, untied = (
        model_of(TranslationOptions(**options, tie_weights=value), 11, 13) for value in (True, None)
    )
    assert tied.decoder.tie_weights and not untied.decoder.tie_weights
    assert len(untied.weights) - len(tied.weights) == 2  # the output's matrix and bias


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "a\tb\nc\n",
            "",
            "pairs.tsv, line 2: expected a source, a tab and its target; found no tab in 'c'; "
            "targets in a file of their own are named by --tar",
        ),
        (b"a\tb\n\xff\tc\n", "", "pairs.tsv, line 2: the byte 0xff is not UTF-8"),
        ("", "", "pairs.tsv: the file is empty."),
        ("a\tb\nc\td\n", "--held-out 0.1", "of 2 different sources is 0; at least one must be "),
        ("a\tb\nc\td\n", "--held-out 0.5", "a batch of 11 needs as many rows; received 1."),
        (
            "a\tb\nc\td\n",
            "--targets {folder}/other.de",
            "must have as many lines as each other; th",
        ),
        ("a\tb\nc\td\n", "--source-column en", "there is no column 'en'; there are 'a', 'b'."),
        (
            "a\tb\nc\td\n" * 40,
            "--held-out 0.5 --vocab-size 5 --tokens word-piece",
            "pairs.tsv: --vocab-size must be at least 6, for the characters and special tokens alo",
        ),
        (
            "a\tb\nc\td\n" * 40,
            "--held-out 0.5 --target-vocab-size 5 --tokens word-piece",
            "pairs.tsv: --target-vocab-size must be at least 6, for the characters and special tok",
        ),
        (
            "A B\nC\n",
            "--format cmudict",
            "pairs.tsv, line 2: expected phonemes behind the word 'C'.",
        ),
    ],
)
def test_files_that_nothing_can_be_learned_from_get_one_line(
    content, options, message, tmp_path, capsys
):
    file = tmp_path / "pairs.tsv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "other.de").write_text("a\nb\nc\n")
    options = options.format(folder=tmp_path).split()
    arguments = ["translation", str(file), "--out", str(tmp_path / "run"), *TINY, *options]
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("training: ") and error.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"pairs.tsv", "other.de"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--config {folder}/lowercase.toml --tokens characters", "characters keep their case"),
        (
            "--config {folder}/joint.toml --target-tokens words",
            "one vocabulary has one kind of --tokens",
        ),
        (
            "--config {folder}/joint.toml --target-vocab-size 9",
            "one vocabulary has one --vocab-size",
        ),
        ("--validation-targets {file}", "--validation-targets needs --validation"),
        ("--validation {file} --targets {file}", "--validation must be in the form of FILE"),
        ("--cell lstm", "--cell is for recurrent models"),
        ("--teacher-forcing 0.5", "--teacher-forcing is for recurrent models"),
        ("--teacher-forcing 0.5 --model classical-context", "reads none of its own tokens"),
        ("--num-heads 3 --hidden-dim 8", "--num-heads must divide --hidden-dim; received 3 and 8."),
        ("--model cho --attention dot", "cho does not attend; choose bahdanau or luong."),
        (
            "--model luong --tie-weights true --embedding-dim 5",
            "--tie-weights: luong needs embeddings as wide as its states; leave --embedding-dim ou",
        ),
        (
            "--model classical-context --tie-weights true",
            "--tie-weights: classical-context reads none of its own tokens; leave it out.",
        ),
        (
            "--model luong --decoder-units 7",
            "the decoder of luong begins with the encoder's states",
        ),
        ("--targets nothing.de", "nothing.de: no such file."),
    ],
)
def test_options_that_do_not_go_together_get_one_line(options, message, tmp_path, capsys):
    file = tab_separated(tmp_path)
    for name in ("joint", "lowercase"):
        (tmp_path / f"{name}.toml").write_text(f"{name} = true\n")
    options = options.format(file=file, folder=tmp_path).split()
    assert main(["translation", file, "--out", str(tmp_path / "run"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_help_begins_with_the_form_of_the_file(capsys):
    assert main(["translation", "--help"]) == 0
    [_, first, *_] = capsys.readouterr().out.split("\n\n")
    assert first.split() == TranslationOptions.__doc__.split("\n")[0].split()


def served(run, bundle):
    """The texts of a run's validation examples, their targets, and what a bundle answers."""
    finished = run_python("-m", "export", run, bundle)
    assert finished.returncode == 0, finished.stderr
    examples = answered(run)
    texts = [example["text"] for example in examples]
    return examples, [answer.text for answer in serving.load(bundle)(texts)]


@pytest.mark.long
def test_the_served_bleu_is_the_trained_one(translator, tmp_path):
    run, _ = translator
    examples, texts = served(run, tmp_path / "bundle")
    expected = sacrebleu.corpus_bleu(texts, [[example["target"] for example in examples]])
    scores = json.loads((run / "scores.json").read_text())
    assert scores["examples"] == len(examples)
    assert scores["bleu"] == pytest.approx(expected.score)


@pytest.mark.long
def test_the_served_error_rate_is_the_trained_one(speller, tmp_path):
    run, _ = speller
    examples, texts = served(run, tmp_path / "bundle")
    wrong = [
        text not in (example["target"], f"{example['target']} T") if place % 3 == 0
        else text != example["target"]
        for place, (text, example) in enumerate(zip(texts, examples))
    ]  # fmt: skip
    expected = json.loads((run / "scores.json").read_text())["word_error_rate"]
    assert 100 * np.mean(wrong) == pytest.approx(expected)


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS if kind != "unigram"])
def test_a_bundle_of_any_tokenizer_answers_as_the_run(kind, tmp_path):
    options = ["--passes", 6, "--vocab-size", 290, "--tokens", kind, "--model", "bahdanau"]
    file = tab_separated(tmp_path)
    printed(file, "--validation", file, "--out", tmp_path / "run", *options)
    examples, texts = served(tmp_path / "run", tmp_path / "bundle")
    expected = sacrebleu.corpus_bleu(texts, [[example["target"] for example in examples]])
    found = json.loads((tmp_path / "run/scores.json").read_text())["bleu"]
    assert found == pytest.approx(expected.score)


@pytest.mark.long
def test_public_sentences_are_learned_a_little(tmp_path):
    lines = public_data("tatoeba/eng-fra.txt").read_text(encoding="utf-8").split("\n")[:600]
    (tmp_path / "pairs.txt").write_text("\n".join(lines), encoding="utf-8")
    options = ["--passes", 4, "--vocab-size", 300, *config(tmp_path, "several_targets = true")]
    lines = printed(tmp_path / "pairs.txt", "--out", tmp_path / "run", *options)
    scores = json.loads((tmp_path / "run/scores.json").read_text())
    assert scores["bleu_signature"].startswith("nrefs:var|") and scores["chrf"] > 5

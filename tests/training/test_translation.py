"""Translation of a user's files: what it learns, leaves and refuses."""

import gzip
import itertools
import json
import re
from collections import Counter

import keras
import numpy as np
import pytest
import sacrebleu

from seqkeras import serving
from seqkeras.attention import DotScore
from seqkeras.export.bundle import export
from seqkeras.runs import RunError, RunFiles
from seqkeras.schedules import LinearDecay
from seqkeras.tokenizers import BOS, EOS, PAD, TOKENIZERS
from seqkeras.training.answering.translate import source_ids
from seqkeras.training.parts.translation_models import model_of
from seqkeras.training.tasks.translation import RECURRENT, TranslationOptions
from tests.conftest import long_fixture
from tests.training.commands import (
    evaluated,
    exported,
    printed,
    refused_files,
    refused_options,
    scores_of,
    scores_of_both,
)
from tests.training.exporting import refusals_of_run

TINY = "--hidden-dim 12 --num-layers 1 --num-heads 2 --num-beams 2 --batch-size 11".split()
FAST = "--learning-rate 0.02 --label-smoothing 0 --dropout 0 --warmup-steps 7".split()
SMALLEST = "--hidden-dim 12 --num-layers 1 --batch-size 11 --learning-rate 0.02".split()
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


def trained(*arguments):
    """Return the lines of a training that ends well."""
    return printed("translation", *arguments, *TINY, *FAST)


def task(**options):
    return TranslationOptions(batch_size=3, **options).make()


def arrays_of(trained):
    """The training examples of a task, their tokenizers and their arrays."""
    examples, _ = trained.reading.read()
    tokenizers = trained.reading.tokenizers(examples)
    record = trained.reading.record(examples, tokenizers)
    run = RunFiles.of("run", validation=[EXAMPLE], tokenizers=tokenizers, **record)
    return examples, tokenizers, trained.modelling.arrays(examples, run)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A run of a Transformer on sentences, and its lines."""
    folder = tmp_path_factory.mktemp("sentences")
    options = ["--passes", 30, "--vocab-size", 60, "--held-out", 0.2, "--max-length", 23]
    options += ["--joint", "true", "--lowercase", "true"]
    return folder / "run", trained(tab_separated(folder), "--out", folder / "run", *options)


@long_fixture
def speller(tmp_path_factory):
    """A run of a recurrent model on letters and phonemes, with a file of validation."""
    folder = tmp_path_factory.mktemp("words")
    file = dictionary(folder)
    options = ["--validation", file, "--format", "cmudict", "--passes", 8]
    options += ["--model", "bahdanau", "--several-targets", "true", "--stress", "false"]
    options += ["--tokens", "characters", "--target-tokens", "words", "--max-length", 7]
    options += ["--teacher-forcing", 0.7, "--teacher-forcing-steps", 20]
    return folder / "run", trained(file, "--out", folder / "run", *options)


def answered(folder):
    """The validation examples of a run's folder, and what a bundle's user would read of them."""
    return json.loads((folder / "validation.json").read_text(encoding="utf-8"))


def test_it_learns_sentences_and_says_what_to_do_next(translator):
    folder, (first, tokens, *_, made, following) = translator
    scores = scores_of(folder)
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
    scores = scores_of(folder)
    assert first == "translation: 108 training and 81 validation examples"
    assert scores.keys() == {"examples", "word_error_rate", "phoneme_error_rate"}
    assert scores["examples"] == 81 and scores["phoneme_error_rate"] < 50
    assert f"wrong are {scores['word_error_rate']:.2f} % of the words" in made
    assert answered(folder)[0]["target"] == "B AH B AH"  # without the digits of stress


@pytest.mark.long
def test_a_file_is_scored_as_in_training(translator, tmp_path):
    run, _ = translator
    examples = answered(run)
    for name, key in (("test.en", "text"), ("test.de", "target")):
        texts = [example[key] for example in examples]
        (tmp_path / name).write_text("\n".join(texts), encoding="utf-8")
    assert evaluated(run, tmp_path / "test.en", "--data", tmp_path / "test.de") == scores_of(run)
    assert refusals_of_run(run) == []


def test_run_and_bundle_are_scored_as_in_training(speller):
    folder = speller[0].parent
    exported(folder)
    scores = scores_of_both(folder, folder / "words.dict")
    assert scores == pytest.approx(scores_of(folder / "run"))


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_what_is_trained_on_are_the_tokens_of_both_sides(kind, tmp_path):
    pairs = [(f"{a} {b}", f"{b} {a}".lower()) for a in "AB" for b in ("Cd", "Ef", "é")]
    file = tab_separated(tmp_path, 4 * pairs)
    examples, tokenizers, (inputs, wanted, lengths) = arrays_of(
        task(file=file, validation=file, tokens=kind, vocab_size=300)
    )
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
    assert Counter((each.text, each.target) for each in (*train, *held_out)) == Counter(pairs)
    assert len(held_out) == 15 and not {e.text for e in train} & {e.text for e in held_out}
    assert task(file=file, held_out=0.25, seed=1).reading.read()[1] != held_out
    same, grouped = task(file=file, held_out=0.25, several_targets=True).reading.read()
    assert same == train
    assert [each for example in grouped for each in example.targets] == [e.target for e in held_out]
    assert all(len(example.others) == 2 for example in grouped)


def test_pairs_over_the_limit_are_left_out_and_counted(tmp_path, capsys):
    pairs = [*sentences(), ("The red house " * 9, "Das"), ("The", "Das rote Haus " * 9)]
    file = tab_separated(tmp_path, pairs)
    *_, (*_, lengths) = arrays_of(task(file=file, validation=file, tokens="words", max_length=7))
    assert len(lengths) == 64 and max(lengths) == 7
    told = "  2 of 66 pairs have more than --max-length 7 tokens, and are left out"
    assert told in capsys.readouterr().out
    message = "^--max-length 2: each of 66 pairs has more tokens, the shortest 7. Choose a larger"
    with pytest.raises(RunError, match=message):
        arrays_of(task(file=file, validation=file, tokens="words", max_length=2))


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
    file = tab_separated(tmp_path)
    names = {"source_column": "en", "target_column": "de"}
    read = [
        task(file=file, **options).reading.read()
        for file, options in (
            (file, {}),
            (tmp_path / "train.en.gz", {"targets": tmp_path / "train.de.gz"}),
            (tmp_path / "train.csv", {}),
            (tmp_path / "train.jsonl", names),
        )
    ]
    pairs = [[[each[:2] for each in examples] for examples in both] for both in read]
    assert all(each == pairs[0] for each in pairs)
    small, _ = task(file=file, lowercase=True).reading.read()
    assert [each.target for each in small] == [each.target.lower() for each in read[0][0]]


@pytest.mark.parametrize("name", ["transformer", *RECURRENT])
def test_every_model_answers_a_batch(name):
    options = TranslationOptions(model=name, hidden_dim=8, num_heads=2)
    model = model_of(options, 11, 13)
    inputs = {"token_ids": [[5, 3, 0]], "lengths": [2], "target_ids": [[BOS, 7, 5, 6]]}
    assert model({key: np.array(value) for key, value in inputs.items()}).shape == (1, 4, 13)
    assert list(model.never_generated) == [PAD, 1, BOS]


def test_options_reach_a_recurrent_model():
    sizes = {"hidden_dim": 8, "embedding_dim": 5, "num_layers": 2, "cell": "gru"}
    sampling = {"teacher_forcing": 0.5, "teacher_forcing_steps": 50, "gradient_accumulation": 2}
    options = TranslationOptions(model="luong", attention="dot", **sizes, **sampling)
    model = model_of(options, 11, 13)
    assert [len(names) for names in model.decoder.recurrent_names] == [1, 1]  # two layers of GRU
    assert isinstance(model.decoder.attention.score, DotScore)
    assert model.source_embedding.output_dim == 5 and model.decoder.units == 8
    assert model.decoder.teacher_forcing.schedule == LinearDecay(1.0, 0.005, 0.5)  # of batches
    plain = model_of(TranslationOptions(model="sutskever", hidden_dim=8, readout="tanh"), 11, 13)
    assert plain.decoder.readout is not None and not plain.decoder.tie_weights
    assert not plain.reverse_source
    others = {"hidden_dim": 8, "embedding_dim": 8, "readout": "none", "reverse_source": True}
    model = model_of(TranslationOptions(model="cho", tie_weights=True, **others), 11, 13)
    assert model.decoder.readout is None and model.decoder.tie_weights and model.reverse_source


AT_LEAST_6 = "must be at least 6, for the characters and special tok"
SMALL = "--held-out 0.5 --tokens word-piece"
test_files_that_nothing_can_be_learned_from_get_one_line = refused_files(
    "translation",
    "pairs.tsv",
    ("a\tb\nc\n", "", "line 2: expected a source, a tab and its target; found no tab in 'c'; tar"),
    (b"a\tb\n\xff\tc\n", "", "pairs.tsv, line 2: the byte 0xff is not UTF-8"),
    ("", "", "pairs.tsv: the file is empty."),
    ("a\tb\nc\td\n", "--held-out 1", "2 different sources are held out, so nothing is left f"),
    ("a\tb\na\td\n", "", "pairs.tsv: 1 source is held out, so nothing is left for training"),
    ("a\tb\n", "--targets {tmp_path}/other.de", "must have as many lines as each other; th"),
    ("a\tb\n", "--source-column en", "there is no column 'en'; there are 'a', 'b'."),
    ("a\tb\nc\td\n" * 40, f"{SMALL} --vocab-size 5", f"pairs.tsv: --vocab-size {AT_LEAST_6}"),
    ("a\tb\nc\td\n" * 40, f"{SMALL} --target-vocab-size 5", f"--target-vocab-size {AT_LEAST_6}"),
    ("file\ttarget\na.npy\thi\n", "--frames-column file", "line 2: a.npy: "),
    ("A B\nC\n", "--format cmudict", "pairs.tsv, line 2: expected phonemes after the word 'C'."),
    options=" ".join(TINY),
    beside={"other.de": "a\nb\nc\n"},
)


@pytest.fixture
def pairs(tmp_path):
    return tab_separated(tmp_path)


test_options_that_do_not_go_together_get_one_line = refused_options(
    "translation {pairs}",
    ("--lowercase true --tokens characters", "characters keep their case"),
    ("--joint true --target-tokens words", "one vocabulary has one kind of --tokens"),
    ("--joint true --target-vocab-size 9", "one vocabulary has one --vocab-size"),
    ("--validation-targets {pairs}", "--validation-targets needs --validation"),
    ("--validation {pairs} --targets {pairs}", "--validation must be in the form of FILE"),
    ("--cell lstm", "--cell is for recurrent models"),
    ("--reverse-source true", "--reverse-source is for recurrent models; choose a --model of "),
    ("--teacher-forcing 0.5", "--teacher-forcing is for recurrent models"),
    ("--teacher-forcing 0.5 --model classical-context", "reads none of its own tokens"),
    ("--num-heads 3 --hidden-dim 8", "--num-heads must divide --hidden-dim; received 3 and 8."),
    ("--model cho --attention dot", "cho does not attend; choose bahdanau or luong."),
    ("--model luong --tie-weights true --embedding-dim 5", "luong computes logits of its state"),
    ("--model bahdanau --readout none --tie-weights true", "as wide; choose --embedding-dim 256"),
    ("--model luong --attention hard --teacher-forcing 0.5", "trained on the tokens given"),
    ("--model luong --readout none", "--readout: luong has a hidden layer of its own"),
    ("--frames-column a --joint true", "--joint: sources of --frames-column are no texts"),
    ("--frames-column a --targets {pairs}", "--targets: sources of --frames-column are no te"),
    ("--numbers a --joint true", "--joint: sources of --numbers are no texts; leave it out."),
    ("--categories a --frames-column b", "--categories and --frames-column are two forms of a"),
    ("--numbers a --decimal-comma b", "--decimal-comma must be of --numbers; received 'b'."),
    ("--readout none", "--readout is for recurrent models; choose a --model of "),
    ("--model classical-context --tie-weights true", "--tie-weights: classical-context reads"),
    ("--model luong --decoder-units 7", "decoder of luong begins with the encoder's states"),
    ("--targets nothing.de", "nothing.de: no such file."),
)


def served(folder):
    """Return the validation examples of a folder's run, and what its bundle answers to them."""
    examples = answered(folder / "run")
    bundle = serving.load(exported(folder))
    return examples, [answer.text for answer in bundle([example["text"] for example in examples])]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["translator", *sorted({*TOKENIZERS} - {"unigram"})])
def test_the_served_bleu_is_the_trained_one(kind, tmp_path, request):
    folder = tmp_path
    if kind == "translator":
        folder = request.getfixturevalue(kind)[0].parent
    else:
        options = ["--passes", 6, "--vocab-size", 290, "--tokens", kind, "--model", "bahdanau"]
        file = tab_separated(tmp_path)
        trained(file, "--validation", file, "--out", tmp_path / "run", *options)
    examples, texts = served(folder)
    expected = sacrebleu.corpus_bleu(texts, [[example["target"] for example in examples]])
    scores = scores_of(folder / "run")
    assert scores["examples"] == len(examples)
    assert scores["bleu"] == pytest.approx(expected.score)


@pytest.mark.long
def test_the_served_error_rate_is_the_trained_one(speller):
    run, _ = speller
    examples, texts = served(run.parent)
    wrong = []
    for place, (text, example) in enumerate(zip(texts, examples)):
        target = example["target"]
        wrong.append(text not in ([target, f"{target} T"] if place % 3 == 0 else [target]))
    assert 100 * np.mean(wrong) == pytest.approx(scores_of(run)["word_error_rate"])


def written(model, run, token_ids):
    """Return what a model writes to a source of token ids, by a loop over `model.step`."""
    source = np.array([token_ids])  # or frames
    state, ids = model.encode(source, np.array([len(token_ids)])), [BOS]
    while ids[-1] != EOS and len(ids) <= 128:
        outputs, state = model.step(np.array([ids[-1:]]), state)
        ids.append(int(np.argmax(outputs[0])))
    return run.tokenizers["target"].decode([each for each in ids[1:] if each != EOS])


OWN_CALLS = {
    "no readout": ("--model", "bahdanau", "--readout", "none"),
    "hard, before the cell": ("--model", "bahdanau", "--attention", "hard"),
    "hard, after the cell": ("--model", "luong", "--attention", "hard"),
}


@pytest.mark.long
@pytest.mark.parametrize("options", OWN_CALLS.values(), ids=OWN_CALLS)
def test_what_is_served_is_what_a_loop_over_the_model_writes(options, tmp_path):
    options += ("--passes", 100, "--vocab-size", 60, "--num-beams", 1)
    file = tab_separated(tmp_path)
    printed("translation", file, "--out", tmp_path / "run", *SMALLEST, *options)
    export(tmp_path / "run", tmp_path / "bundle")
    run, bundle = RunFiles.read(tmp_path / "run"), serving.load(tmp_path / "bundle")
    model = keras.models.load_model(tmp_path / "run" / "model.keras", compile=False)
    texts = [example["text"] for example in answered(tmp_path / "run")]
    expected = [written(model, run, ids) for ids in source_ids(run.tokenizers["source"], texts)]
    assert [answer.text for answer in bundle(texts)] == expected
    assert len({*expected}) > 1


def recordings(folder, of_vectors):
    """48 recordings of two to four words, each word three frames of one shape with noise; or of one
    frame, and its command."""
    random, words = np.random.default_rng(0), ["go", "stop", "left", "right"]
    if of_vectors:
        words = ["go", "stop now", "turn to the left", "turn to the right"]
    shapes = random.normal(size=(4, 3, 5))
    lines = ["file,said"]
    for number in range(48):
        said = random.integers(4, size=1 if of_vectors else random.integers(2, 5))
        frames = np.concatenate(shapes[said])[: 1 if of_vectors else None]
        frames = frames + 0.05 * random.normal(size=frames.shape)
        frames = frames * [1, 1000, 0.001, 7, 1] + [0, 1e4, 0, -30, 5]  # in their own units
        np.save(folder / f"{number}.npy", frames.astype("float32"))
        lines.append(f"{number}.npy,{' '.join(words[each] for each in said)}")
    (folder / "spoken.csv").write_text("\n".join(lines))
    return folder / "spoken.csv"


OF_FRAMES = "--frames-column file --target-column said --metrics words --tokens words".split()


@pytest.mark.long
@pytest.mark.parametrize(
    "model, of_vectors", [("bahdanau", False), ("transformer", False), ("cho", True)]
)
def test_recordings_become_the_words_that_are_said(model, of_vectors, tmp_path):
    table = recordings(tmp_path, of_vectors)
    options = [*OF_FRAMES, "--held-out", 0.25, "--passes", 100, "--num-beams", 1, "--model", model]
    printed("translation", table, "--out", tmp_path / "run", *SMALLEST, *options, "--num-heads", 2)
    export(tmp_path / "run", tmp_path / "bundle")
    bundle, run = serving.load(tmp_path / "bundle"), RunFiles.read(tmp_path / "run")
    model = keras.models.load_model(tmp_path / "run" / "model.keras", compile=False)
    frames = [np.load(tmp_path / f"{number}.npy") for number in range(48)]
    expected = [written(model, run, each) for each in frames]
    assert [answer.text for answer in bundle(frames)] == expected
    said = [line.split(",")[1] for line in table.read_text().splitlines()[1:]]
    assert np.mean([answer == words for answer, words in zip(expected, said)]) > 0.5
    lists = [each.tolist() for each in frames[:3]]
    assert [answer.text for answer in bundle(lists)] == expected[:3]
    scores = scores_of_both(tmp_path, table)
    wrong = [answer != words for answer, words in zip(expected, said)]
    assert scores["sentence_error_rate"] == pytest.approx(100 * np.mean(wrong))
    assert scores["examples"] == 48 and scores["word_error_rate"] < 50


def test_frames_are_scaled_by_the_means_and_deviations_of_training(tmp_path):
    table = recordings(tmp_path, of_vectors=False)
    options = {"file": str(table), "frames_column": "file", "target_column": "said"}
    reading = TranslationOptions(**options, held_out=0.25).make().reading
    train, validation = reading.read()
    assert len(validation) == 12
    frames = np.concatenate([example.text for example in train]).astype("float64")
    mean, deviation = reading.of_frames["source_scaling"]
    np.testing.assert_allclose(mean, frames.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(deviation, frames.std(axis=0), rtol=1e-9)

"""Bundles of every pipeline, and what is asked of them in Python and in JavaScript.

An input is written as JSON: a pair is a dictionary, frames and series are nested lists in one.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.generation import one_graph
from seqkeras.models import GPT, BiDAF, RNNSeq2Seq, Transformer
from seqkeras.serving.manifest import DecodingDefaults, Limits
from seqkeras.serving.text import (
    BOS,
    EOS,
    SPECIAL_TOKENS,
    CharacterTable,
    VectorizedWords,
    WordTable,
)
from seqkeras.serving.text.trees import SHAPES
from seqkeras.tokenizers import learn_byte_pairs
from tests import zoo
from tests.arrays import randomize
from tests.serving import toy_bundle, toy_language_model
from tests.serving.exported import write_bundle as write_exported
from tests.serving.pipelines import test_attention as attention
from tests.serving.pipelines import test_finite as finite
from tests.serving.pipelines import toys
from tests.serving.pipelines.toys import (
    TOKENIZER,
    TREE,
    TREE_WORDS,
    Toy,
    forecaster,
    frames_graph,
    tree_graph,
)

TABLE = CharacterTable.learn(["abcdefghijklm"])
TEXTS = [
    "the cat sat",
    "The  old DOGS, the big cat . he ran",
    "d\u00f3gs (c\u0327at) \u732b\u304c\u0301 x\u0301\u0302y",
    "new york\u200d \U0001f469\u200d\U0001f4bb \U0001f1e9\U0001f1ea\U0001f1eb the",
    "\u039f\u0394\u039f\u03a3 \u0130x do'gs",
    "caf\u00e9\nthe\tcat",
]
BYTES = learn_byte_pairs(["the cat sat on the mat . caf\u00e9 \u732b", "the dogs ran"] * 9, 280)
CONTEXT = "  ".join(["the big dogs , he sat on mats .", "old cat ran to new york"] * 3)
SPANS = {"start": "start", "end": "end", "window": 17, "stride": 5, "question_length": 6}
LABELS = ["good", "bad", "neither"]
TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
LONG = "the cat " * 40
SIZES = {
    "columns": [
        {"name": "tiny", "mean": 2e-12, "deviation": 1e-12, "log": True, "known": True},
        {"name": "free", "categories": ["true"], "known": True},
        {"name": "a", "known": True, "mean": 1.0, "deviation": 0.5},
        {"name": "far", "known": True, "mean": 1e9, "deviation": 7.0, "fill": 1e9 + 1},
    ]
}
TO_COME = {"tiny": 1e-12, "free": "no", "a": 2, "far": 1e9 - 5}


@dataclasses.dataclass(frozen=True)
class Bundle:
    """A bundle and its cases.

    Attributes:
        write: takes a folder.
        cases: (inputs, options) each; what is refused is a case too.
        streams: inputs that are streamed.
    """

    write: Callable
    cases: list
    streams: tuple = ()


def exported(pipeline, make, tokenizers, inputs=None, **changes):
    def write(folder):
        model = make()
        model.build(inputs)
        randomize(model)
        fields = {"limits": Limits(31, 31), "decoding": DecodingDefaults(start_id=5, end_id=7)}
        write_exported(folder, model, pipeline, tokenizers, **(fields | changes))

    return write


def language_model(tokenizer, limit=29, start_id=BOS, end_id=EOS, **changes):
    def write(folder):
        model = toy_language_model.ToyLanguageModel(len(tokenizer), limit, unknown=0.5)
        decoding = DecodingDefaults(start_id=start_id, end_id=end_id)
        toy_language_model.write_bundle(
            folder, model, tokenizer, **({"decoding": decoding} | changes)
        )

    return write


def write_embed_words(folder):
    run = folder.with_name("embed-words-run")
    zoo.embed_words(run)
    export(run, folder, options=ExportOptions(saved_models=False))


MONTHS = {
    "columns": [
        {"name": "load", "may_be_missing": True, "fill": 5, "decimal": "."},
        {"name": "wind", "categories": ["N", "S"], "known": True},
    ],
    "time": {"columns": ["time"], "unit": "month", "day": 31, "cycles": ["year"]},
}


def table(*changes, known=()):
    """A month of the table's rows after the other, with changes (row, name, value)."""
    ends = ["2023-12-31", "2024-01-31 03:00", 1709164800, "2024-03-31T00:00:00", "20240430"]
    loads = [None, "1,250", 7.5, "NA", "12 %"]
    rows = [
        {"time": time, "load": load, "wind": "NS"[place % 2], "more": [1]}
        for place, (time, load) in enumerate(zip(ends, loads))
    ]
    for row, name, value in changes:
        rows[row][name] = value
    return {"series": rows, "known": list(known) or [["S"], {"wind": "N"}]}


def plan(*times):
    """Rows that are known, with their times."""
    return [{"time": time, "wind": "S"} for time in times]


def frames(*lengths):
    random = np.random.default_rng(6)
    return [{"frames": random.normal(size=(length, 4)).round(4).tolist()} for length in lengths]


def series(*lengths, num_features=3):
    random = np.random.default_rng(7)
    return [
        {"series": random.normal(size=(length, num_features)).round(4).tolist()}
        for length in lengths
    ]


def known_series(*lengths):
    known = np.arange(8).reshape(2, 4).tolist()
    return [given | {"known": known} for given in series(*lengths)]


LETTERS = [f"up|{text}" for text in ("bad", "a", "cab", "fedbac")] + ["down|egad"]
PROMPTS = ["a", "hijkl", "fed", "", "ljabcd"]
WORDY = ["the cat", "he ran to", "", "old dogs sat"]
PAIRS = [{"text": "the cat", "pair": "sat on"}, {"text": LONG[:40], "pair": "he ran ."}]
QUESTIONS = [
    {"question": "who ran to paris?", "context": text} for text in (CONTEXT, "he ran", TEXTS[3])
]
CHOICES = [
    {"text": "the cat", "choices": ["sat on", "he ran to paris", "dogs ."]},
    {"text": "he ran", "choices": ["to new york", "on mats"]},
]
MASKED = [
    "the [MASK] sat",
    "[MASK] , [MASK] do[MASK]",
    " \n [MASK]dogs",
    "old [mask]  [MASK]\n[MASK]",
]
REFUSED = [("", {}), (" \n", {}), (3, {}), (None, {}), ("the \ud800 cat", {}), (LONG, {})]
CUT = (LONG, {"truncate": True})
OPTIONS = [("the cat", {"truncate": "no"}), ("the cat", {"token_budget": 0})]
FORCED = {"banned_tokens": ["b", 5], "forced_tokens": {"1": "c"}, "min_new_tokens": 4}
SAMPLED = {"sample": True, "seed": 3, "max_new_tokens": 7}
SEARCH = {"num_beams": 3, "n_best": 2}
REGEX = "[a-c]{2,3}|ge?f*"


def asked(inputs, *options):
    """Cases of the same inputs with each of these options."""
    return [(inputs, given) for given in options or [{}]]


def each(*inputs):
    return [(value, {}) for value in inputs]


def single(pipeline, graph, settings, *cases, tokenizer=TOKENIZER, **changes):
    graph = Toy(graph[1]).graph(graph[0]) if isinstance(graph, tuple) else graph
    return Bundle(
        lambda folder: toys.write_bundle(folder, pipeline, graph, settings, tokenizer, **changes),
        [case for some in cases for case in some],
    )


def transformer(table=TABLE, **changes):
    return exported(
        "Translate",
        lambda: Transformer(len(table), len(table), 24, 2, 3, 40, max_length=31),
        {"source": table, "target": table},
        generate=one_graph.encoder_decoder,
        **changes,
    )


def gpt(tokenizer, **changes):
    return exported(
        "Generate",
        lambda: GPT(len(tokenizer), 24, 2, 3, 40, 31),
        {"text": tokenizer},
        {"token_ids": (None, None)},
        generate=one_graph.language_model,
        **changes,
    )


def with_heads(pipeline, settings):
    make, tokenizers = attention.PIPELINES[pipeline][0], {"text": attention.TOKENIZER}
    return exported(pipeline, make, tokenizers, attention_heads=True, settings=settings)


def classes(*cases, graph=("pooled", 3), labels=LABELS, **more):
    settings = {name: more.pop(name) for name in SETTINGS & more.keys()}
    return single("Classify", graph, {"labels": labels} | settings, *cases, **more)


def tags(kind, *cases, labels=TAGS, **more):
    settings = {name: more.pop(name) for name in SETTINGS & more.keys()}
    graph = (kind, len(labels)) if isinstance(kind, str) else kind
    return single("Tag", graph, {"labels": labels} | settings, *cases, **more)


def forecasts(graph, settings, *cases):
    return single("Forecast", graph, settings, *cases, tokenizer={})


SETTINGS = {"pairs", "stride", "multi_label", "none_of_these", "rows", "words", "scheme"}
SETTINGS |= {"tree_shape"}
NUMBERS = {"columns": [{"name": "x", "decimal": ",", "may_be_missing": True}]}
NUMBERS["columns"] += [{"name": "y", "fill": 0.5}, {"name": "z"}]
KIND = {"name": "kind", "categories": ["a", "b"]}
ROW = {"x": "1.250,5", "y": 2, "z": 3, "kind": "a"}
CONTEXTS = [*TEXTS, CONTEXT, LONG]
TURNS = {"user": "a", "assistant": "b", "system": "c", "end": "d"}
MESSAGES = [{"role": "system", "content": "l"}, {"role": "user", "content": "k"}]
BUNDLES = {
    "translate": Bundle(
        lambda folder: toy_bundle.write_bundle(folder),
        [
            *asked(
                LETTERS,
                {},
                {"num_beams": 4, "n_best": 3, "length_penalty": 0.8},
                {"num_beams": 3, "early_stopping": True, "attention": True},
                {"num_beams": 3, "early_stopping": False, "n_best": 2, "token_budget": 60},
                {"attention": True},
                {"regex": REGEX},
                {"regex": REGEX, "num_beams": 3, "n_best": 3},
                {"choices": ["abc", "dd", "gfe"]},
                {"choices": ["abc", "dd"], "num_beams": 2, "n_best": 2},
            ),
            *each("", " ", 3, "Samstag", "sideways|a", "up|", "up|" + 11 * "a"),
            *each("up|a\0\ud800z\U0001f600"),
            ("up|" + 11 * "a", {"truncate": True}),
            *asked("up|a", {"num_beams": 12}, {"n_best": 2}, {"length_penalty": 11}),
            *asked("up|a", {"attention": "heads"}, {"regex": "x"}, {"regex": "(a)\\1"}),
            ("up|a", {"regex": "(" * 5000 + ")" * 5000}),
            ("up|a", {"regex": "a", "choices": ["a"]}),
            *asked("up|a", {"choices": ["xyz"]}, {"choices": ["abcdefg"]}),
        ],
        ("up|bad", "down|gfedcb"),
    ),
    "transformer": Bundle(
        transformer(attention_heads=True),
        asked(
            PROMPTS[:3],
            {},
            {"num_beams": 4, "n_best": 2, "length_penalty": 0.6},
            {"attention": "heads"},
        ),
        ("hijkl",),
    ),
    "translate rows": Bundle(
        exported(
            "Translate",
            lambda: RNNSeq2Seq.cho(None, len(TABLE), 5, 7, source_features=6),
            {"target": TABLE},
            settings={"rows": {"columns": [*NUMBERS["columns"], KIND]}},
        ),
        each(
            [ROW | {"kind": kind} for kind in ("a", "b", None)],
            ROW | {"x": None, "y": "NA", "more": 1},
            {"frames": [["1,5", 2, 3, "b"]]},
            *(ROW | {"kind": "c"}, {"x": 1}, ROW | {"y": "?"}, "a", [[1, 2, 3]]),
        ),
    ),
    "gpt": Bundle(
        gpt(BYTES, attention_heads=True),
        [
            (["the cat", "the"], {"attention": True}),
            (["the cat", "the"], {"attention": "heads", "num_beams": 2, "n_best": 2}),
            ("the cat", {"attention": "words"}),
            (["the cat", "caf\u00e9 \u732b", "the", "x"], {}),
            (["the cat", "the"], SEARCH),
            ("the cat", {"regex": " (the|cat)+[.!]?"}),
            ("the cat", {"choices": [" sat", "caf\u00e9", "!"], "num_beams": 2, "n_best": 2}),
        ],
        ("the cat",),
    ),
    "transformer with beams": Bundle(
        transformer(decoding=DecodingDefaults(3, 0.6, start_id=5, end_id=7)), each(PROMPTS[:3])
    ),
    "classify with heads": Bundle(
        with_heads("Classify", {"labels": attention.LABELS}),
        asked(
            [*attention.TEXTS, {"text": "a small model", "pair": "words"}],
            *({"attention": way} for way in (True, "heads", "words", "tokens")),
        ),
    ),
    "answer with heads": Bundle(
        with_heads("Answer", attention.SPAN | {"window": 25, "stride": 5}),
        asked(
            {"question": "a small model", "context": " ".join(attention.TEXTS)},
            {"attention": True},
            {"attention": "words"},
        ),
    ),
    "generate": Bundle(
        language_model(TABLE),
        [
            *asked(
                PROMPTS,
                {},
                SEARCH | {"length_penalty": 0.5},
                {"max_new_tokens": 5, "echo": True},
                FORCED,
                FORCED | {"num_beams": 3, "min_new_tokens": 2},
                {"repetition_penalty": 1.7, "max_new_tokens": 6},
                {"stop": ["b", "kc"]},
                {"regex": "[a-e]+k"},
                SAMPLED | {"n_best": 3},
                SAMPLED | {"temperature": 0.7, "top_k": 5},
                SAMPLED | {"top_p": 0.6, "n_best": 2, "token_budget": 30},
                SAMPLED | {"regex": "[a-e]*", "seed": 2**40 + 1},
            ),
            *asked("a" * 40, {}, {"truncate": True, "max_new_tokens": 3}, {"truncate": True}),
            *asked("a", {"max_new_tokens": 40}, {"top_k": 3}, {"stop": ""}),
            *asked("a", {"sample": True, "num_beams": 2}, {"banned_tokens": ["\u732b"]}),
            ("a", {"forced_tokens": {"1": "c"}, "banned_tokens": ["c"]}),
            ("a", {"min_new_tokens": 3, "regex": "a"}),
            (3, {}),
        ],
        ("hij", ""),
    ),
    "generate word pieces": Bundle(
        language_model(TOKENIZER, start_id=2, end_id=3, settings={"start": True}),
        asked(WORDY, {"max_new_tokens": 9}, {"regex": "(the|dogs| |[.])*", "max_new_tokens": 9}),
        ("the cat",),
    ),
    "conversation": Bundle(
        language_model(TABLE, settings={"turns": TURNS}),
        each(
            "fed",
            {"messages": MESSAGES},
            {"messages": [{"role": "assistant", "content": "l"}]},
            {"messages": []},
        ),
        ("fed",),
    ),
    "classify": classes(
        asked(TEXTS, {}, {"token_budget": 11}),
        [(PAIRS, {}), *REFUSED, CUT, *OPTIONS],
        asked("the cat", {"attention": True}, {"attention": "all"}),
        [({"text": "a", "pairs": "b"}, {}), ({"text": LONG, "pair": LONG}, {"truncate": True})],
        [("the cat", {"nodes": True}), ("\u200b", {}), ([], {})],
        [(TEXTS, {"top": 2}), ("the cat", {"top": 9}), ("the cat", {"top": 0})],
    ),
    "classify windows": classes(
        [(CONTEXTS, {}), (LONG, {"truncate": True}), *REFUSED[:-1]],
        [(PAIRS[0], {}), (LONG, {"top": 1})],
        pairs=False,
        stride=7,
    ),
    "several labels": classes(asked(TEXTS, {}, {"top": 1}), multi_label=True),
    "none of these": classes(
        asked([*TEXTS, "dog"], {}, {"top": 1}), graph=("pooled", 4), none_of_these=True
    ),
    "one logit": classes(
        each(PAIRS, "the cat"), graph=("pooled", 1), labels=["no", "yes"], pairs=True
    ),
    "regression": single("Classify", ("pooled", 1), None, [(TEXTS, {}), ("the cat", {"top": 1})]),
    "words": classes(
        [(TEXTS, {}), *REFUSED, CUT],
        tokenizer=WordTable.learn([*toys.WORDS, "dogs", "\u732b\u304c\u0301"], lowercase=True),
    ),
    "vectorized words": classes(
        [(TEXTS, {}), CUT],
        tokenizer=VectorizedWords([*VectorizedWords.special_tokens, *toys.WORDS, "dogs"]),
    ),
    "words of lines": classes(
        each(TEXTS, ["<eos>", "the <pad> cat <bos>", "<unk> the<eos>"]),
        tokenizer=VectorizedWords([*SPECIAL_TOKENS, *toys.WORDS[2:]], None, SPECIAL_TOKENS),
    ),
    "trees": classes(
        [([TREE, "(film)", "(2 (3 bad) (1 -LRB-))"], {}), ([TREE, "(film)"], {"nodes": True})],
        each("film", "(a", "(a) b", "(2 (a) b)", "(a" * 99, "", 3, "(1 (a) (b) (c) (d))"),
        graph=tree_graph()[1],
        labels=["good", "bad"],
        tokenizer={"words": TREE_WORDS},
    ),
    **{
        f"trees over words, {shape}": classes(
            [(["A good (very) b\u00e4d film!", "film", TREE], {"nodes": True}), *REFUSED, CUT],
            each("\u200b", "(film"),
            graph=tree_graph()[1],
            labels=["good", "bad"],
            tokenizer={"words": TREE_WORDS},
            tree_shape=shape,
        )
        for shape in SHAPES
    },
    "frames": classes(
        [(frames(5, 1, 9), {}), *asked(frames(40)[0], {}, {"truncate": True})],
        graph=frames_graph(),
        tokenizer={},
    ),
    "frames of rows": classes(
        each(
            {"frames": [["1.250,5", 2, 3], {"x": None, "y": "?", "z": 1}]},
            {"frames": [["1.250,5", 2, 3], {"x": None, "y": "a", "z": 1}]},
            {"frames": [["1,250.5", 2, 3]]},
            {"x": "7,5", "y": 2, "z": 3},
        ),
        graph=frames_graph(),
        rows=NUMBERS,
        tokenizer={},
    ),
    "frames tagged": tags(
        frames_graph(per_frame=True),
        each(frames(5, 1, 9)),
        labels=["O", "B-X", "I-X"],
        tokenizer={},
    ),
    "tag": tags(
        "tokens",
        [*asked(TEXTS, {}, {"token_budget": 9}), *REFUSED, CUT],
        each({"text": ["the", "d\u00f3gs,", "sat"]}, {"text": ["the cat"]}),
    ),
    "tag windows": tags("tokens", each(CONTEXTS), stride=7),
    "tag chains": tags("chain", each(CONTEXTS), stride=7),
    "tag spaces": tags("tokens", each(TEXTS), words="spaces"),
    "tag bytes": tags(
        Toy(5, vocab_size=len(BYTES)).graph("tokens"),
        each(TEXTS, {"text": ["caf\u00e9,", "the"]}),
        scheme=None,
        tokenizer=BYTES,
        limits=Limits(199),
    ),
    "tag a table of words": tags(
        "tokens",
        each(TEXTS, {"text": ["new york's", "the"]}, {"text": ["york's", "the"]}),
        tokenizer=WordTable.learn([*toys.WORDS, "dogs"]),
    ),
    "answer": single(
        "Answer",
        ("span", 2),
        SPANS | {"answer_length": 4},
        [*asked(QUESTIONS, {}, {"n_best": 5}), (QUESTIONS[0], {"no_answer_threshold": 1.0})],
        each({"question": "who " * 9, "context": "he"}, {"question": "", "context": "he"}),
        [({"question": "who " * 9, "context": CONTEXT}, {"truncate": True}), ("who?", {})],
    ),
    "answer or none": single(
        "Answer",
        ("span", 2),
        SPANS | {"no_answer": True},
        asked(QUESTIONS, {"n_best": 3}, {"no_answer_threshold": 9.0, "n_best": 2}),
    ),
    "answer of words": Bundle(
        exported(
            "Answer",
            lambda: BiDAF(5, 5, len(TABLE), 3, 7, 5),
            {"words": WordTable.learn(["the", "cat", "who"]), "characters": TABLE},
            settings={"start": "start_logits", "end": "end_logits", "question_length": 6},
            limits=Limits(59),
        ),
        [
            ([question | {"question": "who ran?"} for question in QUESTIONS], {"n_best": 3}),
            (QUESTIONS[0] | {"question": "a b c d e f g"}, {}),
        ],
    ),
    "choose": single(
        "Choose",
        ("choice", 1),
        None,
        each(CHOICES, {"text": "a", "choices": ["b"]}, {"text": "a", "choices": ["b", ""]}),
    ),
    "embed": single(
        "Embed",
        ("pooled", 5),
        None,
        [*asked(TEXTS, {}, {"normalize": False}), *REFUSED, ("the cat", {"words": True})],
    ),
    "embed words": Bundle(write_embed_words, asked(TEXTS, {"words": True}, {})),
    "fill mask": single(
        "FillMask",
        ("tokens", len(toys.TOKENS)),
        None,
        [*asked(MASKED, {}, {"top_k": 2}), ("the cat", {}), (LONG + "[MASK]", {"truncate": True})],
        [("the [MASK]", {"top_k": 99})],
    ),
    "fill mask at places": single("FillMask", ("masked", len(toys.TOKENS)), None, each(MASKED)),
    "forecast": forecasts(
        forecaster(),
        {},
        [(series(5, 1, 31, 2), {"token_budget": 20}), (series(40)[0], {"truncate": True})],
        each(series(40)[0], {"series": [[1, 2]]}, {"series": [[1, "a", 2]]}),
    ),
    "quantiles": forecasts(
        forecaster(quantiles="yes"), {"quantiles": [0.1, 0.6]}, each(series(5, 3))
    ),
    "forecast of rows": forecasts(
        forecaster(6, known="yes"),
        {"rows": MONTHS},
        each(
            [
                table(),
                table((4, "load", "1e3")),
                table((1, "wind", "W"), (2, "wind", None)),
                table(known=plan("2024-05-31", 1719705600)),
                table(known=plan("2024-05-31", "")),
            ]
        ),
        asked(table(known=[["W"], ["W"]]), {}, {"strict": True}),
        asked(table((1, "wind", "W")), {"strict": True}),
        each(
            table(known=[["S"]]),
            table(known=[[None], ["S"]]),
            table(known=plan("2024-06-30", "2024-07-31")),
            table(known=plan("2024-05-31", "2024-05-31")),
            table(known=plan("2024-05-31", "2024-06-31")),
            table(known=plan("2024-05-31", "2024-06-30Z")),
            table(known=plan("2024-05-31", "2024-06-30T00:00Z")),
            table((3, "time", "2024-03-30")),
            table((3, "time", "2024-03-31T00:00Z")),
            table((3, "time", None)),
            table((3, "time", "31.3.2024")),
            table((3, "load", "1.250,5")),
            table((3, "load", True)),
            table((3, "load", 1e39)),
            table((3, "wind", ["N"])),
            {"series": [], "known": [["S"]]},
            {"series": [["2024-01-31", 1, "N"]], "known": [["S"], ["S"]]},
            {"series": [{"time": "2024-01-31", "load": 1}], "known": [["S"]]},
            {"series": [["2024-01-31", 1, "N", 1]]},
            {"series": table()["series"] * 8, "known": table()["known"]},
        ),
    ),
    "forecast of sizes": forecasts(
        forecaster(4, known="yes"),
        {"rows": SIZES},
        each(
            *(
                {"series": given, "known": [[3e-12, True, 2, 1e9], TO_COME]}
                for given in (
                    [[7e-12, True, 2, 1e9 + 3], [None, "False", 2, None]],
                    [{"tiny": "9e-12", "free": "TRUE", "a": 1, "far": "1000000007.5"}],
                    [[7e-12, "__proto__", 2, 1e9], [-1, "maybe", 0, 1e9], [7e-12, 2.0, 0, 1e9]],
                )
            )
        ),
    ),
    "forecast with known": forecasts(
        forecaster(known="yes"), {}, each(known_series(5, 3), series(5)[0])
    ),
}
LARGE = [{"series": 5 * [3 * [3e38]]}]  # which overflows in the model
BUNDLES |= {
    f"not finite {name}": single(
        pipeline, finite.graph_of(outputs, kind, np.nan), settings, each([good, bad], bad, good)
    )
    for name, (pipeline, outputs, kind, settings, _, good, bad) in finite.KINDS.items()
} | {"not finite forecast": forecasts(forecaster(), None, each([*series(3), *LARGE], [*LARGE]))}

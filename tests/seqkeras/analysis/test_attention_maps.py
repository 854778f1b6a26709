import itertools

import numpy as np
import pytest
from matplotlib.image import imread

from seqkeras import analysis
from seqkeras.analysis import AttentionMap, maps_of_heads, plot_attention_lines, plot_attention_maps
from seqkeras.analysis.attention_maps import attention_figure, lines_figure
from seqkeras.serving.text import word_piece
from tests.conftest import run_python
from tests.refusals import refusals

pytestmark = pytest.mark.filterwarnings("error")

SOURCES = [
    "de|Samstag, 3. Mai 2014",
    "ar|السبت، 3 مايو 2014",
    "fa|شنبه ۱۳ اردیبهشت ۱۳۹۳",
    "he|יום שבת, 3 במאי 2014",
    "ja|2014年5月3日土曜日",
    "zh|2014年5月3日星期六",
    "ko|2014년 5월 3일 토요일",
    "ru|суббота, 3 мая 2014 г.",
    "el|Σάββατο 3 Μαΐου 2014",
    "hi|शनिवार, 3 मई 2014",
    "th|วันเสาร์ที่ 3 พฤษภาคม 2557",
    "a$b$ _{\\x}^ \t\n\u00a0\u202f\u200d\u200f\ue000\ud800\U0001f9ff\u3164e\u0301",
    "W" * 23 + "—…m%@㍿ǄﷺﷴXЩ" * 2,
]


def panels(figure):
    return [axes for axes in figure.axes if axes.get_label().startswith("map")]


def attention_map(source, target="2014-05", title=None):
    weights = np.random.default_rng(7).random((len(target), len(source)))
    return AttentionMap(source, target, weights / weights.sum(1, keepdims=True), title)


def test_a_png_is_written_with_a_panel_for_every_map(tmp_path):
    maps = [attention_map(source) for source in SOURCES]
    figure = attention_figure(maps)
    assert [axes.get_label() for axes in panels(figure)] == [f"map {i}" for i in range(len(maps))]
    for axes in panels(figure):
        rows, columns = axes.collections[0].get_array().shape
        box = axes.get_window_extent()
        np.testing.assert_allclose(box.width / columns, box.height / rows)  # cells are square
    plot_attention_maps(maps, tmp_path / "maps.png")
    height, width, _ = imread(tmp_path / "maps.png").shape
    np.testing.assert_allclose((width, height), figure.get_size_inches() * figure.dpi)
    assert (tmp_path / "maps.png").stat().st_size < 500_000


def test_every_head_of_every_layer_gets_its_map_without_padding():
    weights = np.random.default_rng(0).random((2, 3, 5, 7))
    weights[..., 4:] = 0
    weights /= weights.sum(axis=-1, keepdims=True)
    maps = maps_of_heads(weights, ["a", "b", "c", "d"], "xyz")
    titles = [f"layer {layer}, head {head}" for layer in range(2) for head in range(3)]
    assert [each.title for each in maps] == titles
    np.testing.assert_array_equal(maps[4].weights, weights[1, 1, :3, :4])
    [one] = maps_of_heads(weights, "abcd", "xyz", layer=1, head=2)
    np.testing.assert_array_equal(one.weights, weights[1, 2, :3, :4])
    [mean] = maps_of_heads(weights, "abcd", "xyz", layer=0, head="mean")
    np.testing.assert_allclose(mean.weights, weights[0, :, :3, :4].mean(axis=0))
    assert mean.title == "layer 0, mean of heads"
    [itself] = maps_of_heads(np.eye(4), "abcd")
    assert itself.target == itself.source == "abcd" and itself.line == "abcd"


def test_the_weights_move_with_their_characters():
    word = "\u05e9\u05d1\u05ea"
    source = "he|" + word + " 31"
    weights = np.zeros((2, len(source)))
    weights[0, source.index("h")] = weights[1, source.index("3")] = 1
    (axes,) = panels(attention_figure([AttentionMap(source, "xy", weights)]))
    across = [text for text in axes.texts if text.get_position()[0] > 0]
    across = [text.get_text() for text in sorted(across, key=lambda text: text.get_position()[0])]
    assert across == list("31␣" + word[::-1] + "|he")
    drawn = np.asarray(axes.collections[0].get_array())
    assert [across[column] for column in drawn.argmax(axis=1)] == ["h", "3"]
    assert axes.get_xlim() == (0, len(source)) and axes.get_ylim() == (2, 0)


def test_words_that_a_tokenizer_splits_are_whole():
    tokenizer = word_piece("[UNK] [CLS] [SEP] play ##ing the cat ##s".split())
    encoding = tokenizer.analyze("Playing the", "cats")  # [CLS] play ##ing the [SEP] cat ##s [SEP]
    weights = softmaxes(1, 2, 8, 8)
    runs = [[0], [1, 2], [3], [4], [5, 6], [7]]
    for each, head in zip(maps_of_heads(weights, encoding), weights[0], strict=True):
        assert each.source == each.target == ("[CLS]", "Playing", "the", "[SEP]", "cats", "[SEP]")
        for (t, rows), (s, columns) in itertools.product(enumerate(runs), repeat=2):
            expected = np.mean([sum(head[row][column] for column in columns) for row in rows])
            np.testing.assert_allclose(each.weights[t, s], expected)


def softmaxes(*shape):
    exps = np.exp(np.random.default_rng(0).normal(size=shape))
    return exps / exps.sum(axis=-1, keepdims=True)


def test_a_line_joins_each_word_to_what_it_attends_to():
    weights = [[0.9, 0.06, 0.04], [0.0, 0.5, 0.5]]
    (axes,) = panels(lines_figure(AttentionMap(["one", "two", "three"], ["eins", "zwei"], weights)))
    (lines,) = axes.collections
    ends = [tuple((segment[:, 1] - 0.5).round(6)) for segment in lines.get_segments()]
    assert ends == [(0, 1), (1, 1), (1, 2), (0, 0)]  # the strongest last; 0.04 is negligible
    _, right = axes.get_xlim()
    for segment in lines.get_segments():
        np.testing.assert_array_equal(segment[:, 0], [0, right])
    widths = lines.get_linewidths()
    assert widths[0] < widths[1] == widths[2] < widths[3]
    darkness = 3 - lines.get_colors()[:, :3].sum(axis=1)
    assert darkness[0] < darkness[1] == darkness[2] < darkness[3]
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert [places[word][1] for word in ("eins", "zwei")] == [0.5, 1.5]
    assert [places[word][1] for word in ("one", "two", "three")] == [0.5, 1.5, 2.5]
    assert places["eins"][0] < 0 and places["one"][0] > right


@pytest.mark.parametrize("plot", [plot_attention_maps, plot_attention_lines])
def test_a_path_that_can_not_be_written_is_refused(plot, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    each = AttentionMap("ab", "x", [[0.5, 0.5]])
    for path in ("x.foo", "x"):
        message = rf"^{plot.__name__}: path must end in \.png; received '{path}'\.$"
        with pytest.raises(ValueError, match=message):
            plot(each, path)
    message = (
        rf"^{plot.__name__}: the folder of path must exist; received 'pictures/x\.png'\. Make the "
        r"folder 'pictures' first\.$"
    )
    with pytest.raises(FileNotFoundError, match=message):
        plot(each, "pictures/x.png")
    (tmp_path / "x.png").mkdir()
    message = rf"^{plot.__name__}: path must be a file; received the folder 'x\.png'\.$"
    with pytest.raises(IsADirectoryError, match=message):
        plot(each, "x.png")
    plot(each, "X.PNG")
    assert imread("X.PNG").size


DRAWING = """
import sys
from seqkeras import serving
from seqkeras.analysis import maps_of_heads, plot_attention_lines, plot_attention_maps

maps = maps_of_heads([[[[0.5, 0.5], [1, 0]]]], ["a", "film"], layer=0, head=0)
plot_attention_maps(maps, sys.argv[1])
plot_attention_lines(maps, sys.argv[1])
assert not {"keras", "tensorflow"} & set(sys.modules)
"""


def test_drawing_prints_nothing_and_imports_no_keras(tmp_path):
    finished = run_python("-c", DRAWING, tmp_path / "head.png")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_names_that_need_keras_are_there_when_they_are_used():
    assert {*analysis.__all__} <= {*dir(analysis)}
    assert analysis.text_likelihood.TextLikelihood is analysis.TextLikelihood
    message = r"^module 'seqkeras\.analysis' has no attribute 'attention'$"
    with pytest.raises(AttributeError, match=message):
        analysis.attention()


def of_map(source, target, weights):
    return lambda: AttentionMap(source, target, weights)


def of_heads(weights=None, tokens="ab", **options):
    given = np.full((2, 3, 2, 2), 0.5) if weights is None else weights
    return lambda: maps_of_heads(given, tokens, **options)


def large(length):
    return AttentionMap("a" * length, "b" * length, np.eye(length), title="head")


PICTURE = "maps.png"  # which is not written
SPLIT = word_piece("[UNK] [CLS] [SEP] play ##ing".split()).analyze("playing")
test_what_is_no_map_and_what_does_not_fit_is_refused = refusals(
    (of_map("", "xy", np.zeros((2, 0))), "source must hold ... character, or strings; received ''"),
    (of_map("abc", "", np.zeros((0, 3))), "target must hold ... or strings; received ''."),
    (of_map("abc", [1, 2], np.eye(3)[:2]), "target must hold ... or strings; received (1, 2)."),
    (of_map("abc", "xy", np.full((3, 2), 0.5)), "weights must have shape (len(target), len(source"),
    (of_map("abc", "xy", [[0, 0, 1], [0.5, 0, 0]]), "every row of weights must sum to 1; received"),
    (of_map("abc", "xy", np.full((2, 3), np.nan)), "sum to 1; received nan in row 0."),
    (of_map("abc", "xy", [[-1, 1, 1]] * 2), "AttentionMap: weights must not be negative; received"),
    (of_heads(head=3), 'head must be from 0 to 2, "mean" or None for all; received 3.'),
    (of_heads(layer="last"), "layer must be from 0 to 1 or None for all; received 'last'."),
    (of_heads(np.ones((3, 2, 2))), "weights must have shape ... of one example; received (3, 2, 2"),
    (of_heads(np.ones((1, 2, 3, 4)), SPLIT), "of_words: weights must be of 4 by 4 tokens at least"),
    (lambda: plot_attention_maps([], PICTURE), "maps must hold at least one map; received none."),
    (
        lambda: plot_attention_maps([large(401)] * 529, PICTURE),
        "the picture must fit in 8000 x 8000 pixels, with a pixel for each weight; received maps x "
        "target x source = 529 x 401 x 401. Pass layer= and head= to maps_of_heads, or shorter tex",
    ),
    (lambda: plot_attention_lines(large(601), PICTURE), "plot_attention_lines: ... with words tha"),
)

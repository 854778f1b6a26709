"""Every figure of the gallery is drawn by its command, and stands on the page."""

import re

import numpy as np
import pytest
from matplotlib.image import imread

from seqkeras.__main__ import main
from seqkeras.analysis.__main__ import FIGURES
from tests.conftest import CHECKOUT, others_long

SMALL = {
    "tanh": ["--units", "7"],
    "power": ["--steps", "5"],
    "gradients": ["--steps", "1", "--length", "3"],
    "gradient-flow": ["--units", "3", "--steps", "4", "--radii", "0.5,2"],
    "positions": ["--length", "11", "--dim", "8"],
    "heads": ["--steps", "2"],
    "dialogue": ["--steps", "2"],
    "hard-attention": ["--steps", "2", "--draws", "2"],
    "decoder": ["--steps", "2", "--text", "one cat sees the dog"],
    "beam": ["--steps", "2", "--beams", "2", "--length-penalty", "0.6"],
    "masks": ["--length", "5"],
    "layers": ["--longest", "32"],
    "sizes": ["--length", "11"],
}
PAGE = (CHECKOUT / "docs/gallery.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", others_long(FIGURES, short=2))
def test_a_command_draws_a_figure(name, tmp_path, capsys):
    path = tmp_path / "figure.png"
    assert main(["figure", name, "--out", str(path), *SMALL[name]]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{path}: drawn"
    picture = imread(path)[..., :3]
    assert min(picture.shape[:2]) > 300 and len(np.unique(picture)) > 20


def test_every_figure_has_its_command_and_its_picture_on_the_page():
    commands = re.findall(r"^seqkeras figure (\S+) .*--out docs/(\S+)", PAGE, re.M)
    assert sorted(name for name, _ in commands) == sorted(FIGURES)
    pictures = [picture for _, picture in commands]
    assert pictures == re.findall(r"!\[[^\]]{20,}\]\((\S+)\)", PAGE)
    assert all((CHECKOUT / "docs" / picture).stat().st_size < 100_000 for picture in pictures)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["mask", "--out", "x.png"], "the figure must be one of tanh, "),
        (["masks", "--out", "none/x.png"], "the folder of path must exist; received 'none/x.png'"),
        (["masks", "--out", "x.png", "--length", "4"], "length must be from 5 to 24; received 4."),
        (["positions", "--out", "x.png", "--dim", "7"], "dim at least 8; received 100 and 7."),
        (["tanh", "--out", "x.png", "--units", "0"], "units must be at least 1; received 0."),
        (["power", "--out", "x.png", "--units", "4"], "units must be at least 5, and steps"),
        (["decoder", "--out", "x.png", "--text", "a cat"], "text must be words of cat, dog"),
        (["gradients", "--out", "x.png", "--length", "1"], "length must be at least 2, and steps"),
        (["gradient-flow", "--out", "x.png", "--steps", "1"], "at least 2; received 32, 1."),
        (
            ["gradient-flow", "--out", "x.png", "--radii", "1,a"],
            "argument --radii: expected numbers with commas between; received '1,a'",
        ),
        (["gradient-flow", "--out", "x.png", "--radii", "1,0"], "is below 1e300; received 0."),
        (["heads", "--out", "x.png", "--chinese", "狗"], "它; received '狗'."),
        (["heads", "--out", "x.png", "--english", "it fell"], "received 'fell'."),
        (
            ["dialogue", "--out", "x.png", "--topic", "eat"],
            "topic must be one of drink, visit; received 'eat'.",
        ),
        (["heads", "--out", "x.png", "--steps", "0"], "steps must be at least 1; received 0."),
        (["hard-attention", "--out", "x.png", "--draws", "1"], "at least 2; received 1."),
        (["beam", "--out", "x.png", "--beams", "11"], "beams must be at most 10; received 11."),
        (["beam", "--out", "x.png", "--steps", "0"], "steps must be at least 1; received 0."),
        (["sizes", "--out", "x.png", "--length", "513"], "length must be from 1 to 512; received"),
        (["layers", "--out", "x.png", "--longest", "31"], "longest must be at least 32; received"),
    ],
)
def test_what_can_not_be_drawn_is_refused_in_a_line(arguments, error, capsys):
    try:
        status = main(["figure", *arguments])
    except SystemExit as exit:
        status = exit.code
    assert status == 2 and error in capsys.readouterr().err.splitlines()[-1]

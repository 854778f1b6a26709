"""Cells of a user's own leave, alone and in both directions: as docs/cells.md shows, and others."""

import re
import sys
import types

import keras
import numpy as np
import pytest

from seqkeras import recurrent
from seqkeras.composites import check_network
from seqkeras.export import onnx_graphs
from seqkeras.export.composites import layouts
from seqkeras.export.composites.recurrent import lowerings_of
from seqkeras.recurrent import LSTM, RNN, Bidirectional
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import close, floats, numbers, right_padded
from tests.catalogue.case import B, D, S, U
from tests.catalogue.cells import MinimalGatedCell
from tests.conftest import CHECKOUT, others_long
from tests.export.running import converted, require_agreement
from tests.seqkeras.recurrent.rivals import built

PAGE = (CHECKOUT / "docs" / "cells.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
USE, CHECK = re.findall(r"```python\n(from .*?)```", PAGE, re.DOTALL)
[TOLD] = re.findall(r"```\n(Network .*?)```", PAGE, re.DOTALL)
MASKS = {
    "right-padded": right_padded([S, 2], S),
    "holes": np.array([[0, 1, 0, 1, 1], [0] * S], bool),
}
every_mask = pytest.mark.parametrize("mask", others_long(MASKS.values()), ids=MASKS)
both_ways = pytest.mark.parametrize(
    "wrap", [lambda layer: layer, Bidirectional], ids=["one way", "both ways"]
)
SEQUENCES = floats(B, S, D)


@pytest.fixture(scope="module")
def shown():
    """The module that the page shows."""
    module = types.ModuleType("seqkeras.recurrent.coupled_lstm")
    exec(compile(BLOCKS["seqkeras/recurrent/coupled_lstm.py"], "cells.md", "exec"), vars(module))
    return module


def counts_of(layer):
    """The nodes of a layer, behind a proof that they give its numbers under any mask."""

    def function(sequences, mask):
        return {"outputs": layer(sequences, mask=mask)}

    sequences = TensorSpec("sequences", "float32", ("batch", "length", D))
    graph = converted(function, sequences, TensorSpec("mask", "bool", ("batch", "length")))
    for mask in MASKS.values():
        require_agreement(graph, function, {"sequences": SEQUENCES, "mask": mask})
    return graph.node_counts()


def test_the_page_shows_three_files_that_are_where_it_says():
    new, *changed = BLOCKS
    assert len(BLOCKS) == 3
    assert (CHECKOUT / new).parent.is_dir()
    assert all((CHECKOUT / path).is_file() for path in changed)
    assert "LAYOUTS = {" in (CHECKOUT / changed[1]).read_text(encoding="utf-8")


def by_loops(weights, sequences, mask):
    """The formula of the page in float64, a row and a step at a time."""
    kernel, recurrent_kernel, bias = (each.astype("float64") for each in weights)
    outputs = np.zeros((*sequences.shape[:2], U))
    for row in range(len(sequences)):
        h = c = np.zeros(U)
        for t in np.flatnonzero(mask[row]):
            a = sequences[row, t] @ kernel + h @ recurrent_kernel + bias
            i, g, o = np.split(a, 3)
            i, o = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-o))
            c = (1 - i) * c + i * np.tanh(g)
            h = outputs[row, t] = o * np.tanh(c)
    return outputs


@every_mask
def test_what_is_shown_computes_its_formula(shown, mask):
    layer = built(shown.CoupledLSTM(U, return_sequences=True))
    close(layer(SEQUENCES, mask=mask), by_loops(layer.get_weights(), SEQUENCES, mask))
    plain = built(shown.CoupledLSTM(U, return_sequences=True, use_cudnn=False, unroll=True))
    plain.set_weights(layer.get_weights())
    close(plain(SEQUENCES, mask=mask), layer(SEQUENCES, mask=mask))


def test_the_check_shown_is_silent(shown):
    exec(compile(CHECK, "cells.md", "exec"), vars(shown).copy())


def test_a_mistake_is_told_as_the_page_says(shown):
    wrong = types.ModuleType("wrong")
    code = BLOCKS["seqkeras/recurrent/coupled_lstm.py"].replace("dc * (g - c_before) *", "dc * g *")
    code = code[: code.index("@keras.saving")]  # the equations alone
    exec(compile(code, "cells.md", "exec"), vars(wrong))
    with pytest.raises(ValueError) as raised:
        check_network(wrong.coupled_lstm)
    assert f"{raised.value}\n" == TOLD


@both_ways
def test_without_a_layout_it_leaves_op_by_op_and_takes_any_mask(shown, wrap, monkeypatch):
    for composite in ("coupled_lstm", "bidirectional_coupled_lstm"):
        monkeypatch.delitem(onnx_graphs.LOWERINGS, composite, raising=False)
    counts = counts_of(built(wrap(shown.CoupledLSTM(U, return_sequences=True))))
    assert counts.get("Loop", 0) and not counts.get("LSTM")


@both_ways
def test_with_the_layout_shown_it_is_one_fused_node(shown, wrap, monkeypatch):
    entries = eval("{" + BLOCKS["export/composites/layouts.py"] + "}", vars(layouts))
    [(name, layout)] = entries.items()
    for composite, lowering in lowerings_of(name, layout).items():
        monkeypatch.setitem(onnx_graphs.LOWERINGS, composite, lowering)
    counts = counts_of(built(wrap(shown.CoupledLSTM(U, return_sequences=True))))
    assert counts["LSTM"] == 1 and not {"Loop", "Scan"} & set(counts)


def test_the_model_shown_is_saved_and_loaded(shown, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, shown.__name__, shown)
    imported = {}
    exec(BLOCKS["seqkeras/recurrent/__init__.py"], imported)
    for name in ("CoupledLSTM", "CoupledLSTMCell"):
        monkeypatch.setattr(recurrent, name, imported[name], raising=False)
    names = {"keras": keras}
    exec(compile(USE, "cells.md", "exec"), names)
    ids = np.array([[3, 4, 5, 0], [6, 0, 0, 0]])
    expected = numbers(names["tagger"](ids))
    assert expected.shape == (2, 4, 9)
    names["tagger"].save(tmp_path / "model.keras")
    close(keras.saving.load_model(tmp_path / "model.keras")(ids), expected)


def test_both_ways_of_a_cell_of_keras_s_protocol_leave_as_loops():
    layer = Bidirectional(RNN(MinimalGatedCell(U), return_sequences=True))
    assert counts_of(built(layer))["Loop"] == 2


def test_outputs_that_are_repeated_leave_behind_the_fused_node():
    layer = LSTM(U, return_sequences=True, zero_output_for_mask=False)
    assert counts_of(built(layer))["LSTM"] == 1

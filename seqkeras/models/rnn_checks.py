"""What the arguments of `RNNSeq2Seq` must be, and which of them go together."""

from seqkeras.attention import Attention, HardAttention, LocalAttention, MultiHeadAttention
from seqkeras.models.contexts import CONTEXTS
from seqkeras.models.never_generated import id_problems
from seqkeras.models.rnn_cells import cell_problems, is_qrnn
from seqkeras.models.rnn_wirings import SCORES, WIRINGS
from seqkeras.shapes import require_positive

CHOICES = {
    "context": CONTEXTS,
    "initial_cell": ("zeros", "bridge"),
    "wiring": WIRINGS,
    "attention_place": ("before", "after"),
}
LAYERS = (Attention, MultiHeadAttention, HardAttention, LocalAttention)
SAME_DIM = ("dot", "scaled_dot")  # scores of vectors of one size


def check_arguments(model, sizes, options, cells, attention, encoder_dim):
    """Raise a ValueError that gives every reason why no model can be made of the arguments.

    Args:
        model: for its name.
        sizes, options: the arguments by name.
        cells: by argument, "cell" and "decoder_cell", a name or a layer each.
        attention: None, a name, or a layer.
        encoder_dim: size of the encoder's states, both directions.
    """
    require_positive(model, **sizes)
    problems = _cell_problems(**cells) + [
        f"{name} must be one of {sorted(choices)}; received {options[name]!r}."
        for name, choices in CHOICES.items()
        if options[name] not in choices
    ]
    problems += id_problems(options["never_generated"], sizes["target_vocab_size"])
    problems += _attention_problems(attention)
    if not problems:
        rules = _rules(sizes, options, attention, encoder_dim)
        problems = [message for holds, message in rules if not holds]
    if problems:
        raise ValueError(f"{type(model).__name__}: {' '.join(problems)}")


def _cell_problems(cell, decoder_cell):
    problems = cell_problems(cell)
    if not problems and is_qrnn(decoder_cell):
        given = "" if decoder_cell is cell else f"; received {decoder_cell!r}"
        return [f'a QRNN reads sources only: name a decoder_cell, such as "gru"{given}.']
    return problems or cell_problems(decoder_cell, "decoder_cell")


def is_hard(attention):
    """Whether an attention, a name or a layer, takes one position."""
    return isinstance(attention, HardAttention) or attention == "hard"


def _attention_problems(attention):
    known = attention is None or (isinstance(attention, str) and attention in SCORES)
    if known or isinstance(attention, LAYERS):
        return []
    return [
        "attention must be None, an Attention, MultiHeadAttention, HardAttention or "
        f"LocalAttention, or one of {sorted(SCORES)}; received {attention!r}."
    ]


def _rules(sizes, options, attention, encoder_dim):
    wiring, after = options["wiring"], options["attention_place"] == "after"
    decoder_units = sizes["decoder_units"]
    fed = options["feed_output"] and wiring != "context"
    dims = f"received {encoder_dim} and {decoder_units}."
    return [
        (
            options["bridge_layers"] >= 0,
            f"bridge_layers must be at least 0; received {options['bridge_layers']}.",
        ),
        (
            options["bridge_layers"] > 0 or encoder_dim == decoder_units,
            f"without a bridge the encoder's states must be as wide as decoder_units; {dims}",
        ),
        (
            options["feed_output"] or wiring == "initial_state",
            f'feed_output=False goes with wiring="initial_state"; received {wiring!r}.',
        ),
        (
            attention is None or after or wiring != "initial_state",
            'attention before the cell needs a wiring with the context; received "initial_state".',
        ),
        (
            attention is not None or not after,
            'attention_place="after" needs an attention; received None.',
        ),
        (
            not after or wiring == "initial_state",
            f'attention after the cell needs wiring="initial_state"; received {wiring!r}.',
        ),
        (
            not after or options["readout"],
            "attention after the cell needs readout=True: h~ is the readout.",
        ),
        (
            after or not options["input_feeding"],
            'input_feeding needs attention_place="after"; received "before".',
        ),
        (
            attention not in SAME_DIM or encoder_dim == decoder_units,
            f"{attention} attention needs the encoder's states as wide as decoder_units; {dims} "
            'attention="general" takes different ones.',
        ),
        (
            not isinstance(attention, MultiHeadAttention)
            or not (attention.causal or attention.dropout),
            "multi-head attention sees the whole source, whatever the step: it needs causal=False "
            f"and dropout=0; received {attention!r}.",
        ),
        (
            fed or options["teacher_forcing"] == 1,
            "a decoder that is not fed the output has nothing to force: teacher_forcing must be 1; "
            f"received {options['teacher_forcing']!r}.",
        ),
        (
            not is_hard(attention) or options["teacher_forcing"] == 1,
            "hard attention is trained on the tokens given: teacher_forcing must be 1; "
            f"received {options['teacher_forcing']!r}.",
        ),
        (
            options["entropy_weight"] >= 0,
            f"entropy_weight must be at least 0; received {options['entropy_weight']}.",
        ),
        (
            is_hard(attention) or options["entropy_weight"] == 0,
            f"entropy_weight needs a hard attention; received {options['entropy_weight']}.",
        ),
    ]

"""Encoder-decoders of papers, from sizes and options: the presets of `RNNSeq2Seq`.

Each takes the sizes, and by keyword the other arguments of `rnn_parts.parts_from_sizes`, whose
defaults here are the paper's. A source of frames (`source_features`) has no vocabulary.
"""

import inspect

from seqkeras.models.rnn_decoder import RNNDecoder
from seqkeras.models.rnn_parts import parts_from_sizes
from seqkeras.models.rnn_wirings import BahdanauDecoder, ClassicalDecoder, LuongDecoder
from seqkeras.shapes import size_problems

FROM_ENCODER = {"bridge_layers": 0, "cell_states": True}  # every state as it is
ONE_WAY = {"bidirectional": False}
SIZES = ("source_vocab_size", "target_vocab_size", "embedding_dim", "units", "decoder_units")
OF_SIZES = {*SIZES, "vocab_size", "num_layers"}  # what the parts are given of them


def _preset(decoder):
    """Make a constructor of `RNNSeq2Seq` from a function that returns its defaults.

    Args:
        decoder: the class of the model's decoder.
    """

    def constructor(defaults):
        def make(
            cls,
            source_vocab_size=None,
            target_vocab_size=None,
            embedding_dim=None,
            units=None,
            decoder_units=None,
            **options,
        ):
            values = source_vocab_size, target_vocab_size, embedding_dim, units, decoder_units
            sizes = dict(zip(SIZES, values, strict=True))
            _refuse(make.__qualname__, decoder, sizes, options)
            return cls(**parts_from_sizes(decoder, **sizes, **{**defaults(), **options}))

        make.__name__, make.__doc__ = defaults.__name__, defaults.__doc__
        make.__qualname__ = f"RNNSeq2Seq.{defaults.__name__}"
        return make

    return constructor


def _refuse(who, decoder, sizes, options):
    """Raise a ValueError with every invalid size and every unknown option."""
    optional = {"decoder_units", "source_vocab_size"}
    left_out = {name for name in optional if sizes[name] is None}
    problems = size_problems(**{name: sizes[name] for name in SIZES if name not in left_out})
    if sizes["source_vocab_size"] is None and options.get("source_features") is None:
        problems.append(
            "source_vocab_size, of tokens, or source_features, of frames, must be given; received "
            "None for both."
        )
    known = _options_of(decoder)
    unknown = [name for name in options if name not in known]
    if unknown:
        problems.append(
            f"{', '.join(unknown)} can not be given; the options are {', '.join(sorted(known))}."
        )
    if problems:
        raise ValueError(f"{who}: {' '.join(problems)}")


def _options_of(decoder):
    """Return the names of the arguments after the sizes."""
    classes = decoder.__mro__[: decoder.__mro__.index(RNNDecoder) + 1]
    made_by = (parts_from_sizes, *(kind.__init__ for kind in classes))
    parameters = [p for made in made_by for p in inspect.signature(made).parameters.values()]
    named = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
    fixed = {"readout"} if issubclass(decoder, LuongDecoder) else set()
    return named - fixed - OF_SIZES - {"self", "decoder"}


@_preset(ClassicalDecoder)
def sutskever():
    """Return Sutskever's model: four LSTM layers a side; the decoder starts from the encoder's
    states.

        s(0) = h(S)        s(t) = LSTM(y(t-1), s(t-1))        logits(t) = V s(t)

    The paper gives the source to the encoder in reverse order: reverse_source=True.

    Reference: Sutskever et al. 2014, https://arxiv.org/abs/1409.3215
    """
    layers = {"encoder_layers": 4, "decoder_layers": 4, "readout": False}
    return {"cell": "lstm", **ONE_WAY, **FROM_ENCODER, **layers}


@_preset(ClassicalDecoder)
def cho():
    """Return the context at every step, with the previous word; s(0) comes from it, too.

        c = tanh(V h(S))    s(0) = tanh(V' c)    s(t) = GRU([y(t-1); c], s(t-1))
        logits(t) = V'' tanh(W_o [s(t); y(t-1); c])

    Our tanh is the paper's maxout.

    Reference: Cho et al. 2014, appendix A.1, https://arxiv.org/abs/1406.1078
    """
    return {**ONE_WAY, "context": "map", "reads_context": True}


@_preset(BahdanauDecoder)
def bahdanau():
    """Return Bahdanau's model: attention before the cell, over both directions of the source.

        c(t) = attention(query = s(t-1))    s(t) = GRU([y(t-1); c(t)], s(t-1))
        s(0) = tanh(W_s h(S))               logits(t) = V tanh(W_o [s(t); y(t-1); c(t)])

    Our tanh is the paper's maxout. His readout reads s(t-1), ours s(t); his s(0) comes from the
    backward state at the first word, ours from the last states of both directions.

    Reference: Bahdanau et al. 2015, appendix A.2, https://arxiv.org/abs/1409.0473
    """
    return {"attention": "additive"}


@_preset(LuongDecoder)
def luong():
    """Return Luong's model: attention after the cell, whose h~ the next step reads; four LSTM
    layers a side.

        s(0) = h(S)    s(t) = LSTM([y(t-1); h~(t-1)], s(t-1))    c(t) = attention(query = s(t))
        h~(t) = tanh(W_c [c(t); s(t)])        logits(t) = V h~(t)

    Reference: Luong et al. 2015, sections 3 and 4.1, https://arxiv.org/abs/1508.04025
    """
    layers = {"encoder_layers": 4, "decoder_layers": 4, "input_feeding": True}
    return {"attention": "general", "cell": "lstm", **ONE_WAY, **FROM_ENCODER, **layers}


@_preset(ClassicalDecoder)
def classical_first_state():
    """Return the first classical decoder: the context is the first state, and no word is read.

        s(0) = c        s(t) = RNN(s(t-1))        logits(t) = V tanh(W_o s(t))

    Reference: Goodfellow et al. 2016, sections 10.2.4 and 10.4, https://www.deeplearningbook.org
    """
    return {**ONE_WAY, **FROM_ENCODER, "reads_output": False}


@_preset(ClassicalDecoder)
def classical_context():
    """Return the second classical decoder: the context enters every step; no word is read.

        s(0) = 0, or learned        s(t) = RNN(c, s(t-1))        logits(t) = V tanh(W_o [s(t); c])

    Reference: Goodfellow et al. 2016, sections 10.2.4 and 10.4, https://www.deeplearningbook.org
    """
    options = {"first_state": "zeros", "reads_context": True, "reads_output": False}
    return {**ONE_WAY, **options}


@_preset(ClassicalDecoder)
def classical_context_and_output():
    """Return the third classical decoder: context and previous word enter every step.

        s(0) = 0, or learned    s(t) = RNN([y(t-1); c], s(t-1))
        logits(t) = V tanh(W_o [s(t); y(t-1); c])

    Reference: Goodfellow et al. 2016, sections 10.2.4 and 10.4, https://www.deeplearningbook.org
    """
    return {**ONE_WAY, "first_state": "zeros", "reads_context": True}

"""Encoder-decoders of papers, from sizes and options: the presets of `RNNSeq2Seq`.

All take the arguments of `seqkeras.models.rnn_parts.parts_from_sizes` behind the class of the
decoder, the sizes in its order, and have the defaults of their paper.
"""

from seqkeras.models.rnn_parts import parts_from_sizes
from seqkeras.models.rnn_wirings import BahdanauDecoder, ClassicalDecoder, LuongDecoder

FROM_ENCODER = {"bridge_layers": 0, "cell_states": True}  # every state as it is
ONE_WAY = {"bidirectional": False}


def sutskever(cls, *sizes, **options):
    """The state alone: four LSTM layers on both sides, whose states go over as they are.

        s(0) = h(S)        s(t) = LSTM(y(t-1), s(t-1))        logits(t) = V s(t)

    The paper gives the source to the encoder in reverse order.

    Reference: Sutskever et al. 2014, https://arxiv.org/abs/1409.3215
    """
    layers = {"encoder_layers": 4, "decoder_layers": 4, "readout": False}
    options = {"cell": "lstm", **ONE_WAY, **FROM_ENCODER, **layers, **options}
    return cls(**parts_from_sizes(ClassicalDecoder, *sizes, **options))


def cho(cls, *sizes, **options):
    """The context at every step, beside the previous word; s(0) comes from it, too.

        c = tanh(V h(S))    s(0) = tanh(V' c)    s(t) = GRU([y(t-1); c], s(t-1))
        logits(t) = V'' tanh(W_o [s(t); y(t-1); c])

    Our tanh is the paper's maxout.

    Reference: Cho et al. 2014, appendix A.1, https://arxiv.org/abs/1406.1078
    """
    options = {**ONE_WAY, "context": "map", "reads_context": True, **options}
    return cls(**parts_from_sizes(ClassicalDecoder, *sizes, **options))


def bahdanau(cls, *sizes, attention="additive", **options):
    """Attention before the cell, over both directions of the source.

        c(t) = attention(query = s(t-1))    s(t) = GRU([y(t-1); c(t)], s(t-1))
        s(0) = tanh(W_s h(S))               logits(t) = V tanh(W_o [s(t); y(t-1); c(t)])

    Our tanh is the paper's maxout. His readout reads s(t-1), ours s(t); his s(0) comes from the
    backward state at the first word, ours from the last states of both directions.

    Reference: Bahdanau et al. 2015, appendix A.2, https://arxiv.org/abs/1409.0473
    """
    return cls(**parts_from_sizes(BahdanauDecoder, *sizes, attention=attention, **options))


def luong(cls, *sizes, attention="general", **options):
    """Attention after the cell, whose h~ the next step reads: four LSTM layers on both sides.

        s(0) = h(S)    s(t) = LSTM([y(t-1); h~(t-1)], s(t-1))    c(t) = attention(query = s(t))
        h~(t) = tanh(W_c [c(t); s(t)])        logits(t) = V h~(t)

    Reference: Luong et al. 2015, sections 3 and 4.1, https://arxiv.org/abs/1508.04025
    """
    layers = {"encoder_layers": 4, "decoder_layers": 4, "input_feeding": True}
    options = {"cell": "lstm", **ONE_WAY, **FROM_ENCODER, **layers, **options}
    return cls(**parts_from_sizes(LuongDecoder, *sizes, attention=attention, **options))


def classical_first_state(cls, *sizes, **options):
    """The first classical decoder: the context is the first state, and no word is read.

        s(0) = c        s(t) = RNN(s(t-1))        logits(t) = V tanh(W_o s(t))

    Reference: Goodfellow et al. 2016, sections 10.2.4 and 10.4, https://www.deeplearningbook.org
    """
    options = {**ONE_WAY, **FROM_ENCODER, "reads_output": False, **options}
    return cls(**parts_from_sizes(ClassicalDecoder, *sizes, **options))


def classical_context(cls, *sizes, **options):
    """The second classical decoder: the context enters every step; no word is read.

        s(0) = 0, or learned        s(t) = RNN(c, s(t-1))        logits(t) = V tanh(W_o [s(t); c])

    Reference: Goodfellow et al. 2016, sections 10.2.4 and 10.4, https://www.deeplearningbook.org
    """
    own = {"first_state": "zeros", "reads_context": True, "reads_output": False}
    return cls(**parts_from_sizes(ClassicalDecoder, *sizes, **{**ONE_WAY, **own, **options}))


def classical_context_and_output(cls, *sizes, **options):
    """The third classical decoder: context and previous word enter every step.

        s(0) = 0, or learned    s(t) = RNN([y(t-1); c], s(t-1))
        logits(t) = V tanh(W_o [s(t); y(t-1); c])

    Reference: Goodfellow et al. 2016, sections 10.2.4 and 10.4, https://www.deeplearningbook.org
    """
    options = {**ONE_WAY, "first_state": "zeros", "reads_context": True, **options}
    return cls(**parts_from_sizes(ClassicalDecoder, *sizes, **options))

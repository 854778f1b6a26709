"""The models of a translation, from its options and the sizes of two vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seqkeras.models import RNNSeq2Seq, Transformer
from seqkeras.pretrained.warm_start import decoder_options, start_decoder
from seqkeras.schedules import LinearDecay
from seqkeras.tokenizers import BOS, PAD, UNK, special_ids
from seqkeras.training.options.positions import POSITION_KINDS

if TYPE_CHECKING:
    import keras

    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.options import FitOptions
    from seqkeras.training.parts.pretrained import Pretrained


def model_of(
    options: FitOptions, source_size: int | None, target_size: int, **of_frames: Any
) -> keras.Model:
    """Return a built model of the name `options.model`; `of_frames`: source_features, and
    source_scaling or None, where sources are no tokens."""
    make = _transformer if options.model == "transformer" else _recurrent
    model = make(options, source_size, target_size, of_frames)
    model.build(None)
    return model


def tuned_model_of(options: FitOptions, pretrained: Pretrained, target: Tokenizer) -> Transformer:
    """Return a built `Transformer` whose encoder is that of --pretrained."""
    encoder = pretrained.encoder()
    arguments = {**_of_transformer(options, options.depth), "target_vocab_size": len(target)}
    if options.pretrained_decoder:
        arguments |= {**decoder_options(encoder), "max_length": options.max_length}
    without_token = range(len(target), arguments["target_vocab_size"])
    model = Transformer(
        encoder.config["vocab_size"],
        **arguments,
        never_generated=(*special_ids(target).never_generated, *without_token),
        encoder=encoder,
    )
    model.build(None)
    if options.pretrained_decoder:
        start_decoder(model, encoder)
    encoder.trainable = not options.frozen
    return model


def restoring_model_of(
    options: FitOptions, vocab_size: int, never_generated: Sequence[int]
) -> Transformer:
    """Return a built `Transformer` of one vocabulary, whose embeddings are shared."""
    model = Transformer(
        vocab_size,
        vocab_size,
        **_of_transformer(options, options.num_layers),
        shared_embeddings="all",
        never_generated=never_generated,
        attention_window=options.attention_window,
    )
    model.build(None)
    return model


def _transformer(options, source_size, target_size, of_frames):
    return Transformer(
        source_size,
        target_size,
        **_of_transformer(options, options.depth),
        shared_embeddings="all" if options.joint else "target",
        never_generated=(PAD, UNK, BOS),
        attention_window=options.attention_window,
        **of_frames,
    )


def _of_transformer(options, layers):
    """Return the arguments of a Transformer with layers on each side, or of its decoder beside a
    BERT."""
    return {
        "hidden_dim": options.hidden_dim,
        "num_layers": layers,
        "num_heads": options.num_heads,
        "feed_forward_dim": options.feed_forward_dim or 4 * options.hidden_dim,
        "max_length": options.max_length,
        "positions": POSITION_KINDS[options.position_kind or "sinusoid"],
        "pre_norm": options.pre_norm,
        "dropout": options.dropout,
        "attention_dropout": options.attention_dropout,
        "activation_dropout": options.activation_dropout,
    }


def _recurrent(options, source_size, target_size, of_frames):
    names = ("cell", "attention", "tie_weights", "reverse_source")
    arguments = {name: getattr(options, name) for name in names}
    if options.readout is not None:
        arguments["readout"] = options.readout == "tanh"
    arguments |= {"encoder_layers": options.num_layers, "decoder_layers": options.num_layers}
    return getattr(RNNSeq2Seq, options.model.replace("-", "_"))(
        source_size,
        target_size,
        options.embedding_dim or options.hidden_dim,
        options.hidden_dim,
        options.decoder_units,
        dropout=options.dropout,
        never_generated=(PAD, UNK, BOS),
        teacher_forcing=_teacher_forcing(options),
        **{name: value for name, value in arguments.items() if value is not None},
        **of_frames,
    )


def _teacher_forcing(options):
    """Return the callback of scheduled sampling: the share of given tokens falls along a line.

    The model counts batches, of which gradient accumulation makes several a step.
    """
    share = options.teacher_forcing
    batches = (options.teacher_forcing_steps or 0) * options.gradient_accumulation
    return LinearDecay(1.0, (1 - share) / batches, share) if batches else share

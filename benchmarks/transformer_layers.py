"""Transformer blocks and encoders in training, forward and backward, against other libraries.

    python -m benchmarks.transformer_layers [--only WORD] [--rounds N] [--json FILE] [--quick]
    KERAS_BACKEND=jax python -m benchmarks.transformer_layers     (as `benchmarks.layers`)

Blocks: keras_nlp's encoder and decoder, and Keras's multi-head attention. Encoders of the sizes of
BERT-base and MiniLM: `BertModel` of transformers on PyTorch, in this process with as many threads,
where benchmarks/requirements.txt is installed. A training step is that of `benchmarks.layers`, of
static lengths; on TensorFlow what is ours is measured under XLA too, against the rival without it.
On JAX both ours and the rival on PyTorch are compiled; on a GPU encoders have larger batches, and
are timed in bfloat16 too (`mixed_bfloat16`, autocast). Contenders hold the same weights, and what
they compute in float32 is compared before it is timed.
"""

import dataclasses
import operator
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import harness, training_steps

LENGTH = 128
ENCODERS = {  # name -> sizes, batch sizes on a CPU, on a GPU
    "minilm": (
        {"hidden_dim": 384, "num_layers": 6, "num_heads": 12, "feed_forward_dim": 1536},
        (8,),
        (8, 128),
    ),
    "bert-base": (
        {"hidden_dim": 768, "num_layers": 12, "num_heads": 12, "feed_forward_dim": 3072},
        (2,),
        (64,),
    ),
}
QUICK = {"hidden_dim": 6, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 7}
VOCAB_SIZE, QUICK_VOCAB_SIZE = 30522, 11


@dataclasses.dataclass(frozen=True)
class Case:
    """A block and its rival, both as layers of (B, T, D) sequences and a mask.

    Args:
        name: in the table.
        rival_name: of the rival, there.
        ours, rival: (hidden_dim, num_heads, feed_forward_dim) -> a layer.
        order: the rival's weights in our order.
        sizes: hidden_dim, num_heads, feed_forward_dim.
    """

    name: str
    rival_name: str
    ours: Callable
    rival: Callable
    order: list
    sizes: tuple


def cases():
    """Return every case of a block; made late, for they import Keras."""
    import keras

    from seqkeras.attention import MultiHeadAttention
    from seqkeras.transformer import DecoderBlock, EncoderBlock

    keras_nlp = training_steps.import_keras_nlp()
    base, bert = (512, 8, 2048), (768, 12, 3072)
    heads = range(8)  # kernel and bias of query, key, value and output
    encoder_order = [*heads, 8, 9, 12, 13, 14, 15, 10, 11]
    decoder_order = [*range(10), *range(20, 26), *range(10, 20)]

    def attention(of):
        return lambda hidden, heads, _: of(heads, hidden // heads)

    def block(of, activation="relu", **options):
        return lambda hidden, heads, inner: of(
            hidden, heads, inner, activation=activation, **options
        )

    def rival(of, activation="relu"):
        return lambda hidden, heads, inner: of(inner, heads, activation=activation)

    return [
        Case(
            "attention",
            "keras",
            _as_layer(
                attention(MultiHeadAttention), 3, lambda f, x, m: f(x, x, x, attention_mask=m)
            ),
            _as_layer(
                attention(keras.layers.MultiHeadAttention),
                2,
                lambda f, x, m: f(x, x, attention_mask=m),
            ),
            [*heads],
            base,
        ),
        *(
            Case(
                f"encoder block {sizes[0]}",
                "keras_nlp",
                _as_layer(
                    block(EncoderBlock, activation), 1, lambda f, x, m: f(x, attention_mask=m)
                ),
                _as_layer(
                    rival(keras_nlp.layers.TransformerEncoder, activation),
                    1,
                    lambda f, x, m: f(x, attention_mask=m),
                ),
                encoder_order,
                sizes,
            )
            for sizes, activation in ((base, "relu"), (bert, "gelu"))
        ),
        Case(
            "decoder block 512",
            "keras_nlp",
            _as_layer(
                block(DecoderBlock),
                2,
                lambda f, x, m: f(x, encoded=x, attention_mask=m, encoded_mask=m[:, 0]),
            ),
            _as_layer(
                rival(keras_nlp.layers.TransformerDecoder),
                2,
                lambda f, x, m: f(x, x, decoder_padding_mask=m[:, 0], encoder_padding_mask=m[:, 0]),
            ),
            decoder_order,
            base,
        ),
    ]


def _as_layer(make, inputs, function):
    """Return a function: (sizes) -> a layer of sequences and a (B, T) mask, around one of another
    form.

    Args:
        make: (sizes) -> the layer within.
        inputs: how many sequences it reads, which are all the same one.
        function: (layer within, sequences, (B, 1, T) mask) -> outputs.
    """
    import keras

    class Around(keras.layers.Layer):
        def __init__(self, *sizes):
            super().__init__()
            self.within = make(*sizes)
            self.supports_masking = True

        def build(self, sequences_shape):
            self.within.build(*[sequences_shape] * inputs)

        def call(self, sequences, mask=None, training=False):
            return function(self.within, sequences, mask[:, None])

    return Around


def measure(options):
    """Check and time the training steps; returns the rows."""
    training_steps.quiet_tensorflow()
    rounds = harness.rounds_of(options)
    rows = []
    for case in cases():
        if options.only in case.name:
            rows += _compare_blocks(case, options.quick, rounds)
    for name in ENCODERS:
        if options.only in name:
            rows += _compare_encoders(name, options.quick, rounds)
    if not rows:
        raise ValueError(f"no case has {options.only!r} in its name, or its rival is missing.")
    print(f"measured on {training_steps.machine()}; medians of {rounds} rounds")
    return rows


def _compare_blocks(case, quick, rounds):
    """Return the rows of a block."""
    import keras

    keras.utils.set_random_seed(0)
    sizes = (6, 2, 7) if quick else case.sizes
    batch = training_steps.padded_batch(*((2, 5) if quick else (8, LENGTH)), sizes[0])
    layers = {"ours": case.ours(*sizes), case.rival_name: case.rival(*sizes)}
    for layer in layers.values():
        layer.build((None, None, sizes[0]))
    ours, rival = layers.values()
    draw = np.random.default_rng(0)
    weights = [
        weight + draw.normal(scale=0.05, size=weight.shape) for weight in rival.get_weights()
    ]
    rival.set_weights(weights)
    ours.set_weights([weights[index] for index in case.order])
    steps = {
        name: training_steps.training_step(layer, batch, sizes[0]) for name, layer in layers.items()
    }
    label = f"{case.name} b{len(batch[0])} t{len(batch[0][0])}"
    # The gradients stand in the order of the weights: the rival's are brought into ours.
    order = [0, 1, *(index + 2 for index in case.order)]
    rival_step, in_our_order = steps[case.rival_name], operator.itemgetter(*order)
    compared = steps | {case.rival_name: lambda *batch: in_our_order(rival_step(*batch))}
    training_steps.check_agreement(label, compared, batch)
    if keras.backend.backend() == "tensorflow":
        steps["ours, XLA"] = training_steps.training_step(ours, batch, sizes[0], xla=True)
    return _rows(label, steps, batch, case.rival_name, rounds, goal=1.0)


def _rows(label, steps, batch, rival, rounds, goal):
    times = training_steps.times_of(steps, batch, rounds)
    return [
        harness.compare_times(
            label + name.removeprefix("ours").replace(", ", " ") + f" vs {rival}",
            times[name],
            times[rival],
            "ms",
            1000,
            goal if name == "ours" else None,
        )
        for name in steps
        if name != rival
    ]


def _compare_encoders(name, quick, rounds):
    """Return the rows of a whole encoder; none where the rival is missing or Keras runs on it."""
    import keras

    try:
        transformers, _ = harness.import_rival("transformers"), harness.import_rival("torch")
    except ImportError as error:
        print(f"{name}: skipped; {error}")
        return []
    if keras.backend.backend() == "torch":
        print(f"{name}: skipped; it is measured with the backends TensorFlow and JAX")
        return []
    transformers.utils.logging.disable_progress_bar()
    sizes, on_cpu, on_gpu = ENCODERS[name]
    batch_sizes = on_gpu if training_steps.on_gpu() else on_cpu
    if quick:
        sizes, batch_sizes = QUICK, [2]
    return [
        row
        for batch_size in batch_sizes
        for row in _compare_encoder(name, sizes, batch_size, quick, rounds)
    ]


def _compare_encoder(name, sizes, batch_size, quick, rounds):
    """Return the rows of one size of a batch."""
    import keras
    import transformers

    from seqkeras.models import Bert
    from seqkeras.pretrained import save_hugging_face

    keras.utils.set_random_seed(0)
    vocab_size, length = (QUICK_VOCAB_SIZE, 5) if quick else (VOCAB_SIZE, LENGTH)
    _, mask = training_steps.padded_batch(batch_size, length, 1)
    token_ids = np.random.default_rng(0).integers(1, vocab_size, mask.shape)
    model = Bert(vocab_size, **sizes, pooler=None)
    model.build()
    with tempfile.TemporaryDirectory() as folder:
        save_hugging_face(model, Path(folder) / "model")
        rival = transformers.BertModel.from_pretrained(
            Path(folder) / "model", add_pooling_layer=False
        )
    rival.train()  # its dropout is zero
    label = f"{name} b{batch_size} t{length}"
    if keras.backend.backend() == "tensorflow":
        steps = {
            "ours": _tensorflow_step(model, mask.shape, xla=False),
            "transformers": _torch_step(rival),
            "ours, XLA": _tensorflow_step(model, mask.shape, xla=True),
        }
        _check_encoders(label, steps, (token_ids, mask))
        return _rows(label, steps, (token_ids, mask), "transformers", rounds, goal=0.8)
    steps = {"ours": _jax_step(model), "torch.compile": _compiled_step(rival, "float32")}
    _check_encoders(label, steps, (token_ids, mask))
    rows = _rows(label, steps, (token_ids, mask), "torch.compile", rounds, goal=None)
    if not training_steps.on_gpu():
        return rows
    half = Bert(vocab_size, **sizes, pooler=None, dtype="mixed_bfloat16")
    half.build()
    half.set_weights(model.get_weights())
    steps = {"ours": _jax_step(half), "torch.compile": _compiled_step(rival, "bfloat16")}
    label += " bfloat16"
    return rows + _rows(label, steps, (token_ids, mask), "torch.compile", rounds, goal=None)


def _check_encoders(label, steps, batch):
    """Compare the loss, and the gradient by the token embeddings, which all others go into."""
    shown = {
        library: lambda *batch, step=step: step(*batch)[:2]
        for library, step in steps.items()
        if library != "ours, XLA"
    }
    training_steps.check_agreement(label, shown, batch)


def _jax_step(model):
    """Return the compiled step of our encoder, (token_ids, mask) -> [loss, gradients ...]."""
    from keras import ops

    def loss(weights, fixed, token_ids, mask):
        inputs = {"token_ids": token_ids, "lengths": ops.sum(ops.cast(mask, "int32"), axis=1)}
        outputs, _ = model.stateless_call(weights, fixed, inputs, training=True)
        hidden = ops.cast(outputs["hidden"][..., 0], "float32")
        return ops.sum(hidden * ops.cast(mask, "float32"))

    return training_steps.jax_step(loss, model)


def _compiled_step(model, dtype):
    """Return the step of a `BertModel`, compiled, its products in this dtype."""
    import torch

    def loss(token_ids, mask):
        kind = "cuda" if token_ids.is_cuda else "cpu"
        with torch.autocast(kind, getattr(torch, dtype), enabled=dtype != "float32"):
            hidden = model(token_ids, attention_mask=mask).last_hidden_state
        return torch.sum(hidden[..., 0].float() * mask)

    return training_steps.torch_step(model, loss)


def _tensorflow_step(model, shape, xla):
    """Return a function: (token_ids, mask) -> [loss, gradients ...] of our encoder."""
    import tensorflow as tf

    weights = [variable.value for variable in model.trainable_variables]

    @tf.function(
        input_signature=[tf.TensorSpec(shape, tf.int64), tf.TensorSpec(shape, tf.bool)],
        jit_compile=xla,
        autograph=False,
    )
    def step(token_ids, mask):
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
        with tf.GradientTape() as tape:
            hidden = model({"token_ids": token_ids, "lengths": lengths}, training=True)["hidden"]
            loss = tf.reduce_sum(hidden[..., 0] * tf.cast(mask, hidden.dtype))
        gradients = tape.gradient(loss, weights)
        return [loss, *(tf.convert_to_tensor(tensor) for tensor in gradients)]

    return training_steps.Step(lambda *batch: [tensor.numpy() for tensor in step(*batch)])


def _torch_step(model):
    """Return the same of a `BertModel` of transformers."""
    import torch

    def step(token_ids, mask):
        token_ids, mask = torch.from_numpy(token_ids), torch.from_numpy(mask)
        hidden = model(token_ids, attention_mask=mask).last_hidden_state
        loss = torch.sum(hidden[..., 0] * mask)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        return [tensor.detach().numpy() for tensor in (loss, *gradients)]

    return training_steps.Step(step)


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("transformer_layers", __doc__.splitlines()[0])
    parser.add_argument(
        "--only", default="", metavar="WORD", help="Word that the names of measured cases hold."
    )
    parser.add_argument(
        "--rounds", type=harness.count, default=10, help="Timed rounds of each case. Default: 10."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

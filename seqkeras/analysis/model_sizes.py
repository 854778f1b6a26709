"""Parameters of a model by part, their bytes in float32 and in int8, and operations.

int8 is what `seqkeras.export` makes of a model: kernels of dense layers, attention and LSTMs become
bytes, with a float32 scale for each column, and for LSTMs a zero point. In float32 stay tables of
embeddings, the matrix that makes logits of them, biases, small kernels, convolutions and other
recurrent layers.
"""

import dataclasses
import math

import keras

from seqkeras.analysis.operations import count_operations, weightless
from seqkeras.models import GPT, Bert, Forecaster, Transformer, presets
from seqkeras.models.bilm import ProjectedLSTM
from seqkeras.transformer import FeedForward, LayerNorm

PAPER = {"source_vocab_size": 37000, "target_vocab_size": 37000, "shared_embeddings": "all"}
MODELS = {  # name -> its class and arguments
    "bert-base": (Bert, presets.BERT_BASE),
    "bert-large": (Bert, presets.BERT_LARGE),
    "gpt": (GPT, presets.GPT1),
    "gpt2": (GPT, presets.GPT2_SMALL),
    "gpt2-medium": (GPT, presets.GPT2_MEDIUM),
    "gpt2-large": (GPT, presets.GPT2_LARGE),
    "gpt2-xl": (GPT, presets.GPT2_XL),
    "transformer-base": (Transformer, PAPER | presets.TRANSFORMER_BASE),
    "transformer-big": (Transformer, PAPER | presets.TRANSFORMER_BIG),
}
SMALL = 1024  # bytes of a kernel that stays in float32
# Part -> classes, or prefixes of the modules of classes. The outermost layer decides.
PARTS = {
    "embeddings": ("seqkeras.embeddings", keras.layers.Embedding),
    "attention": ("seqkeras.attention", "keras.src.layers.attention"),
    "feed-forward": (FeedForward,),
    "normalisation": (LayerNorm, "keras.src.layers.normalization"),
    "recurrence": ("seqkeras.recurrent", "keras.src.layers.rnn", ProjectedLSTM),
    "convolution": ("keras.src.layers.convolutional",),
}
OTHER = "heads and others"


@dataclasses.dataclass(frozen=True)
class Part:
    """What the layers of one kind hold.

    Attributes:
        name: a key of `PARTS`, or `OTHER`.
        parameters: numbers in the weights.
        float32_bytes, int8_bytes: bytes of these in the two precisions.
    """

    name: str
    parameters: int
    float32_bytes: int
    int8_bytes: int


def published(name):
    """Return a model of `MODELS` whose weights have no values."""
    model_class, arguments = MODELS[name]
    with weightless():
        model = model_class(**arguments)
        model.build(None)
    return model


def operations_of(model, length):
    """Return the `Operations` of a model's answer to one text, and how many steps it has.

    Args:
        model: a model whose weights have no values, as `published` returns it.
        length: T, tokens of the text and of the generated answer; of a functional model, every open
            size of an input. If no size is open, the steps are those of its longest input.

    Raises:
        ValueError: if the model reads more than a text or a window, or `count_operations` can not
            count it.
    """
    structure = getattr(getattr(model, "_functional", model), "_inputs_struct", None)
    if structure is None:
        return count_operations(lambda **inputs: model(inputs), **_shapes(model, length)), length
    inputs = keras.tree.flatten(structure)  # of a functional or a sequential model
    shapes = {
        f"input_{index}": ((1, *(size or length for size in tensor.shape[1:])), tensor.dtype)
        for index, tensor in enumerate(inputs)
    }
    operations = count_operations(
        lambda **given: model(keras.tree.pack_sequence_as(structure, [*given.values()])), **shapes
    )
    if any(None in tensor.shape[1:] for tensor in inputs):
        return operations, length
    return operations, max((t.shape[1] for t in inputs if len(t.shape) > 2), default=1)


def _shapes(model, length):
    """Return the shapes and types of the inputs that a model must have, by name."""
    tokens, numbers = ((1, length), "int32"), ((1,), "int32")
    known = dict.fromkeys(("token_ids", "target_ids", "order"), tokens)
    known |= dict.fromkeys(("lengths", "prefix_lengths"), numbers)
    if isinstance(model, Forecaster):
        window = (1, length, model.num_features)
        covariates = (1, model.sizes["horizon"], model.num_known)
        return {"window": (window, "float32")} | (
            {"known": (covariates, "float32")} if model.num_known else {}
        )
    if getattr(model, "source_features", None):
        known["frames"] = (1, length, model.source_features), "float32"
    names = getattr(model, "input_names", [[None]])[0]
    if not known.keys() >= {*names}:
        raise ValueError("operations_of: the model reads more than a text or a window.")
    return {name: known[name] for name in names}


def parts_of(model):
    """Return a list of the `Part`s that a built model has; a weight that is shared counts once."""
    placed = {}
    _place(model, None, placed)
    vocab_size = max(
        (w.shape[0] for part, w, _ in placed.values() if _is_table(part, w)), default=0
    )
    parts = []
    for name in (*PARTS, OTHER):
        weights = [(weight, layer) for part, weight, layer in placed.values() if part == name]
        if weights:
            parameters = sum(_size(weight) for weight, _ in weights)
            int8 = sum(_int8_bytes(weight, layer, name, vocab_size) for weight, layer in weights)
            parts.append(Part(name, parameters, 4 * parameters, int8))
    return parts


def _place(layer, part, placed):
    """Note the part of each weight under a layer; the layers above are in `part`, if any."""
    part = part or _part_of(layer)
    for below in layer._flatten_layers(include_self=False, recursive=False):
        _place(below, part, placed)
    for weight in layer.weights:
        placed.setdefault(id(weight), (part or OTHER, weight, layer))


def _part_of(layer):
    for name, kinds in PARTS.items():
        for kind in kinds:
            is_one = isinstance(layer, kind) if isinstance(kind, type) else _is_from(layer, kind)
            if is_one:
                return name
    return None


def _is_from(layer, prefix):
    return any(kind.__module__.startswith(prefix) for kind in type(layer).__mro__)


def _is_table(part, weight):
    return part == "embeddings" and len(weight.shape) == 2


def _size(weight):
    return math.prod(weight.shape)


def _int8_bytes(weight, layer, part, vocab_size):
    """Return the bytes of a weight in a bundle of int8."""
    size, columns = _size(weight), _columns(weight, layer, part)
    if columns in (None, vocab_size) or 4 * size <= SMALL:
        return 4 * size
    return size + columns * (5 if part == "recurrence" else 4)


def _columns(weight, layer, part):
    """Return the columns of a kernel that becomes whole numbers, which have a scale each; else
    None."""
    if part in ("embeddings", "convolution") or not weight.name.endswith("kernel"):
        return None
    if part == "recurrence" and "LSTM" not in type(layer).__name__:
        return None
    if len(weight.shape) == 3:  # of heads
        return weight.shape[2] if weight.name == "output_kernel" else math.prod(weight.shape[1:])
    return weight.shape[1] if len(weight.shape) == 2 else None

"""Checks of what `save_run` is given, without TensorFlow.

`own_problems` are those that a saved run does not show. `run_problems` checks the model, the
tokenizers and the examples where `seqkeras.export.checks.loaded` can not, since Keras runs on
another backend than TensorFlow.
"""

import types
from collections.abc import Iterator, Mapping
from typing import Any

import keras

from seqkeras.data.texts import holds_half_a_character
from seqkeras.models.limits import position_problems, vocabulary_problems, weight_problems
from seqkeras.preprocessors import unlike_preprocessor
from seqkeras.serving.manifest import PIPELINE_TEXTS, DecodingDefaults, Limits
from seqkeras.serving.text import SentencePieces, Subwords, Tokenizer, WordTable
from seqkeras.tokenizers.special import end_problem

TEXT_TOKENIZERS = Subwords | SentencePieces | WordTable
FUNCTIONS = ("function", "activation", "recurrent_activation")  # attributes of layers
MOST_EXAMPLES = 3  # in an error


def own_problems(
    pipeline: str,
    model: keras.Model,
    tokenizers: Mapping[str, Tokenizer],
    decoding: Mapping[str, Any],
    inputs: Any,
) -> Iterator[str]:
    """Yield problems of `save_run`'s arguments, `decoding` as given, that the saved run hides."""
    yield from unsaved_classes(model)
    yield from unsaved_functions(model)
    yield from layer_problems(model)
    yield from text_problems(model)
    if decoding and PIPELINE_TEXTS[pipeline].generated is None:
        known = " and ".join(name for name, texts in PIPELINE_TEXTS.items() if texts.generated)
        yield (
            f"decoding is for {known}, which generate text; {pipeline} generates none: leave "
            "decoding out"
        )
    tokenizer = tokenizers.get("text")
    if PIPELINE_TEXTS[pipeline].only and isinstance(tokenizer, TEXT_TOKENIZERS):
        texts = [*_texts(pipeline, tokenizer, inputs).values()]
        yield from unlike_preprocessor(model, tokenizer, texts) if texts else ()


def run_problems(
    pipeline: str,
    model: keras.Model,
    tokenizers: Mapping[str, Tokenizer],
    limits: Limits,
    decoding: DecodingDefaults,
    settings: Mapping[str, Any],
    inputs: Any,
) -> Iterator[str]:
    """Yield the problems of export that can be found without TensorFlow."""
    yield from weight_problems(model)
    yield from vocabulary_problems(model, tokenizers)
    if PIPELINE_TEXTS[pipeline].generated and (problem := end_problem(model, decoding.end_id)):
        yield f"decoding.{problem}"
    if PIPELINE_TEXTS[pipeline].only and "text" in tokenizers:
        yield from position_problems(model, limits.source_length)
        tokenizer, texts = tokenizers["text"], _texts(pipeline, tokenizers["text"], inputs)
        if texts and isinstance(tokenizer, TEXT_TOKENIZERS):
            if settings.get("stride") is None:
                yield from _long_texts(tokenizer, limits.source_length, texts)
        elif texts:
            yield (
                "the text tokenizer must be one of subwords or a table of words; it is a "
                f"{type(tokenizer).__name__}"
            )


def unsaved_classes(model: keras.Model) -> Iterator[str]:
    """Yield the classes of a model's layers that Keras could not find when it loads the model."""
    for kind in dict.fromkeys(type(layer) for layer in [model, *model._flatten_layers()]):
        name = keras.saving.get_registered_name(kind)
        local = kind.__module__ == "__main__" or "<locals>" in kind.__qualname__
        if local and keras.saving.get_registered_object(name) is None:
            yield (
                f"the class {kind.__name__} must be registered, or the model can not be loaded: "
                "@keras.saving.register_keras_serializable() above it, in a module that "
                "`seqkeras export --import` names"
            )


def unsaved_functions(model: keras.Model) -> Iterator[str]:
    """Yield the layers of a model that hold a function which Keras does not load with the model."""
    for layer in model._flatten_layers():
        for name in FUNCTIONS:
            function = getattr(layer, name, None)
            if isinstance(function, types.FunctionType) and not _is_loaded(function):
                yield (
                    f"{name} of the layer {layer.name} must be a function that Keras finds again: "
                    "write it with def, below @keras.saving.register_keras_serializable(), in a "
                    "module that `seqkeras export --import` names; the layer of a trained model "
                    f"gets it by layer.{name} = that function"
                )


def _is_loaded(function):
    """Return whether Keras finds a function by what it saves of it."""
    if function.__name__ == "<lambda>":
        return False
    try:
        saved = keras.saving.serialize_keras_object(function)
        loaded = keras.saving.deserialize_keras_object(saved)
    except (TypeError, ValueError):
        return False
    return loaded is function or function.__module__.startswith("keras.")


def layer_problems(model: keras.Model) -> Iterator[str]:
    """Yield the layers of a model that no bundle can hold."""
    within = set()  # a layer that is told already
    for layer in model._flatten_layers():
        if getattr(layer, "stateful", False) is True and id(layer) not in within:
            within |= {id(part) for part in layer._flatten_layers()}
            yield (
                f"the layer {layer.name} must have stateful=False, since a bundle answers each "
                "input by itself: make the model so, without batch_size in its Input, and copy the "
                "weights, new.set_weights(model.get_weights())"
            )
        mode = getattr(layer, "quantization_mode", None)
        if mode not in (None, "int8"):
            yield (
                f"the layer {layer.name} must not be quantized to {mode}: save the model as it was "
                "before model.quantize, and give `seqkeras export` a --precision"
            )


def text_problems(model: keras.Model) -> Iterator[str]:
    """Yield what is wrong if a functional model begins with strings, which no graph reads."""
    inputs = keras.tree.flatten(getattr(model, "inputs", None) or [])
    if all(tensor.dtype != "string" for tensor in inputs):
        return
    layers = [layer for layer in model.layers if isinstance(layer, keras.layers.TextVectorization)]
    if len(layers) != 1:
        yield (
            "the model begins with strings: save what reads token ids after its tokenizer, and "
            "give the tokenizer as tokenizers={'text': ...}"
        )
        return
    layer = f"model.get_layer({layers[0].name!r})"
    behind = f"keras.Model({layer}.output, model.output)"
    if isinstance(model, keras.Sequential):
        first = model.layers.index(layers[0]) + 1
        behind = f"keras.Sequential([keras.Input((None,), dtype='int64'), *model.layers[{first}:]])"
    yield (
        f"the model begins with strings: save what is after its TextVectorization, {behind}, and "
        f"give tokenizers={{'text': from_text_vectorization({layer})}} of seqkeras.tokenizers"
    )


def _long_texts(tokenizer, limit, texts):
    """Yield the first texts that are over the limit."""
    unit = "words" if isinstance(tokenizer, WordTable) else "tokens"
    lengths = {index: len(tokenizer.analyze(*parts)) for index, parts in texts.items()}
    reasons = [
        f"validation[{index}] has {length} {unit}; limits.source_length is {limit}"
        for index, length in lengths.items()
        if length > limit
    ]
    yield from reasons[:MOST_EXAMPLES]
    if len(reasons) > MOST_EXAMPLES:
        yield f"validation: {len(reasons) - MOST_EXAMPLES} more like these"


def _texts(pipeline, tokenizer, inputs):
    """Return index -> the text, or the pair, of each input; other inputs are left to export."""
    pairs = PIPELINE_TEXTS[pipeline].pairs and isinstance(tokenizer, Subwords)
    texts = {}
    for index, value in enumerate(inputs):
        parts = tuple(value) if pairs and isinstance(value, list) else (value,)
        if len(parts) < 3 and all(map(_says_something, parts)):
            texts[index] = parts
    return texts


def _says_something(text):
    if not isinstance(text, str):
        return False
    return bool(text.strip()) and not holds_half_a_character(text)

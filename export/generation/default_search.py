"""The search that a manifest's `decoding` describes, and its results."""

from keras import ops

from seqkeras.decoding.beam import beam_search
from seqkeras.decoding.loop import OneSequence
from seqkeras.serving.manifest import TensorSpec

NAMES = ("generated_ids", "generated_lengths", "scores")  # of a search's results


def search_of(decoding, max_length, n_best=1):
    """Return the `seqkeras.decoding.Search` that the manifest's `DecodingDefaults` ask for."""
    if decoding.num_beams == 1:
        return OneSequence(_most_probable, decoding.end_id)
    return beam_search(
        num_beams=decoding.num_beams,
        n_best=n_best,
        max_length=max_length,
        end_id=decoding.end_id,
        length_penalty=decoding.length_penalty,
    )


def best_of(results):
    """Return a search's results by name; of several hypotheses, the best."""
    several = len(results[-1].shape) > 1
    return {name: own[:, 0] if several else own for name, own in all_of(results).items()}


def all_of(results):
    """Return a search's results by name."""
    return dict(zip(NAMES, results, strict=True))


def result_specs(max_length, *several):
    """Return the `TensorSpec`s of the results of `best_of`; of `all_of` with the number of
    hypotheses."""
    shapes = ("batch", *several, max_length), ("batch", *several), ("batch", *several)
    return [
        TensorSpec(name, dtype, shape)
        for name, dtype, shape in zip(NAMES, ("int32", "int32", "float32"), shapes, strict=True)
    ]


def _most_probable(log_probs, position):
    """Return greedy search's choice; Keras's own arg-max uses an operator that ONNX lacks."""
    return ops.top_k(log_probs, 1)[1][:, 0]

"""The search that a manifest's `decoding` describes, and its results."""

from keras import ops

from seqkeras.decoding.beam import beam_search
from seqkeras.decoding.loop import OneSequence
from serving.manifest import TensorSpec


def search_of(decoding, max_length):
    """The `seqkeras.decoding.Search` that the manifest's `DecodingDefaults` ask for."""
    if decoding.num_beams == 1:
        return OneSequence(_most_probable, decoding.end_id)
    return beam_search(
        num_beams=decoding.num_beams,
        n_best=1,
        max_length=max_length,
        end_id=decoding.end_id,
        length_penalty=decoding.length_penalty,
    )


def best_of(results):
    """A search's results by name; of several hypotheses, the best."""
    names = ("generated_ids", "generated_lengths", "scores")
    several = len(results[-1].shape) > 1
    return {
        name: result[:, 0] if several else result
        for name, result in zip(names, results, strict=True)
    }


def result_specs(max_length):
    """The `TensorSpec`s of the results of `best_of`."""
    return [
        TensorSpec("generated_ids", "int32", ("batch", max_length)),
        TensorSpec("generated_lengths", "int32", ("batch",)),
        TensorSpec("scores", "float32", ("batch",)),
    ]


def _most_probable(log_probs, position):
    """Greedy search's choice; Keras's own arg-max uses an operator that ONNX lacks."""
    return ops.top_k(log_probs, 1)[1][:, 0]

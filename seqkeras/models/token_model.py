"""The base class of models of token ids: wrong ids are refused before any computation."""

import functools
import re
from collections.abc import Mapping

import keras

from seqkeras.embeddings import LearnedPositions
from seqkeras.embeddings.ids import require_ids
from seqkeras.models.inputs import require_inputs
from seqkeras.models.never_generated import require_end

BEYOND = re.compile(r"indices\[[\d,]+\] = (-?\d+) is not in \[0, (\d+)\)")  # TensorFlow's words


def _checked(name):
    """Return a method of `keras.Model` that checks the ids first."""
    theirs = getattr(keras.Model, name)

    @functools.wraps(theirs)
    def method(self, x=None, *arguments, **options):
        held_out = options.get("validation_data")
        for inputs in (x, held_out[0] if isinstance(held_out, tuple | list) else None):
            if isinstance(inputs, Mapping) or hasattr(inputs, "dtype"):  # not a pipeline
                self.require_inputs(inputs)
                self.check_ids(inputs)
        if name == "fit":
            y = arguments[0] if arguments else options.get("y")
            require_end(self, y, options.get("sample_weight"))
        try:
            return theirs(self, x, *arguments, **options)
        except Exception as error:
            match = BEYOND.search(str(error))
            if match is None or int(match[2]) not in self._table_sizes():
                raise
            raise ValueError(
                f"{type(self).__name__}: ids and positions must be from 0 to {int(match[2]) - 1}, "
                f"as there are {match[2]} of them; received {match[1]} in a batch."
            ) from error

    return method


class TokenModel(keras.Model):
    """Base of the models that read token ids.

    An eager call checks the ids; a traced call can not. There an id beyond the vocabulary is an
    error of the graph with TensorFlow on a CPU, zeros on a GPU, and NaN with JAX, where any error
    loses the model's weights. So `fit`, `evaluate`, `predict` and their `..._on_batch` check arrays
    first. The ids of a pipeline such as `tf.data` are not known then: TensorFlow's error is
    reworded. Labels are not checked: the loss of one beyond the vocabulary differs between
    backends.

    A subclass defines `input_names`, the required and the optional inputs; `takes_choices`, whether
    token_ids may be (B, C, T); and `id_limits`, {input: (name of the limit, limit)}.
    """

    input_names: tuple
    id_limits: dict
    takes_choices = False

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)  # else floats become integers silently

    @property
    def input_dtype(self):
        """The type of the inputs, which `model.export` writes into a signature."""
        return "int32"

    fit = _checked("fit")
    evaluate = _checked("evaluate")
    predict = _checked("predict")
    train_on_batch = _checked("train_on_batch")
    test_on_batch = _checked("test_on_batch")
    predict_on_batch = _checked("predict_on_batch")

    def compute_output_spec(self, inputs, **options):
        """Return specs of the outputs, for functional models, whose inputs have types already."""
        self.require_inputs(inputs)
        self.check_ids(inputs)
        return super().compute_output_spec(inputs, **options)

    def _table_sizes(self):
        """Return the sizes of the tables that ids and positions index."""
        positions = getattr(self, "positions", None)
        sizes = [limit for _, limit in self.id_limits.values()]
        if isinstance(positions, LearnedPositions):
            sizes.append(positions.max_length + positions.first_position)
        return sizes

    def require_inputs(self, inputs):
        """Raise a ValueError unless a dictionary holds what the model reads, and nothing else."""
        require_inputs(self, inputs, *self.input_names, choices=self.takes_choices)

    def attention_weights(self, inputs):
        """Return how much each head of each layer attends to each position, as a plot shows it.

        Args:
            inputs: those of the call, target_ids among them where the model has a decoder.

        Returns:
            name -> (B, L, N, T, S), softmax weights of T queries over S positions, L and N being 1
            where there is one layer or head: "encoder", "decoder" (self-attention), "cross" (of a
            decoder to the source), "past" (of a language model to its last states),
            "context_to_query" and "query_to_context". Padded positions have no weight; rows of
            padded queries have no meaning.

        Raises:
            ValueError: if the model does not attend.
        """
        raise ValueError(f"{type(self).__name__}: attention_weights: this model does not attend.")

    def check_ids(self, inputs):
        """Raise a ValueError if an id or a position is out of range.

        Args:
            inputs: a dictionary of arrays; symbolic tensors are not checked.
        """
        positions = getattr(self, "positions", None)
        for name, (limit_name, limit) in self.id_limits.items():
            if not hasattr(inputs.get(name), "dtype"):
                continue
            require_ids(self, name, inputs[name], limit_name, limit)
            if isinstance(positions, LearnedPositions):
                positions.require_length(inputs[name])

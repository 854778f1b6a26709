"""The recurrent forecaster in a stream: a forecast after each frame."""

from keras import ops

from seqkeras.models.forecaster import Forecaster
from seqkeras.models.rnn_cells import is_qrnn
from seqkeras.streams.flow import SO_FAR, Flow, StreamError
from seqkeras.streams.recurrent import read
from seqkeras.streams.walk import streamed


@streamed.register
def _(model: Forecaster, walk, inputs, **_):
    if model.scale:
        raise StreamError(f"{model.name}: scale=True reads the whole window; set scale=False.")
    if model.decoder is not None or is_qrnn(model.encoder.recurrent_layers[0]):
        raise StreamError(
            f'{model.name}: set decoder="direct", and a cell with a state: "gru", "lstm".'
        )
    window = inputs["window"]
    hidden = window.with_tensor(ops.cast(window.tensor, model.values_dtype))
    for layer in model.encoder.recurrent_layers:
        walk.count_call(layer)
        outputs, _ = read(layer, walk, hidden)
        hidden = hidden.with_tensor(outputs)
    state = walk.fold(hidden.tensor)  # (B T, U)
    if model.num_known:
        known = ops.cast(inputs["known"].tensor, model.values_dtype)
    else:
        known = ops.zeros((ops.shape(state)[0], model.sizes["horizon"], 0), model.values_dtype)
    outputs = model.of_state(state, known)
    return Flow(outputs, SO_FAR)

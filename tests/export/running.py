"""An ONNX model, run."""

import onnxruntime


def run(model, inputs):
    """The outputs of an `onnx.ModelProto` by name, in its order."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))

"""Export: a trained run becomes a bundle of ONNX graphs and SavedModels."""

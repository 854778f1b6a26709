"""Lines of name maps that Google's BERT and KerasNLP share: layers as TensorFlow names them."""

from seqkeras.pretrained.assignment import Link


def dense(name, layer):
    """Return a kernel and a bias, for `keras.layers.Dense`."""
    return [Link(f"{name}/kernel", (layer.kernel,)), Link(f"{name}/bias", (layer.bias,))]


def norm(name, layer):
    """Return links of gamma and beta, for `LayerNorm`."""
    return [Link(f"{name}/gamma", (layer.gamma,)), Link(f"{name}/beta", (layer.beta,))]

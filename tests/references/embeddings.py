"""Words from characters, one word and one filter at a time."""

import numpy as np

from tests.references.recurrent import sigmoid


def relu(x):
    return np.where(np.real(x) > 0, x, 0)


def character_vector(character_ids, embeddings, convolutions, activation):
    """Kim et al. 2016, for one word: `character_ids` are its real characters.

    `convolutions` are pairs of H (w, C, filters) and b (filters,). Every window that begins at a
    character counts; behind the word lie zeros.
    """
    g = {"tanh": np.tanh, "relu": relu}[activation]
    vector = []
    for H, b in convolutions:
        width, dim, filters = H.shape
        C = np.zeros((len(character_ids) + width, dim), embeddings.dtype)
        for place, character in enumerate(character_ids):
            C[place] = embeddings[character]
        for k in range(filters):
            f = [g(np.sum(C[i : i + width] * H[:, :, k]) + b[k]) for i in range(len(character_ids))]
            vector.append(max(f, key=np.real, default=0.0))
    return np.array(vector)


def character_cnn(character_ids, embeddings, convolutions, activation):
    """The same for (B, T, W) words whose padding is 0."""
    return np.array(
        [
            [
                character_vector(word[word != 0], embeddings, convolutions, activation)
                for word in row
            ]
            for row in character_ids
        ]
    )


def highway(x, transform, gate, g):
    """Srivastava et al. 2015, equation 3; (kernel, bias) of each."""
    t = sigmoid(x @ gate[0] + gate[1])
    return t * g(x @ transform[0] + transform[1]) + (1 - t) * x

"""The six layers of Seo et al. 2017, section 2, for one context and one query without padding.

`weights` names the layers: "words" (the embeddings), "characters" (embeddings, H, b), "highways"
(transform and gate, (kernel, bias) each), "contextual", the list "modelling" and "end_modelling"
(forward and backward cells' weights), "similarity" (w, with shape (3 * 2d, 1)), "start" and "end".
"""

import numpy as np

from tests.references.attention import bi_attention
from tests.references.embeddings import character_cnn, highway, relu
from tests.references.recurrent import bidirectional, lstm


def bilstm(x, weights):
    """(T, D) to (T, 2d)."""
    forward, backward = weights
    start = [np.zeros((1, forward[1].shape[0]))] * 4
    outputs, _ = bidirectional(lstm, x[None], None, start, forward, backward)
    return outputs[0]


def encode(token_ids, character_ids, weights):
    """Layers 1 to 3, (T, 2d)."""
    embeddings, *convolution = weights["characters"]
    characters = character_cnn(character_ids[None], embeddings, [convolution], "relu")[0]
    x = np.concatenate([characters, weights["words"][token_ids]], axis=-1)
    for transform, gate in weights["highways"]:
        x = highway(x, transform, gate, relu)
    return bilstm(x, weights["contextual"])


def bidaf(context, query, weights):
    """Logits of the start and of the end, (T,) each; context and query are (ids, characters)."""
    H, U = encode(*context, weights), encode(*query, weights)
    G = bi_attention(H[None], U[None], weights["similarity"])[0]
    M = G
    for layer in weights["modelling"]:
        M = bilstm(M, layer)
    M2 = bilstm(M, weights["end_modelling"])
    return [
        (np.concatenate([G, each], axis=-1) @ kernel + bias)[:, 0]
        for each, (kernel, bias) in ((M, weights["start"]), (M2, weights["end"]))
    ]

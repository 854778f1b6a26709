"""What attention takes from tables by the distance between a query and a key.

A table has a row for each distance from -M to M, key minus query; what is further away has the
first or the last row. Distances are (B or 1, T, S) integers, query minus key.
"""

from keras import ops

from seqkeras.tensors import Tensor


def rows_of_distances(table: Tensor, distances: Tensor) -> Tensor:
    """Return (..., ·), for each of (...) distances its row of a table (2M + 1, ·).

    Args:
        table: (2M + 1, ·), a row for each distance from -M to M, key minus query; what is further
            away has the first or the last row.
        distances: (...) integers, query minus key.

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import rows_of_distances
        >>> table = ops.array([[10.0], [20.0], [30.0]])  # distances -1, 0, 1, key minus query
        >>> ops.convert_to_numpy(rows_of_distances(table, ops.array([9, 0, -1])))[:, 0].tolist()
        [10.0, 20.0, 30.0]
    """
    furthest = table.shape[0] // 2
    return ops.take(table, furthest - ops.clip(distances, -furthest, furthest), axis=0)


def distance_scores(
    query: Tensor,
    distances: Tensor,
    distance_bias: Tensor | None = None,
    relative_keys: Tensor | None = None,
) -> Tensor | None:
    """Return (B or 1, N, T, S), what is added to the scores of attention; None without tables.

        score(n, t, s) += b(s - t, n) + query(n, t) a_K(s - t) / sqrt(H)

    Args:
        query: (B, N, T, H).
        distances: (B or 1, T, S) integers, query minus key.
        distance_bias: b, (2M + 1, N), or None.
        relative_keys: a_K, (2M + 1, H), or None.

    Reference: Shaw et al. 2018, equation 4, https://arxiv.org/abs/1803.02155; Raffel et al. 2020,
    section 2.1, https://arxiv.org/abs/1910.10683

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import distance_scores
        >>> table, query = ops.array([[1.0], [2.0], [3.0]]), ops.zeros((1, 1, 2, 4))
        >>> distances = ops.array([[[0, -1], [1, 0]]])  # query minus key
        >>> ops.convert_to_numpy(distance_scores(query, distances, table))[0, 0].tolist()
        [[2.0, 3.0], [1.0, 2.0]]
    """
    scores = None
    if distance_bias is not None:
        scores = ops.transpose(rows_of_distances(distance_bias, distances), (0, 3, 1, 2))
    if relative_keys is not None:
        keys = rows_of_distances(relative_keys, distances)  # (B or 1, T, S, H)
        by_query = ops.transpose(query * query.shape[-1] ** -0.5, (0, 2, 1, 3))  # (B, T, N, H)
        products = _by_place(by_query, ops.transpose(keys, (0, 1, 3, 2)))  # (B, T, N, S)
        products = ops.transpose(products, (0, 2, 1, 3))
        scores = products if scores is None else scores + products
    return scores


def relative_contexts(weights: Tensor, distances: Tensor, relative_values: Tensor) -> Tensor:
    """Return (B, N, T, H), what is added to the contexts of attention.

        context(n, t) += sum over s of weights(n, t, s) a_V(s - t)

    Args:
        weights: (B, N, T, S), of attention.
        distances: (B or 1, T, S) integers, query minus key.
        relative_values: a_V, (2M + 1, H).

    Reference: Shaw et al. 2018, equation 3, https://arxiv.org/abs/1803.02155

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import relative_contexts
        >>> weights, distances = ops.array([[[[0.5, 0.5]]]]), ops.array([[[1, 0]]])
        >>> contexts = relative_contexts(weights, distances, ops.array([[10.0], [20.0], [30.0]]))
        >>> float(contexts[0, 0, 0, 0])  # of the keys one before the query and at the query
        15.0
    """
    values = rows_of_distances(relative_values, distances)  # (B or 1, T, S, H)
    contexts = _by_place(ops.transpose(weights, (0, 2, 1, 3)), values)  # (B, T, N, H)
    return ops.transpose(contexts, (0, 2, 1, 3))


def _by_place(rows, matrices):
    """Return (B, T, N, J), the product of rows (B, T, N, I) and matrices (B or 1, T, I, J).

    What all rows of a batch share is multiplied by all of them at once: where TensorFlow 2.21
    repeats it, training by oneDNN writes over other memory.
    """
    if matrices.shape[0] != 1:
        return ops.matmul(rows, matrices)
    batch_size, length, heads, inner = ops.shape(rows)
    rows = ops.reshape(ops.transpose(rows, (1, 0, 2, 3)), (length, batch_size * heads, inner))
    products = ops.matmul(rows, matrices[0])
    products = ops.reshape(products, (length, batch_size, heads, ops.shape(matrices)[3]))
    return ops.transpose(products, (1, 0, 2, 3))

"""Attention, one query at a time."""

import numpy as np

from tests.references.recurrent import doubles, sigmoid


def softmax(scores):
    exponentials = np.exp(scores - np.max(scores))
    return exponentials / exponentials.sum()


def _scores(score, query, key):
    query, key = doubles(query), doubles(key)
    shape = query.shape[0], query.shape[1], key.shape[1]
    scores = [score(query[row, t], key[row, s]) for row, t, s in np.ndindex(shape)]
    return np.array(scores).reshape(shape)


def additive_score(query, key, query_kernel, key_kernel, scale):
    """Bahdanau et al. 2015, appendix A.1.2: e(t, s) = v^T tanh(W q(t) + U k(s))."""
    W, U, v = (doubles(each).T for each in (query_kernel, key_kernel, scale))
    return _scores(lambda q, k: (v @ np.tanh(W @ q + U @ k)).item(), query, key)


def concat_score(query, key, kernel, scale):
    """Luong et al. 2015, section 3.1: v^T tanh(W [q; k])."""
    W, v = doubles(kernel).T, doubles(scale).T
    return _scores(lambda q, k: (v @ np.tanh(W @ np.concatenate([q, k]))).item(), query, key)


def general_score(query, key, kernel):
    """Luong et al. 2015, section 3.1: q^T W k."""
    W = doubles(kernel)
    return _scores(lambda q, k: q @ W @ k, query, key)


def dot_score(query, key):
    """Luong et al. 2015, section 3.1: q^T k."""
    return _scores(lambda q, k: q @ k, query, key)


def scaled_dot_score(query, key):
    """Vaswani et al. 2017, section 3.2.1: q^T k / sqrt(d)."""
    return _scores(lambda q, k: q @ k / np.sqrt(len(k)), query, key)


def attention(scores, value, mask=None):
    """Bahdanau et al. 2015, section 3.1: context (B, T, D) and weights (B, T, S).

    What is masked is not there: the softmax runs over the positions that are left.
    """
    return _attended(softmax, scores, value, mask)


def hard_attention(scores, value, mask=None):
    """Xu et al. 2015, section 4.1, at inference: the most likely position that is not masked."""
    return _attended(lambda seen: np.arange(len(seen)) == seen.argmax(), scores, value, mask)


def _attended(weigh, scores, value, mask):
    weights = np.zeros_like(scores)
    context = np.zeros((*scores.shape[:2], value.shape[-1]), np.result_type(scores, value))
    for row, t in np.ndindex(scores.shape[:2]):
        seen = np.arange(scores.shape[2]) if mask is None else np.flatnonzero(mask[row, t])
        if len(seen):
            weights[row, t, seen] = weigh(scores[row, t, seen])
            context[row, t] = sum(weights[row, t, s] * value[row, s] for s in seen)
    return context, weights


def local_attention(scores, value, window, centers, mask=None, gaussian=False):
    """Luong et al. 2015, section 3.2; `centers` (B, T) are the positions p_t, counted from 0."""
    weights = np.zeros(scores.shape, np.result_type(scores, centers))
    for row, t in np.ndindex(scores.shape[:2]):
        p = centers[row, t]
        seen = [
            s
            for s in range(scores.shape[2])
            if abs(s - np.real(p)) <= window and (mask is None or mask[row, t, s])
        ]
        if seen:
            weights[row, t, seen] = softmax(scores[row, t, seen])
        for s in seen if gaussian else ():
            weights[row, t, s] *= np.exp(-((s - p) ** 2) / (2 * (window / 2) ** 2))
    return np.einsum("bts,bsd->btd", weights, doubles(value)), weights


def predicted_positions(query, real_keys, kernel, scale):
    """Luong et al. 2015, section 3.2: p_t = S sigmoid(v^T tanh(W h_t)); `real_keys` (B, T) is S."""
    W, v = doubles(kernel).T, doubles(scale)[:, 0]
    centers = np.empty(query.shape[:2], np.result_type(query, W, v))
    for row, t in np.ndindex(centers.shape):
        centers[row, t] = real_keys[row, t] * sigmoid(v @ np.tanh(W @ query[row, t]))
    return centers


def key_value_attention(sequence, window, num_parts, weights, mask=None):
    """Daniluk et al. 2017, sections 2.2 (two parts) and 2.3 (three): h* and attention weights."""
    W_Y, W_h, w, W_r, W_x = (doubles(each).T for each in weights)
    sequence = doubles(sequence)
    dtype = np.result_type(sequence, W_Y, W_h, w, W_r, W_x)
    batch_size, length, dim = sequence.shape
    outputs = np.zeros((batch_size, length, dim // num_parts), dtype)
    attended = np.zeros((batch_size, length, window), dtype)
    for row, t in np.ndindex(batch_size, length):
        if mask is not None and not mask[row, t]:
            continue
        k, v, *rest = np.split(sequence[row], num_parts, axis=-1)
        p = rest[0] if num_parts == 3 else v
        past = [s for s in range(max(0, t - window), t) if mask is None or mask[row, s]]
        r = np.zeros(dim // num_parts, dtype)
        if past:
            alpha = softmax(np.array([(w @ np.tanh(W_Y @ k[s] + W_h @ k[t])).item() for s in past]))
            r = sum(a * v[s] for a, s in zip(alpha, past, strict=True))
            attended[row, t, [s - (t - window) for s in past]] = alpha
        outputs[row, t] = np.tanh(W_r @ r + W_x @ p[t])
    return outputs, attended


def structured_self_attention(sequence, hidden_kernel, hop_kernel, mask=None):
    """Lin et al. 2017, section 2, equations 5 to 8: M's rows joined, A, and the mean penalty."""
    H, W_1, W_2 = doubles(sequence), doubles(hidden_kernel).T, doubles(hop_kernel).T
    batch_size, length, dim = H.shape
    dtype = np.result_type(H, W_1, W_2)
    A = np.zeros((batch_size, len(W_2), length), dtype)
    M = np.zeros((batch_size, len(W_2), dim), dtype)
    penalty = 0
    for row, hop in np.ndindex(A.shape[:2]):
        real = range(length) if mask is None else np.flatnonzero(mask[row])
        if len(real):
            A[row, hop, real] = softmax(
                np.array([W_2[hop] @ np.tanh(W_1 @ H[row, t]) for t in real])
            )
            M[row, hop] = sum(A[row, hop, t] * H[row, t] for t in real)
    for each in A:
        penalty += np.linalg.norm(each @ each.T - np.eye(len(each))) ** 2 / batch_size
    return M.reshape(batch_size, -1), A, penalty


def bi_attention(context, query, kernel, context_mask=None, query_mask=None):
    """Seo et al. 2017, section 2, "Attention flow layer": G (B, T, 4D)."""
    context, query, w = doubles(context), doubles(query), doubles(kernel)[:, 0]
    batch_size, length, dim = context.shape
    G = np.zeros((batch_size, length, 4 * dim), np.result_type(context, query, w))
    for row in range(batch_size):
        H, U = context[row], query[row]
        words = range(length) if context_mask is None else np.flatnonzero(context_mask[row])
        asked = range(len(U)) if query_mask is None else np.flatnonzero(query_mask[row])
        S = {
            t: np.array([w @ np.concatenate([H[t], U[j], H[t] * U[j]]) for j in asked])
            for t in words
        }
        h_tilde = np.zeros(dim)
        if len(words) and len(asked):
            b = softmax(np.array([S[t].max() for t in words]))
            h_tilde = sum(b_t * H[t] for b_t, t in zip(b, words, strict=True))
        for t in words:
            u_tilde = np.zeros(dim)
            if len(asked):
                u_tilde = sum(a * U[j] for a, j in zip(softmax(S[t]), asked, strict=True))
            G[row, t] = np.concatenate([H[t], u_tilde, H[t] * u_tilde, H[t] * h_tilde])
    return G


def multi_head_attention(query, key, value, mask, weights):
    """Vaswani et al. 2017, section 3.2.2: output (B, T, D) and weights (B, N, T, S).

    `weights` are W_Q (·, N, H), b_Q (N, H), the same of K and V, W_O (N, H, D), b_O (D,).
    """
    query, key, value, *weights = (doubles(each) for each in (query, key, value, *weights))
    W_Q, b_Q, W_K, b_K, W_V, b_V, W_O, b_O = weights
    output, attended = 0, []
    for n in range(W_Q.shape[1]):
        scores = scaled_dot_score(query @ W_Q[:, n] + b_Q[n], key @ W_K[:, n] + b_K[n])
        head, alpha = attention(scores, value @ W_V[:, n] + b_V[n], mask)
        output = output + head @ W_O[n]
        attended.append(alpha)
    return output + b_O, np.stack(attended, axis=1)


def distance_attention(x, mask, weights, distance_bias=None):
    """Self-attention (B, T, D) that knows distances: Shaw et al. 2018, equations 1 to 5, a^K and
    a^V (2k + 1, H) last among the weights; and a `distance_bias` (2M + 1, N), added to the scores.
    """
    x, *weights = (doubles(each) for each in (x, *weights))
    W_Q, b_Q, W_K, b_K, W_V, b_V, W_O, b_O = weights[:8]
    B, T, N, H = *x.shape[:2], *W_Q.shape[1:]
    a_K, a_V = weights[8:] or np.zeros((2, 1, H))
    k = len(a_K) // 2
    bias = np.zeros((1, N)) if distance_bias is None else doubles(distance_bias)
    M = len(bias) // 2
    output = np.zeros((B, T, W_O.shape[-1]), complex)
    for b, n, i in np.ndindex(B, N, T):
        q, e = x[b, i] @ W_Q[:, n] + b_Q[n], {}
        for j in range(T):
            if mask[b, i, j]:
                key = x[b, j] @ W_K[:, n] + b_K[n] + a_K[max(-k, min(k, j - i)) + k]
                e[j] = q @ key / np.sqrt(H) + bias[max(-M, min(M, j - i)) + M, n]
        total = sum(np.exp(e[j]) for j in e)
        for j in e:
            value = x[b, j] @ W_V[:, n] + b_V[n] + a_V[max(-k, min(k, j - i)) + k]
            output[b, i] += np.exp(e[j]) / total * value @ W_O[n]
    return output + b_O


def t5_bucket(distance, bidirectional, num_buckets, max_distance):
    """Raffel et al. 2020, section 2.1, as mesh_tensorflow counts: distance is key minus query."""
    first = 0
    if bidirectional:
        num_buckets //= 2
        first = num_buckets if distance > 0 else 0
        n = abs(distance)
    else:
        n = max(-distance, 0)
    max_exact = num_buckets // 2
    if n < max_exact:
        return first + n
    for further in range(num_buckets - max_exact):  # n < max_exact (max / max_exact)^(share)
        power, steps = further + 1, num_buckets - max_exact
        if n**steps * max_exact**power < max_distance**power * max_exact**steps:
            return first + max_exact + further
    return first + num_buckets - 1

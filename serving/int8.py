"""A test of whether this machine multiplies 8-bit numbers exactly.

    y = x w,   x: 255 of uint8, w: 127 of int8, 4 of each;   exact: 4 255 127 = 129,540

x86 processors without VNNI add two products of an unsigned and a signed number in 16 bits, which
end at 32,767: their y is 65,534. There onnxruntime has another, exact kernel, for weights that it
makes unsigned first (`session.x64quantprecision`); where the first one is exact, it is also faster.
"""

import base64
import functools

import numpy as np
import onnxruntime

# One MatMulInteger; serving/javascript and serving/cpp have the same bytes.
PRODUCT = base64.b64decode(
    "CAQ6aQoYCgF4CgF3EgF5Ig1NYXRNdWxJbnRlZ2VyEgRpbnQ4KhsIBAgEEANCAXdKEH9/f39/f39/f39/f39/f39a"
    "FAoBeBIPCg0IAhIJCgMSAW4KAggEYhQKAXkSDwoNCAYSCQoDEgFuCgIIBEIECgAQCg=="
)
EXACT = 4 * 255 * 127


@functools.cache
def overflows() -> bool:
    """Return whether onnxruntime's int8 products overflow on this machine unless it is asked for
    others.

    It is measured once a process, in a millisecond.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(PRODUCT, options, providers=["CPUExecutionProvider"])
    [product] = session.run(None, {"x": np.full((1, 4), 255, np.uint8)})
    return bool((product != EXACT).any())

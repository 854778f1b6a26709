"""Find the files from which an ONNX graph reads its weights, in the graph's bytes.

onnxruntime does not expose them. ONNX is protobuf: a message is a sequence of fields with number
and kind; fields of no interest are skipped.

Reference: https://protobuf.dev/programming-guides/encoding/;
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

import mmap

KEY = b"location"
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
# The fields of the messages that contain tensors.
INSIDE = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "tensor": {13: "entry"},
    "entry": {1: "key", 2: "value"},
}


def external_files(path):
    """Return the distinct file names that a graph's tensors name as the location of their data.

    Args:
        path: path of the ONNX file.

    Raises:
        ValueError: if it is not a protobuf message.
        OSError: if it can not be read.
    """
    with open(path, "rb") as stream:
        if not stream.seek(0, 2):
            return ()
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(KEY) < 0:  # as in most graphs, which hold their weights
                return ()
            return tuple(dict.fromkeys(_locations(content)))


def _locations(content):
    ahead = [("model", 0, len(content))]
    while ahead:
        message, start, end = ahead.pop()
        locations = {}
        for number, first, last in _fields(content, start, end):
            inner = INSIDE[message].get(number)
            if message == "entry" and inner:
                locations[inner] = content[first:last]
            elif inner:
                ahead.append((inner, first, last))
        if locations.get("key") == KEY:
            yield locations.get("value", b"").decode(errors="backslashreplace")


def _fields(content, start, end):
    """Yield the number, the first byte and the end of each field that holds bytes."""
    offset = start
    while offset < end:
        tag, offset = _varint(content, offset, end)
        kind = tag & 7
        if kind == VARINT:
            _, offset = _varint(content, offset, end)
        elif kind == BYTES:
            size, offset = _varint(content, offset, end)
            yield tag >> 3, offset, offset + size
            offset += size
        elif kind in (FIXED_32, FIXED_64):
            offset += 4 if kind == FIXED_32 else 8
        else:
            raise ValueError(f"no protobuf message: a field of kind {kind} at byte {offset}")
        if offset > end:
            raise ValueError(f"no protobuf message: a field goes beyond byte {end}")


def _varint(content, offset, end):
    value = shift = 0
    while offset < end and shift < 70:
        byte = content[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value, offset
    raise ValueError(f"no protobuf message: no whole number at byte {offset}")

"""Text on any terminal."""

import contextlib
import io

from seqkeras.terminal import allow_any_text


def test_what_an_encoding_lacks_is_escaped():
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    with contextlib.redirect_stdout(output):
        allow_any_text()
        print("ü")
    assert output.buffer.getvalue() == b"\\xfc\n"


def test_an_output_that_takes_all_text_is_left_as_it_is():
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        allow_any_text()
        print("ü")
    assert printed.getvalue() == "ü\n"

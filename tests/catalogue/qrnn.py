"""Quasi-recurrent networks."""

from seqkeras.recurrent import QRNN, Bidirectional
from tests.catalogue.case import U
from tests.catalogue.recurrent import sequence_case


def qrnn_case(name, past=(), **options):
    return sequence_case(name, lambda: QRNN(U, **options), past=past)


# They return the outputs of all steps, in the order of the inputs, and the states.
SEQUENCES = [
    qrnn_case(
        f"QRNN({pooling}, {window})",
        window=window,
        pooling=pooling,
        zoneout=0.3,
        dropout=0.2,
        seed=5,
        return_sequences=True,
        return_state=True,
    )
    for pooling, window in (("f", 1), ("fo", 2), ("ifo", 3))
]
CASES = [
    *SEQUENCES,
    qrnn_case("QRNN, forwards", past=("sequences",), pooling="ifo", return_sequences=True),
    qrnn_case("QRNN, backwards", window=3, return_state=True, go_backwards=True),
    qrnn_case("QRNN, last output"),
    sequence_case(
        "Bidirectional(QRNN)",
        lambda: Bidirectional(QRNN(U, 3, "ifo", return_sequences=True, return_state=True)),
    ),
    sequence_case("Bidirectional(QRNN), last outputs", lambda: Bidirectional(QRNN(U))),
]

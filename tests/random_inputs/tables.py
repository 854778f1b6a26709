"""Rows of a table for a forecaster, each value as JSON, CSV or pandas may write it.

`pandas_rows` and `features` read them by pandas alone, and by formulas written out here.
"""

import csv
import datetime
import functools

import keras
import numpy as np
import pandas
from hypothesis import strategies as st

from seqkeras.models import Forecaster
from seqkeras.serving.array_files import inputs_in
from tests import zoo

MEAN, DEVIATION, FILL = 1e9, 4.0, 1e9 - 3
KINDS = ["1", "2"]
ROWS = {
    "columns": [
        {
            "name": "load",
            "mean": MEAN,
            "deviation": DEVIATION,
            "fill": FILL,
            "may_be_missing": True,
        },
        {"name": "holiday", "categories": ["false", "true"]},
        {"name": "kind", "categories": KINDS},
    ],
    "time": {"columns": ["time"], "step": 3600, "cycles": ["day"]},
}
NUM_FEATURES, HORIZON = 8, 5
MISSING = [None, "", "NA", "nan"]


def forecast_rows(folder):
    """A forecaster of a column of numbers by itself, two of categories and the time."""
    model = Forecaster(horizon=HORIZON, units=7, num_targets=1, num_known=2)
    model.build({"window": (None, None, NUM_FEATURES), "known": (None, HORIZON, 2)})
    return zoo.saved(
        folder,
        model,
        "Forecast",
        None,
        [_rows(0, [(MEAN + place, place % 2 == 0, place % 3) for place in range(9)])],
        settings={"rows": ROWS},
    )


def _rows(hour, values):
    start = datetime.datetime(2024, 2, 28)
    return [
        {
            "time": (start + datetime.timedelta(hours=hour + place)).isoformat(),
            "load": load,
            "holiday": holiday,
            "kind": kind,
        }
        for place, (load, holiday, kind) in enumerate(values)
    ]


def _time_forms(text, has_offset):
    time = datetime.datetime.fromisoformat(text)
    seconds = int(time.replace(tzinfo=datetime.UTC).timestamp())
    later = (time + datetime.timedelta(hours=2)).isoformat(" ")
    naive, aware = [text, text.replace("T", " "), f"{text}.000"], [f"{text}Z", f"{later}+02:00"]
    return [*(aware if has_offset else naive), seconds, str(seconds), 1000 * seconds]


def _number_forms(number):
    return MISSING if number is None else [number, float(number), str(number), f" {number}.0 "]


def _flag_forms(flag):
    text = str(flag)
    return MISSING if flag is None else [flag, text, text.lower(), text.upper()]


WRONG = {"load": ["much", True], "time": [None, "soon", "2024-01-01"], "kind": [{}]}


@st.composite
def tables(draw):
    """Rows of hours, the same value in any of its forms in each row; now and then a wrong one."""
    loads = st.one_of(st.none(), st.integers(10**9 - 50, 10**9 + 50))
    values = st.tuples(
        loads, st.sampled_from([None, True, False]), st.sampled_from([None, 1, 2, 3])
    )
    rows = _rows(draw(st.integers(0, 200)), draw(st.lists(values, min_size=1, max_size=12)))
    forms = {
        "time": functools.partial(_time_forms, has_offset=draw(st.booleans())),
        "load": _number_forms,
        "holiday": _flag_forms,
        "kind": _number_forms,
    }
    for row in rows:
        for name, forms_of in forms.items():
            row[name] = draw(st.sampled_from(forms_of(row[name])))
    if draw(st.integers(0, 9)) == 0:
        name = draw(st.sampled_from([*WRONG]))
        draw(st.sampled_from(rows))[name] = draw(st.sampled_from(WRONG[name]))
    return rows


def as_frame(rows):
    """The rows as pandas holds them: times, float64 with gaps, booleans with gaps."""

    def number(value):
        return np.nan if value in MISSING else float(value)

    def flag(value):
        return pandas.NA if value in MISSING else str(value).lower() == "true"

    def time(value):
        if str(value).isdigit():
            unit = "ms" if int(value) > 10**11 else "s"
            return pandas.Timestamp(int(value), unit=unit, tz="UTC")
        value = pandas.Timestamp(value)
        return value.tz_localize("UTC") if value.tz is None else value.tz_convert("UTC")

    columns = {
        "time": [time(row["time"]) for row in rows],
        "load": np.array([number(row["load"]) for row in rows]),
        "holiday": pandas.array([flag(row["holiday"]) for row in rows], dtype="boolean"),
        "kind": np.array([number(row["kind"]) for row in rows]),
    }
    return pandas.DataFrame(columns)


def forecast(opened, value, answer):
    """Features by the formulas, in float64; the forecast in the units of the column."""
    frame = as_frame(value)
    loads = frame["load"].ffill().fillna(FILL)
    future = pandas.date_range(frame["time"].iloc[-1], periods=HORIZON + 1, freq="h")[1:]
    window = np.stack(
        [
            (loads - MEAN) / DEVIATION,
            frame["load"].isna(),
            *(frame["holiday"].eq(flag).fillna(False) for flag in (False, True)),
            *(frame["kind"].eq(int(kind)) for kind in KINDS),
            *_day(frame["time"].dt.hour),
        ],
        axis=-1,
    ).astype("float32")
    lengths = np.array([len(window)])
    known = np.stack(_day(future.hour), axis=-1).astype("float32")
    outputs = opened.model({"window": window[None], "lengths": lengths, "known": known[None]})
    expected = MEAN + DEVIATION * np.asarray(keras.ops.convert_to_numpy(outputs)[0], "float64")
    np.testing.assert_allclose(answer.values, expected, rtol=0, atol=2e-3 * DEVIATION)
    unknown = frame["kind"].notna() & ~frame["kind"].isin([1, 2])
    assert answer.unknown == ({"kind": {"3": int(unknown.sum())}} if unknown.any() else {})
    _check_elsewhere(opened, frame, answer)


def _day(hours):
    """The sine and cosine of the phase of whole hours in the day."""
    angles = 2 * np.pi * np.asarray(hours, "float64") / 24
    return np.sin(angles), np.cos(angles)


def _check_elsewhere(opened, frame, answer):
    """The rows of a data frame, and of the CSV file that pandas writes, are answered alike."""
    given = [frame.to_dict("records")]
    path = opened.folder / "rows.csv"
    frame.to_csv(path, index=False, quoting=csv.QUOTE_MINIMAL)
    given += [rows for _, rows in inputs_in(str(path), ("series",))]
    for rows in given:
        other = opened.pipeline(tuple(rows))
        np.testing.assert_allclose(other.values, answer.values, rtol=0, atol=1e-5 * DEVIATION)
        assert other.unknown == answer.unknown

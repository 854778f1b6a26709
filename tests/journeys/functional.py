"""An ordinary functional forecaster, no layer of ours: a fixed window in, the next day out.

python functional.py
seqkeras export runs/load bundles/load
seqkeras predict bundles/load --json-input < window.json
"""

import json

import keras
import numpy as np

from seqkeras.export import save_run

PAST, NEXT = 48, 24
series = np.loadtxt("load.csv", delimiter=",", skiprows=1, usecols=1, dtype="float32")
starts = range(len(series) - PAST - NEXT + 1)
windows = np.stack([series[start : start + PAST, None] for start in starts])
targets = np.stack([series[start + PAST : start + PAST + NEXT] for start in starts])

window = keras.Input((PAST, 1))
scaled = keras.layers.Rescaling(0.01)(window)
hidden = keras.layers.Conv1D(16, 5, activation="relu")(scaled)
hidden = keras.layers.Flatten()(hidden)
forecast = keras.layers.Rescaling(100.0)(keras.layers.Dense(NEXT)(hidden))
model = keras.Model(window, forecast)
model.compile(keras.optimizers.Adam(0.003), "mae")
model.fit(windows, targets, epochs=30, batch_size=32, validation_split=0.1)

save_run(
    "runs/load",
    model,
    "Forecast",
    validation=[{"input": window} for window in windows[-50:]],
    limits={"source_length": PAST},
)
with open("window.json", "w") as file:
    json.dump(series[-PAST:, None].tolist(), file)

"""A Keras model of a dictionary: the past day and the weather of the next one in, its load out.

python two_inputs.py
seqkeras export runs/weather bundles/weather
seqkeras predict bundles/weather --json-input < day.json
"""

import json

import keras
import numpy as np

from seqkeras.export import save_run

DAY = 24
table = np.loadtxt("weather.csv", delimiter=",", skiprows=1, dtype="float32")
days = np.stack([table[start : start + DAY] for start in range(len(table) - DAY + 1)])
past, future = days[:-DAY, :, 1:2], days[DAY:, :, 2:3]  # the load, the temperature

load, degrees = keras.Input((DAY, 1), name="load"), keras.Input((DAY, 1), name="degrees")
scaled = [keras.layers.Rescaling(0.01)(load), keras.layers.Rescaling(0.1)(degrees)]
hidden = keras.layers.Flatten()(keras.layers.Concatenate()(scaled))
forecast = keras.layers.Rescaling(100.0)(keras.layers.Dense(DAY)(hidden))
model = keras.Model({"load": load, "degrees": degrees}, forecast)
model.compile(keras.optimizers.Adam(0.003), "mae")
model.fit({"load": past, "degrees": future}, days[DAY:, :, 1], epochs=30, verbose=2)

examples = [{"series": series, "known": known} for series, known in zip(past, future)][-50:]
save_run(
    "runs/weather",
    model,
    "Forecast",
    validation=[{"input": example} for example in examples],
    limits={"source_length": DAY},
    call={"load": past[-50:], "degrees": future[-50:]},
)
with open("day.json", "w") as file:
    json.dump({name: array.tolist() for name, array in examples[-1].items()}, file)

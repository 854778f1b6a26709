"""A folder of Hugging Face under a new head: fine-tune it, export it, ask it.

python hugging_face.py
seqkeras export runs/tuned bundles/tuned
seqkeras predict bundles/tuned "what a fine story"
"""

import csv

import keras
import numpy as np

from seqkeras.export import save_run
from seqkeras.models import ClassificationHead, WithHeads
from seqkeras.pretrained import load_hugging_face, save_hugging_face
from seqkeras.tokenizers import Subwords, pad

with open("reviews.csv", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
labels = sorted({row["label"] for row in rows})
tokenizer = Subwords.from_file("models/tiny-bert/tokenizer.json")
token_ids, lengths = pad([tokenizer.analyze(row["text"]).token_ids for row in rows])
targets = {"label": np.array([labels.index(row["label"]) for row in rows])}
encoder = load_hugging_face("models/tiny-bert", heads=False)
model = WithHeads(encoder, {"label": ClassificationHead(len(labels))}, frozen=False)
loss = {"label": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
model.compile(keras.optimizers.Adam(0.002), loss)
model.fit({"token_ids": token_ids, "lengths": lengths}, targets, epochs=3)

save_hugging_face(model, "models/tuned", tokenizers={"text": tokenizer})
save_run(
    "runs/tuned",
    model,
    "Classify",
    validation=[{"input": row["text"], "target": row["label"]} for row in rows[-100:]],
    limits={"source_length": 32},
    tokenizers={"text": tokenizer},
    settings={"output": "label", "labels": labels},
)

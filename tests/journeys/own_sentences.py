"""Your own labelled sentences: train a classifier, export it, ask it.

python own_sentences.py
seqkeras export runs/reviews bundles/reviews
seqkeras predict bundles/reviews "what a fine story"
"""

import csv

import keras
import numpy as np

from seqkeras.export import save_run
from seqkeras.recurrent import LSTM, Bidirectional
from seqkeras.tokenizers import learn_word_piece, pad

with open("reviews.csv", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
texts, labels = [row["text"] for row in rows], sorted({row["label"] for row in rows})
tokenizer = learn_word_piece(texts, vocab_size=500)
token_ids, _ = pad([tokenizer.analyze(text).token_ids for text in texts])

words = keras.Input((None,), dtype="int64", name="token_ids")
hidden = keras.layers.Embedding(len(tokenizer), 16, mask_zero=True)(words)
hidden = Bidirectional(LSTM(16))(hidden)
model = keras.Model(words, keras.layers.Dense(len(labels), name="label")(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
model.fit(token_ids, np.array([labels.index(row["label"]) for row in rows]), epochs=3)

save_run(
    "runs/reviews",
    model,
    "Classify",
    validation=[{"input": row["text"], "target": row["label"]} for row in rows[-100:]],
    limits={"source_length": 64},
    tokenizers={"text": tokenizer},
    settings={"labels": labels},
)

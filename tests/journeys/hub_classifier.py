"""A text classifier of KerasHub, trained on strings as its users do: export it, ask it.

python hub_classifier.py
seqkeras export runs/hub bundles/hub
seqkeras predict bundles/hub "what a fine story"
"""

import csv

import keras
import keras_nlp
import numpy as np

from seqkeras.export import save_run
from seqkeras.tokenizers import from_keras_nlp

with open("reviews.csv", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
texts, labels = [row["text"] for row in rows], sorted({row["label"] for row in rows})
words = sorted({word.strip(",") for text in texts for word in text.lower().split()} | {","})
vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
tokenizer = keras_nlp.models.BertTokenizer(vocabulary, lowercase=True)
preprocessor = keras_nlp.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=32)
backbone = keras_nlp.models.BertBackbone(len(vocabulary), 2, 2, 32, 64, max_sequence_length=32)
model = keras_nlp.models.BertTextClassifier(backbone, len(labels), preprocessor, dropout=0.0)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.002), loss, metrics=["accuracy"])
model.fit(np.array(texts), np.array([labels.index(row["label"]) for row in rows]), epochs=3)

save_run(
    "runs/hub",
    model,
    "Classify",
    validation=[{"input": row["text"], "target": row["label"]} for row in rows[-100:]],
    limits={"source_length": 32},
    tokenizers={"text": from_keras_nlp(preprocessor)},
    settings={"labels": labels},
)

"""Your own parallel text: train a translator, export it, ask it.

python parallel_text.py
python -m export runs/en-de bundles/en-de
python -m serving predict bundles/en-de "the red house is big"
"""

import keras
import numpy as np

from seqkeras.models import Transformer
from seqkeras.runs import save_run
from seqkeras.tokenizers import learn_sentence_pieces, pad

with open("pairs.tsv", encoding="utf-8") as file:
    pairs = [line.rstrip("\n").split("\t") for line in file]
texts = [text for pair in pairs for text in pair]
pieces = learn_sentence_pieces(texts, 8000, suffix=("</s>",), hard_vocab_limit=False)
begin, end = pieces.id_of("<s>"), pieces.id_of("</s>")
sources, lengths = pad([pieces.analyze(text).token_ids for text, _ in pairs], end)
given, _ = pad([[begin, *pieces.encode(text)] for _, text in pairs], end)
wanted, real = pad([[*pieces.encode(text), end] for _, text in pairs], end)
weights = (np.arange(wanted.shape[1]) < real[:, None]).astype("float32")  # padding counts nothing

model = Transformer(len(pieces), len(pieces), 32, 1, 4, 64, 32, never_generated=[begin])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.005), loss)
inputs = {"token_ids": sources, "lengths": lengths, "target_ids": given}
model.fit(inputs, wanted, sample_weight=weights, epochs=12, batch_size=32)

save_run(
    "runs/en-de",
    model,
    "Translate",
    validation=[{"text": text, "target": target} for text, target in pairs[-50:]],
    limits={"source_length": 32, "target_length": 32},
    tokenizers={"source": pieces, "target": pieces},
    decoding={"start_id": begin, "end_id": end},
)

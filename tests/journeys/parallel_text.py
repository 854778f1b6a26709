"""Your own parallel text: train a translator, export it, ask it.

python parallel_text.py
seqkeras export runs/en-de bundles/en-de
seqkeras predict bundles/en-de "the red house is big"
"""

import keras

from seqkeras.export import save_run
from seqkeras.metrics import TokenAccuracy
from seqkeras.models import Transformer
from seqkeras.tokenizers import learn_sentence_pieces, pad, special_ids

with open("pairs.tsv", encoding="utf-8") as file:
    pairs = [line.rstrip("\n").split("\t") for line in file]
texts = [text for pair in pairs for text in pair]
pieces = learn_sentence_pieces(texts, 8000, suffix=("</s>",), hard_vocab_limit=False)
special, size = special_ids(pieces), len(pieces)
sources, lengths = pad([pieces.analyze(text).token_ids for text, _ in pairs])
given, _ = pad([[special.start_id, *pieces.encode(text)] for _, text in pairs])
wanted, _ = pad([[*pieces.encode(text), special.end_id] for _, text in pairs])

banned = special.never_generated
model = Transformer(size, size, 32, 1, 4, 64, max_length=32, never_generated=banned)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
model.compile(keras.optimizers.Adam(0.005), loss, metrics=[TokenAccuracy()])
model.fit({"token_ids": sources, "lengths": lengths, "target_ids": given}, wanted, epochs=12)

save_run(
    "runs/en-de",
    model,
    "Translate",
    validation=[{"text": text, "target": target} for text, target in pairs[-50:]],
    limits={"source_length": 32, "target_length": 32},
    tokenizers={"source": pieces, "target": pieces},
)

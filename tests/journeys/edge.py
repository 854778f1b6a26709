"""A bundle alone on an edge machine: the folder `serving`, NumPy, onnxruntime and the tokenizer.

python edge.py
"""

import serving

classify = serving.load("bundles/reviews", threads=1)
for answer in classify(["what a fine story", "the cast is weak"]):
    print(answer.labels[0], f"{answer.scores[answer.labels[0]]:.2f}")

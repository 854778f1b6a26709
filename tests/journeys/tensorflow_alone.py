"""The SavedModel on strings, in a process of TensorFlow and tensorflow-text, with nothing of ours.

python tensorflow_alone.py
"""

import tensorflow as tf
import tensorflow_text  # noqa: F401 (its operators)

loaded = tf.saved_model.load("bundles/reviews/saved_model_text/1")
classify = loaded.signatures["serving_default"]
answers = classify(text=tf.constant(["what a fine story", "the cast is weak"]))
for label, scores in zip(answers["label"].numpy(), answers["scores"].numpy(), strict=True):
    print(label.decode(), f"{scores.max():.2f}")

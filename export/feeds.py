"""The feeds of pipelines, name -> (dtype, symbolic shape), and the kinds of models."""

ENCODER_DECODER, LANGUAGE_MODEL, SINGLE_PASS = "encoder-decoder", "language model", "single pass"

TOKENS = {"token_ids": ("int64", ("batch", "length")), "lengths": ("int64", ("batch",))}
SEGMENTS = {"segment_ids": ("int64", ("batch", "length"))}
TEXTS = TOKENS | SEGMENTS | {"padding_mask": ("bool", ("batch", "length"))}
PADDING = {name: TEXTS[name] for name in ("lengths", "padding_mask")}
NUMBERS = ("float32", ("batch", "length", "features"))
FRAMES = {"frames": NUMBERS} | PADDING

"""What Keras answers: the user's own call of the model for one input, without a batch or padding.

Each function takes a `cases.Opened`, an input that the pipeline took and the pipeline's answer, and
asserts that they agree. Only the token ids are the project's: `seqkeras.serving.text` makes them.
"""

import numpy as np

CLOSE = {"rtol": 2e-3, "atol": 2e-4}


def numbers(tensor):
    return np.asarray(tensor, "float64")


def softmax(logits):
    powers = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def arrays(encoding):
    """One row, as the models of texts take it."""
    return {
        "token_ids": np.array([encoding.token_ids]),
        "lengths": np.array([len(encoding)]),
        "segment_ids": np.array([encoding.segment_ids]),
    }


def outputs_of(opened, encoding):
    """The outputs of a model for one `Encoding`; a Sequential model takes the ids alone."""
    inputs = {name: value for name, value in arrays(encoding).items() if name in opened.takes}
    return opened.model(inputs if len(inputs) > 1 else inputs["token_ids"])


def parts_of(value):
    if isinstance(value, dict):
        value = value["text"]
    return value if isinstance(value, tuple) else (value,)


def classes(opened, value, answer):
    encoding = opened.tokenizers["text"].analyze(*parts_of(value))
    outputs = outputs_of(opened, encoding)
    logits = numbers(outputs["label"] if isinstance(outputs, dict) else outputs)[0]
    scores = dict(zip(opened.settings["labels"], softmax(logits), strict=True))
    _same_numbers([answer.scores[label] for label in scores], [*scores.values()])
    best = max(scores, key=scores.get)
    _same_text(answer.labels[0], best, scores[best] - scores[answer.labels[0]])


def number(opened, value, answer):
    encoding = opened.tokenizers["text"].analyze(*parts_of(value))
    _same_numbers(answer.score, numbers(outputs_of(opened, encoding)["score"])[0, 0])


def tags(opened, value, answer):
    words = value["text"] if isinstance(value, dict) else value
    text = " ".join(words) if isinstance(words, tuple) else words
    encoding = opened.tokenizers["text"].analyze(text)
    scores = softmax(numbers(outputs_of(opened, encoding)["tags"])[0])
    for word in answer.words:
        first = next(
            place
            for place, offset in enumerate(encoding.offsets)
            if offset and offset[1] > word.start
        )
        best = opened.settings["labels"][int(np.argmax(scores[first]))]
        _same_numbers(word.score, scores[first].max())
        _same_text(word.tag, best, scores[first].max() - word.score)
        assert text[word.start : word.end] == word.text


def vector(opened, value, answer):
    encoding = opened.tokenizers["text"].analyze(*parts_of(value))
    own = numbers(outputs_of(opened, encoding))[0]
    _same_numbers(answer.vector, own / np.linalg.norm(own))


def fillings(opened, value, answer):
    mask = opened.settings.get("mask_token", "[MASK]")
    tokenizer = opened.tokenizers["text"]
    encoding = tokenizer.analyze(*parts_of(value))
    masks = [
        place for place, index in enumerate(encoding.token_ids) if index == tokenizer.id_of(mask)
    ]
    inputs = arrays(encoding) | {"masked_positions": np.array([masks])}
    inputs = {name: own for name, own in inputs.items() if name in opened.takes}
    logits = numbers(opened.model(inputs)["token"])[0]
    scores = softmax(logits if "masked_positions" in inputs else logits[masks])
    assert len(answer.masks) == len(masks)
    for fillers, expected in zip(answer.masks, scores, strict=True):
        _same_numbers([filler.score for filler in fillers], np.sort(expected)[::-1][: len(fillers)])


def choice(opened, value, answer):
    tokenizer, choices = opened.tokenizers["text"], value["choices"]
    encodings = [tokenizer.analyze(value["text"], other) for other in choices]
    length = max(map(len, encodings))

    def padded(row):
        return np.pad(row, (0, length - len(row)))

    inputs = {
        "token_ids": np.array([[padded(own.token_ids) for own in encodings]]),
        "lengths": np.array([[len(own) for own in encodings]]),
        "segment_ids": np.array([[padded(own.segment_ids) for own in encodings]]),
    }
    inputs = {name: own for name, own in inputs.items() if name in opened.takes}
    scores = softmax(numbers(opened.model(inputs)["choice"])[0])
    _same_numbers(answer.scores, scores)
    assert choices[answer.index] == answer.text


def span(opened, value, answer):
    """The best span of all, found by trying each one."""
    tokenizer = opened.tokenizers["text"]
    question, context = value.values() if isinstance(value, dict) else value
    encoding = tokenizer.analyze(question, context)
    if len(encoding) > opened.settings["window"]:
        return  # the pipeline reads windows
    outputs = outputs_of(opened, encoding)["span"]
    starts, ends = (numbers(outputs[f"{side}_logits"])[0] for side in ("start", "end"))
    of_context = zip(encoding.offsets, encoding.segment_ids, strict=True)
    own = [place for place, (offset, text) in enumerate(of_context) if text and offset]
    spans = {}
    for i in own:
        for j in own:
            start, end = encoding.offsets[i][0], encoding.offsets[j][1]
            if 0 <= j - i < opened.settings["answer_length"] and context[start:end].strip():
                spans[start, end] = max(starts[i] + ends[j], spans.get((start, end), -np.inf))
    start, end = max(spans, key=spans.get)
    given = spans.get((answer.start, answer.end))
    if given is None:  # white space around it is left out, and characters are whole
        assert context[answer.start : answer.end] == answer.text
        return
    _same_text(answer.text, context[start:end].strip(), spans[start, end] - given)


def generation(opened, value, answer):
    """The most probable token after all tokens so far, which are read anew at each step."""
    tokenizer, decoding = opened.tokenizers["text"], opened.record.decoding
    prompt = tokenizer.encode(*parts_of(value)) or [decoding["start_id"]]
    room = opened.record.limits["target_length"] - len(prompt)
    new, score = _greedy(
        lambda ids: opened.model({"token_ids": np.array([prompt + ids])}), decoding["end_id"], room
    )
    assert answer.text == tokenizer.decode(new), (answer, new)
    _same_numbers(answer.score, score)


def translation(opened, value, answer):
    source, target = opened.tokenizers["source"], opened.tokenizers["target"]
    decoding = opened.record.decoding
    ids = source.encode(value)

    def logits(so_far):
        return opened.model(
            {
                "token_ids": np.array([ids]),
                "lengths": np.array([len(ids)]),
                "target_ids": np.array([[decoding["start_id"], *so_far]]),
            }
        )

    most, banned = opened.record.limits["target_length"], opened.model.never_generated
    new, score = _greedy(logits, decoding["end_id"], most, banned)
    assert answer.text == target.decode(new), (answer, new)
    _same_numbers(answer.score, score)


def _greedy(logits_of, end_id, most, banned=()):
    ids, score = [], 0.0
    while len(ids) < most:
        logits = numbers(logits_of(ids))[0, -1]
        logits[list(banned)] = -np.inf
        best = int(np.argmax(logits))
        score += float(np.log(softmax(logits)[best]))
        if best == end_id:
            return ids, score
        ids.append(best)
    return ids, score


def frame_classes(opened, value, answer):
    if np.max(np.abs(value)) > 1e30:
        return  # the order of a sum decides whether it overflows
    scores = softmax(numbers(opened.model(np.array([value], "float32")))[0])
    _same_numbers([answer.scores[label] for label in opened.settings["labels"]], scores)


def frame_tags(opened, value, answer):
    scores = softmax(numbers(opened.model(np.array([value], "float32")))[0])
    _same_numbers([word.score for word in answer.words], scores.max(axis=-1))


def series(opened, value, answer):
    window = np.array([value], "float32")
    expected = numbers(opened.model({"window": window, "lengths": np.array([len(value)])}))[0]
    _same_numbers(answer.values, expected)


def _same_numbers(actual, expected):
    np.testing.assert_allclose(np.asarray(actual, "float64"), expected, **CLOSE)


def _same_text(actual, expected, behind):
    """The texts are equal, or as good as each other."""
    assert actual == expected or behind < 1e-3, (actual, expected)


def same_content(actual, expected, path="answer"):
    """Two answers as JSON have the same strings, and numbers within rounding."""
    if isinstance(expected, dict):
        assert set(actual) == set(expected), (path, actual, expected)
        for name, value in expected.items():
            same_content(actual[name], value, f"{path}.{name}")
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), path
        for place, pair in enumerate(zip(actual, expected, strict=True)):
            same_content(*pair, f"{path}[{place}]")
    elif isinstance(expected, float):
        np.testing.assert_allclose(actual, expected, **CLOSE, err_msg=path)
    else:
        assert actual == expected, (path, actual, expected)

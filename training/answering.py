"""What a Keras model answers while it trains, as the pipeline that will serve it answers."""

from seqkeras.decoding import Constraint, beam, compiled, greedy, in_batches
from seqkeras.tokenizers import CharacterTable, pad
from serving.pipelines.model import softmax
from serving.results import Classification, Translation


class Translate:
    """Texts to `Translation`s, by the search of the run's record; compiled once for a model.

    Args:
        run: a `seqkeras.runs.RunFiles`.
    """

    def __init__(self, run):
        parsed = run.record.parse("run.json")
        self.source, self.target = run.tokenizers["source"], run.tokenizers["target"]
        self.decoding, self.limit = parsed.decoding, parsed.limits.source_length
        self.search = {
            "start_id": self.decoding.start_id,
            "end_id": self.decoding.end_id,
            "max_length": parsed.limits.target_length,
        }
        if self.decoding.regex is not None:
            self.search["constraint"] = Constraint.of_regex(
                self.decoding.regex, self.target, self.decoding.end_id
            )
        self.model = None

    def __call__(self, model, texts, advance=None):
        """The answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        if model is not self.model:
            self.model, self.decode = model, compiled(self._decoder(model))
        rows = [self._token_ids(text) for text in texts]
        token_ids, scores = in_batches(self.decode, rows, pad, advance=advance)
        return [
            Translation(self.target.decode(row), float(score))
            for row, score in zip(token_ids, scores, strict=True)
        ]

    def fits(self, text):
        """Whether a text is within the limit."""
        return len(self._token_ids(text)) <= self.limit

    def _token_ids(self, text):
        if isinstance(self.source, CharacterTable):
            return self.source.encode(text)
        return self.source.analyze(text).token_ids

    def _decoder(self, model):
        num_beams = self.decoding.num_beams

        def best_of_beams(token_ids, lengths):
            state = model.encode(token_ids, lengths)
            options = {"num_beams": num_beams, "length_penalty": self.decoding.length_penalty}
            token_ids, _, scores = beam(model.step, state, **self.search, **options)
            return token_ids[:, 0], scores[:, 0]

        def most_probable(token_ids, lengths):
            state = model.encode(token_ids, lengths)
            token_ids, _, scores = greedy(model.step, state, **self.search)
            return token_ids, scores

        return most_probable if num_beams == 1 else best_of_beams


class Classify:
    """Texts, or tuples of two, to `Classification`s; what is over the limit is cut off.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model is a functional one.
    """

    def __init__(self, run):
        self.run, self.labels = run, run.record.settings["labels"]
        self.model = None

    def __call__(self, model, texts, advance=None):
        """The answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        if model is not self.model:
            self.model, self.logits = model, compiled(_logits_of(model))
        encodings = [text_encoding(self.run, text) for text in texts]
        [logits] = in_batches(self.logits, encodings, _padded, advance=advance)
        return [self._classification(scores) for scores in softmax(logits).tolist()]

    def fits(self, text):
        """Whether a text, or each of two, has tokens, and nothing is cut off."""
        tokenizer, limit = self.run.tokenizers["text"], self.run.record.limits["source_length"]
        texts = text if isinstance(text, tuple) else (text,)
        return all(map(tokenizer.encode, texts)) and len(tokenizer.analyze(*texts)) <= limit

    def _classification(self, scores):
        ranked = dict(sorted(zip(self.labels, scores), key=lambda item: -item[1]))
        best = next(iter(ranked))
        return Classification((best,), ranked[best], ranked)


def text_encoding(run, text):
    """The `Encoding` of a text, or of a tuple of two; what is over the run's limit is cut off."""
    texts = text if isinstance(text, tuple) else (text,)
    limit = run.record.limits["source_length"]
    return run.tokenizers["text"].analyze(*texts, max_length=limit, truncate=True)


def _padded(encodings):
    token_ids, lengths = pad([encoding.token_ids for encoding in encodings])
    segment_ids, _ = pad([encoding.segment_ids for encoding in encodings])
    return token_ids, lengths, segment_ids


def _logits_of(model):
    names = [tensor.name for tensor in model.inputs]

    def logits(token_ids, lengths, segment_ids):
        given = {"token_ids": token_ids, "lengths": lengths, "segment_ids": segment_ids}
        return (model({name: given[name] for name in names}, training=False),)

    return logits


ANSWERERS = {"Classify": Classify, "Translate": Translate}  # by the pipelines of `serving`


def answerer(run):
    """(model, texts, advance) -> answers, for the pipeline of a `seqkeras.runs.RunFiles`.

    Raises:
        ValueError: if training knows no answers of that pipeline.
    """
    pipeline = run.record.pipeline
    if pipeline not in ANSWERERS:
        raise ValueError(
            f"answerer: the pipeline must be {', '.join(ANSWERERS)}; received {pipeline!r}."
        )
    return ANSWERERS[pipeline](run)

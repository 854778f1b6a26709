"""`Answer` while it trains: questions about contexts to spans."""

from seqkeras.decoding import in_batches
from seqkeras.runs import RunError
from seqkeras.serving.pipelines.answer import Settings, span_of
from seqkeras.serving.pipelines.batching import in_groups
from seqkeras.serving.pipelines.questions import SubwordQuestions, WordQuestions
from seqkeras.training.answering.feeding import fed
from seqkeras.training.compiling import OncePerModel

NAME = "Answer: input"
BATCH = 64  # questions that are read at once
WINDOWS = 32  # that a model reads at once
N_BEST = 2  # where the best is none, the best span stands behind it


class Answer:
    """Dictionaries of "question" and "context" to `Span`s, each with the next best one; what is
    over a limit is cut off.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model gives "start_logits" and "end_logits", by
            themselves or of the head "span".
    """

    def __init__(self, run):
        self.settings = Settings(**run.record.settings)
        self.questions = questions_of(run)
        self.logits = OncePerModel(_logits_of)

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        logits_of, answers = self.logits(model), []
        for start in range(0, len(texts), BATCH):
            rows = [self._read(text, truncate=True) for text in texts[start : start + BATCH]]
            texts_in_windows = [row.windows.rows for row in rows]
            found = in_batches(
                logits_of,
                [window for text in texts_in_windows for window in text],
                lambda windows: (self.questions.packing.arrays(windows),),
                WINDOWS,
            )
            logits = in_groups(zip(*found, strict=True), texts_in_windows)
            answers += [span_of(row, own, self.settings, N_BEST) for row, own in zip(rows, logits)]
            if advance:
                advance(len(rows))
        return answers

    def fits(self, text):
        """Return whether question and context have tokens, and nothing is cut off."""
        try:
            self._read(text)
        except ValueError:
            return False
        return True

    def _read(self, text, truncate=False):
        return self.questions.read(text["question"], text["context"], NAME, truncate)


def questions_of(run):
    """Return what reads the questions of a run, as the pipeline reads them.

    Raises:
        RunError: if the limits leave no room for a context.
    """
    settings, limit = Settings(**run.record.settings), run.record.limits["source_length"]
    if "words" in run.tokenizers:
        return WordQuestions(run.tokenizers["words"], run.tokenizers["characters"], limit, settings)
    questions = SubwordQuestions(run.tokenizers["text"], limit, settings)
    for problem in questions.problems():
        raise RunError(f"--question-length: {problem}; choose a smaller one.")
    return questions


def _logits_of(model):
    def logits(arrays):
        outputs = model(fed(model, arrays), training=False)
        outputs = outputs.get("span", outputs)
        return outputs["start_logits"], outputs["end_logits"]

    return logits

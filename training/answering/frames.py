"""`Classify` and `Tag` while they train, of frames of numbers."""

from seqkeras.decoding import in_batches
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.pipelines import classify, tag
from seqkeras.serving.pipelines.arrays import FrameReader, frame_arrays
from seqkeras.serving.pipelines.classify import ranked_classes
from seqkeras.serving.pipelines.model import softmax
from seqkeras.serving.pipelines.tag import tagging_of_frames
from seqkeras.serving.results import Classification
from seqkeras.training.compiling import OncePerModel


class _Frames:
    """Arrays, or rows of a table, to answers; frames over the limit are cut off.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model takes "frames" and "lengths".
    """

    kind: type  # of the settings

    def __init__(self, run):
        self.settings = self.kind(**parse_fields(self.kind, run.record.settings, "", []))
        self.limit = run.record.limits["source_length"]
        self.logits = OncePerModel(_logits_of)

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to frames.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        shape = next(tensor.shape for tensor in model.inputs if tensor.name == "frames")[1:]
        reader = FrameReader(shape, self.limit, self.settings.rows)
        rows = [
            reader.read(text, f"frames[{place}]", truncate=True) for place, text in enumerate(texts)
        ]
        [logits] = in_batches(self.logits(model), rows, _padded, advance=advance)
        return [self._answer(own, len(row)) for own, row in zip(logits, rows, strict=True)]

    def fits(self, text):
        """Return whether nothing is cut off."""
        return len(text) <= self.limit


class ClassifyFrames(_Frames):
    """Frames to `Classification`s."""

    kind = classify.Settings

    def _answer(self, logits, _):
        return Classification(*ranked_classes(self.settings.labels, softmax(logits).tolist()))


class TagFrames(_Frames):
    """Frames to `Tagging`s, of a tag for each."""

    kind = tag.Settings

    def _answer(self, logits, length):
        return tagging_of_frames(logits[:length], self.settings)


def _padded(rows):
    arrays = frame_arrays(rows)
    return arrays["frames"], arrays["lengths"]


def _logits_of(model):
    return lambda frames, lengths: (model({"frames": frames, "lengths": lengths}, training=False),)

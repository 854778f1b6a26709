"""Events for TensorBoard, written by TensorBoard's own package: TensorFlow is not needed."""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path


class EventFile:
    """One more file of events in a folder; from its first step on it stands for older files.

    Args:
        folder: a `Path`, made if it does not exist.
        step: events of this step and later ones in older files of the folder are void.
    """

    def __init__(self, folder: Path, step: int):
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self.event, self.summary = event_pb2, summary_pb2
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        self.records = RecordWriter(open(folder / name, "wb"))  # noqa: SIM115 (`close` closes it)
        self._write(file_version="brain.Event:2")
        started = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(step=step, session_log=started)

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add numbers of a step.

        Args:
            scalars: name -> number.
        """
        values = [
            self.summary.Summary.Value(tag=name, simple_value=value)
            for name, value in scalars.items()
        ]
        self._write(step=step, summary=self.summary.Summary(value=values))

    def close(self) -> None:
        self.records.close()

    def _write(self, **fields):
        event = self.event.Event(wall_time=time.time(), **fields)
        self.records.write(event.SerializeToString())
        self.records.flush()

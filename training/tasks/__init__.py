"""The tasks of `python -m training`, one file each."""

from training.tasks.classify import Classify
from training.tasks.dates import Dates

TASKS = {task.name: task for task in (Classify, Dates)}

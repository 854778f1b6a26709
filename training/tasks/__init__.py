"""The tasks of `python -m training`, one file each."""

from training.tasks.classification import Classification
from training.tasks.dates import Dates

TASKS = {task.name: task for task in (Classification, Dates)}

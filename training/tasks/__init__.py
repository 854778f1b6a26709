"""The tasks of `python -m training`, one file each."""

from training.tasks.dates import Dates

TASKS = {task.name: task for task in (Dates,)}

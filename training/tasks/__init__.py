"""The tasks of `python -m training`, one file each."""

from training.options import command
from training.tasks import dates

TASKS = {"dates": command("dates", dates.DatesOptions, dates.run)}

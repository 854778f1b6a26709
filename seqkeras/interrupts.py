"""Ctrl-C and SIGTERM end a command with its one line and exit status 130."""

import contextlib
import gc
import logging
import signal
import sys
import traceback


class Interrupted(KeyboardInterrupt):
    """A KeyboardInterrupt that Python does not report by itself.

    A plain one that passes an `exec` of a text, which dataclasses and named tuples run while
    libraries load, ends `python -m` by SIGINT, even after it was caught: CPython remembers it by
    its exact type (`unhandled_keyboard_interrupt` in pythonrun.c).
    """


class Interrupts:
    """Ctrl-C and SIGTERM end the block, even if they come while a library passes over errors.

    What libraries log of the work that was cut off, such as TensorFlow's "Object was never used" of
    a half-traced loop, is left out.
    """

    def __enter__(self):
        self._came, self._held = False, False
        taken = [signal.SIGTERM]
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            taken.append(signal.SIGINT)
        self._before = {number: signal.signal(number, self._interrupt) for number in taken}
        self._hook, sys.unraisablehook = sys.unraisablehook, self._report_others
        self._disabled = logging.root.manager.disable
        return self

    def __exit__(self, _, error, __):
        if self._came:
            while error is not None:  # and what it interrupted
                traceback.clear_frames(error.__traceback__)
                error = error.__context__
            gc.collect()
            logging.disable(self._disabled)
        sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self):
        """Raise the interrupt that was passed over."""
        if self._came:
            raise Interrupted

    @contextlib.contextmanager
    def held(self):
        """Let an interrupt wait for the end of the block, where libraries load.

        One that is raised in TensorFlow's compiled modules while they begin is an ImportError or a
        segmentation fault.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    def _interrupt(self, *_):
        self._came = True
        logging.disable()
        if not self._held:
            raise Interrupted

    def _report_others(self, unraisable):
        if not self._came:
            self._hook(unraisable)

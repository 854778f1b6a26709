"""An interrupt ends a block without what libraries say of the work that it cut off."""

import logging
import signal

import pytest
import tensorflow as tf

from seqkeras.interrupts import Interrupts


class Kept(logging.Handler):
    """Keeps the messages of a logger."""

    def __init__(self, logger):
        super().__init__()
        self.messages = []
        logger.addHandler(self)

    def emit(self, record):
        self.messages.append(record.getMessage())


@pytest.fixture
def messages():
    logger = tf.get_logger()
    handler = Kept(logger)
    yield handler.messages
    logger.removeHandler(handler)


def half_written():
    written = tf.TensorArray(tf.float32, 3).write(0, 1.0)
    signal.raise_signal(signal.SIGTERM)
    return written.stack()


def test_tensorflow_says_nothing_of_a_loop_that_sigterm_cut_off(messages):
    with pytest.raises(KeyboardInterrupt), Interrupts():
        half_written()
    assert messages == []


def test_what_is_left_unused_behind_an_interrupt_is_said_again(messages):
    with pytest.raises(KeyboardInterrupt), Interrupts():
        half_written()
    tf.TensorArray(tf.float32, 3).write(0, 1.0)
    assert len(messages) == 1 and "Object was never used" in messages[0]


def test_an_interrupt_waits_while_libraries_load():
    steps = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        with interrupts.held():
            signal.raise_signal(signal.SIGTERM)
            steps.append("loaded")
        steps.append("went on")
    assert steps == ["loaded"]

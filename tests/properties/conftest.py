import keras
import pytest


@pytest.fixture
def restored():
    before, floatx = keras.config.dtype_policy(), keras.config.floatx()
    yield
    keras.config.set_dtype_policy(before)
    keras.config.set_floatx(floatx)

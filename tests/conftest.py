import pytest

import xorlib


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    xorlib.start()

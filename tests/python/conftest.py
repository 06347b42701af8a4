"""Settings of the Python tests: the device they run on and the folder for compiled code.

WEFT_TEST_DEVICE is cpu (default), cuda or cuda:1. WEFT_CACHE_DIR may be relative to where pytest was started.
"""

import os
from pathlib import Path

if os.environ.get("WEFT_CACHE_DIR"):
    folder = Path(os.environ["WEFT_CACHE_DIR"]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["WEFT_CACHE_DIR"] = str(folder)  # before weft is loaded, which reads it

import pytest

import weft.core as mx


def device_named(name):
    kind, _, index = name.partition(":")
    return mx.Device({"cpu": mx.cpu, "cuda": mx.gpu, "gpu": mx.gpu}[kind], int(index or 0))


@pytest.fixture(scope="session", autouse=True)
def device():
    """The device that all tests run on."""
    chosen = device_named(os.environ.get("WEFT_TEST_DEVICE", "cpu"))
    mx.set_default_device(chosen)
    return chosen


@pytest.fixture(autouse=True)
def random_state():
    """Start each test from the same random state."""
    mx.random.seed(0)

import os
import pathlib
import shutil

import numpy as np
import pytest

import nmrf

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAIR = SOURCE / "examples" / "pair"


@pytest.fixture(scope="session")
def matcher():
    return nmrf.Matcher(threads=2, max_disp=64)


@pytest.fixture(scope="session")
def small():
    """Two views of a textured wall, 5 pixels apart: odd sizes, RGB."""
    random = np.random.default_rng(7)
    wall = random.integers(0, 256, (43, 90, 3), dtype=np.uint8)
    wall = np.repeat(np.repeat(wall, 2, axis=0), 2, axis=1)
    return wall[:43, :67].copy(), wall[:43, 5:72].copy()


@pytest.fixture(scope="session")
def pair():
    return nmrf.read_image(PAIR / "left.png"), nmrf.read_image(PAIR / "right.png")


@pytest.fixture(scope="session")
def command():
    """The command nmrf: $NMRF_COMMAND, or the one in PATH."""
    found = os.environ.get("NMRF_COMMAND") or shutil.which("nmrf")
    if not found:
        pytest.skip("skipped: no command nmrf; set NMRF_COMMAND")
    return found

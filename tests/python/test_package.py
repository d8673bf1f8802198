"""The stubs and the example."""

import os
import pathlib
import subprocess
import sys

import pytest

import nmrf
from conftest import SOURCE


def test_stubs(tmp_path):
    pytest.importorskip("mypy", reason="skipped: mypy is not installed")
    folder = pathlib.Path(nmrf.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "__init__.pyi").exists()
    # What pybind11 adds to every class: a metaclass, and an __init__ that refuses.
    allowed = tmp_path / "allowed"
    classes = (
        "Alignment|Calibration|Camera|Disparity|Matcher|PairCheck|PointCloud|Rectifier|Rig|Sequence"
    )
    allowed.write_text(f"nmrf\\.({classes})(\\.__init__)?\n")
    check = [sys.executable, "-m", "mypy.stubtest", "nmrf", "--ignore-missing-stub"]
    environment = {**os.environ, "MYPY_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(folder.parent)}
    done = subprocess.run(
        [*check, "--allowlist", str(allowed), "--ignore-unused-allowlist"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_example(tmp_path):
    pytest.importorskip("matplotlib", reason="skipped: matplotlib is not installed")
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(
        [sys.executable, SOURCE / "examples" / "python" / "show.py", tmp_path / "map.png"],
        check=True,
        env=environment,
    )
    picture = nmrf.read_image(tmp_path / "map.png")
    assert picture.shape[0] > 300 and picture.std() > 20

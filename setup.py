"""Builds the Python package by CMake: the module, the libraries beside it and the model."""

import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).parent.resolve()


def version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(nmrf VERSION ([0-9.]+)", text).group(1)


def pybind11_folder():
    """CMake finds the system's pybind11 by itself, but not one that pip installed."""
    try:
        import pybind11
    except ImportError:
        return []
    return ["-Dpybind11_DIR=" + pybind11.get_cmake_dir()]


class CMakeBuild(build_ext):
    def build_extension(self, ext):
        build = pathlib.Path(self.build_temp).resolve()
        target = pathlib.Path(self.build_lib).resolve()
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        off = ["-DNMRF_BUILD_%s=OFF" % part for part in ("EVAL", "SYNTH", "EXPORT", "TRAIN", "TESTS")]
        configure = ["cmake", "-S", ROOT, "-B", build, *generator, *off, *pybind11_folder()]
        configure += ["-DCMAKE_BUILD_TYPE=Release", "-DNMRF_BUILD_PYTHON=ON"]
        configure += ["-DNMRF_PYTHON_WHEEL=ON", "-DPython_EXECUTABLE=" + sys.executable]
        subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", build, "--target", "nmrf_python"], check=True)
        shutil.rmtree(target / "nmrf", ignore_errors=True)
        install = ["cmake", "--install", build, "--component", "wheel", "--strip"]
        subprocess.run([*install, "--prefix", target], check=True)
        # A wheel has no symbolic links: libnmrf.so.0 -> libnmrf.so.0.2.0 would be stored twice.
        for link in (target / "nmrf").iterdir():
            if link.is_symlink():
                link.resolve().replace(link)


setup(
    version=version(),
    ext_modules=[Extension("nmrf._nmrf", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)

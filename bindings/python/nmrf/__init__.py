"""Dense stereo matching on a CPU by a Neural Markov Random Field.

    import nmrf

    matcher = nmrf.Matcher()                  # the bundled model; or a path
    d = matcher.match(left, right)            # uint8 or uint16, HxW, HxWx3 or HxWx4, RGB
    d.map, d.confidence, d.mask               # NumPy arrays, no copies

    calibration = nmrf.read_calibration("calib.txt")
    depth = nmrf.depth(d, calibration)        # metres
    nmrf.point_cloud(d, left, calibration).write_ply("cloud.ply")

Wrong arrays raise ValueError. Warnings go to logging.getLogger("nmrf").
"""

import os as _os
import sys as _sys

from ._errors import Cancelled, DeviceError, Error, InputError, ModelError, UsageError
from ._nmrf import (
    FILLED,
    OCCLUDED,
    OUT_OF_VIEW,
    Alignment,
    Calibration,
    Camera,
    Disparity,
    Matcher,
    PairCheck,
    PointCloud,
    Rectifier,
    Rig,
    Sequence,
    __version__,
    aligned,
    check_pair,
    depth,
    depth_sigma,
    point_cloud,
    read_calibration,
    read_disparity,
    read_image,
    read_rig,
    write_depth,
    write_disparity,
    write_image,
)

__all__ = [
    "FILLED",
    "OCCLUDED",
    "OUT_OF_VIEW",
    "Alignment",
    "Calibration",
    "Camera",
    "Cancelled",
    "DeviceError",
    "Disparity",
    "Error",
    "InputError",
    "Matcher",
    "ModelError",
    "PairCheck",
    "PointCloud",
    "Rectifier",
    "Rig",
    "Sequence",
    "UsageError",
    "__version__",
    "aligned",
    "bundled_model",
    "check_pair",
    "depth",
    "depth_sigma",
    "point_cloud",
    "read_calibration",
    "read_disparity",
    "read_image",
    "read_rig",
    "write_depth",
    "write_disparity",
    "write_image",
]


def bundled_model() -> str:
    """The path of the model that Matcher() loads: $NMRF_MODEL, else the one that comes with nmrf."""
    named = _os.environ.get("NMRF_MODEL")
    if named:
        return named
    own = _os.path.dirname(_os.path.abspath(__file__))
    folders = [_os.path.join(own, "models")]  # of a wheel
    # Beside an installation below any prefix, or a build tree.
    folder = own
    while _os.path.dirname(folder) != folder:
        folder = _os.path.dirname(folder)
        folders.append(_os.path.join(folder, "share", "nmrf", "models"))
    folders.append(_os.path.join(_sys.prefix, "share", "nmrf", "models"))
    for candidate in folders:
        path = _os.path.join(candidate, "nmrf-fast.safetensors")
        if _os.path.exists(path):
            return path
    raise ModelError(
        "no model: give a path, or set NMRF_MODEL. The model that comes with nmrf was not found "
        "beside " + own
    )


for _item in list(vars().values()):
    if getattr(_item, "__module__", None) == "nmrf._nmrf" and isinstance(_item, type):
        _item.__module__ = "nmrf"
del _item

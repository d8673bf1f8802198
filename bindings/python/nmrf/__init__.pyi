"""Types of the package; the docstrings of the module explain more."""

from os import PathLike
from typing import Any, Callable, List, Literal, Optional, Sequence as _Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str
OCCLUDED: int
OUT_OF_VIEW: int
FILLED: int

_Path = Union[str, PathLike[str]]
_View = Literal["left", "right"]
_Floats = NDArray[np.float32]
_Bytes = NDArray[np.uint8]

class Error(Exception): ...
class UsageError(Error, ValueError): ...
class InputError(Error, ValueError): ...
class ModelError(Error, RuntimeError): ...
class DeviceError(Error, MemoryError): ...
class Cancelled(Error): ...

class Disparity:
    def __init__(
        self,
        map: ArrayLike,
        confidence: Optional[ArrayLike] = None,
        mask: Optional[ArrayLike] = None,
    ) -> None: ...
    @property
    def map(self) -> _Floats: ...
    @property
    def confidence(self) -> Optional[_Floats]: ...
    @property
    def mask(self) -> Optional[_Bytes]: ...
    @property
    def shape(self) -> Tuple[int, int]: ...
    def check_consistency(
        self, other: Disparity, view: _View = "left", threshold: float = 1.0
    ) -> None: ...

class Matcher:
    def __init__(
        self,
        model: Union[_Path, bytes, None] = None,
        *,
        threads: Optional[int] = None,
        max_disp: Optional[int] = None,
        set: _Sequence[str] = ...,
    ) -> None: ...
    def match(
        self,
        left: ArrayLike,
        right: ArrayLike,
        *,
        bgr: bool = False,
        view: _View = "left",
        scale: Optional[float] = None,
        full_size: bool = False,
        progress: Optional[Callable[[float, str], Any]] = None,
    ) -> Disparity: ...
    @property
    def max_disp(self) -> int: ...
    @property
    def threads(self) -> int: ...
    def release_idle(self) -> None: ...

class Sequence:
    def __init__(
        self,
        matcher: Matcher,
        *,
        view: _View = "left",
        scale: Optional[float] = None,
        full_size: bool = False,
    ) -> None: ...
    def next(self, left: ArrayLike, right: ArrayLike, *, bgr: bool = False) -> Disparity: ...
    def restart(self) -> None: ...

class PairCheck:
    @property
    def warnings(self) -> List[str]: ...
    @property
    def matches(self) -> int: ...
    @property
    def conclusive(self) -> bool: ...
    @property
    def vertical_offset(self) -> float: ...
    @property
    def vertical_rms(self) -> float: ...
    @property
    def horizontal(self) -> float: ...
    @property
    def swapped(self) -> bool: ...
    @property
    def not_rectified(self) -> bool: ...
    @property
    def identical(self) -> bool: ...

class Calibration:
    fx: float
    fy: float
    cx: float
    cy: float
    doffs: float
    baseline: float
    width: int
    height: int
    def __init__(
        self,
        fx: float,
        baseline: float,
        cx: float,
        cy: float,
        *,
        fy: Optional[float] = None,
        doffs: float = 0.0,
        width: int = 0,
        height: int = 0,
    ) -> None: ...
    @property
    def source(self) -> str: ...
    def scaled(self, sx: float, sy: float) -> Calibration: ...

class PointCloud:
    @property
    def points(self) -> _Floats: ...
    @property
    def colors(self) -> _Bytes: ...
    def write_ply(self, path: _Path) -> None: ...
    def __len__(self) -> int: ...

def bundled_model() -> str: ...
def check_pair(left: ArrayLike, right: ArrayLike, *, bgr: bool = False) -> PairCheck: ...
def read_image(path: _Path) -> NDArray[Any]: ...
def write_image(path: _Path, image: ArrayLike, *, bgr: bool = False) -> None: ...
def read_disparity(path: _Path, *, divisor: float = 256.0) -> _Floats: ...
def write_disparity(path: _Path, disparity: Union[Disparity, ArrayLike]) -> None: ...
def write_depth(path: _Path, depth: ArrayLike) -> None: ...
def read_calibration(path: _Path) -> Calibration: ...
def depth(
    disparity: Union[Disparity, ArrayLike], calibration: Calibration, *, filled: bool = False
) -> _Floats: ...
def point_cloud(
    disparity: Union[Disparity, ArrayLike],
    image: ArrayLike,
    calibration: Calibration,
    *,
    bgr: bool = False,
    z_near: float = 0.0,
    z_far: float = ...,
    edge: float = 0.0,
    stride: int = 1,
    occluded: bool = False,
    filled: bool = False,
    min_confidence: float = 0.0,
) -> PointCloud: ...

"""What the library raises; see nmrf."""


class Error(Exception):
    """Base of all errors of the library. The message says what to try."""


class UsageError(Error, ValueError):
    """Arguments that contradict each other or the documentation."""


class InputError(Error, ValueError):
    """An image, calibration or other input that cannot be used."""


class ModelError(Error, RuntimeError):
    """A weight file or model options that cannot be used."""


class DeviceError(Error, MemoryError):
    """Not enough memory, or no such device."""


class Cancelled(Error):
    """The progress function returned False."""


for _class in (Error, UsageError, InputError, ModelError, DeviceError, Cancelled):
    _class.__module__ = "nmrf"
del _class

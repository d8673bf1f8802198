"""Matches the bundled pair and draws the result, cell by cell (Jupyter, VS Code and Spyder run the
cells one by one). As a script:

    python3 show.py [picture.png]
"""

# %% Load the model once, and a pair. Any uint8 or uint16 array will do; images read by OpenCV need
# bgr=True in match().
import pathlib
import sys

import matplotlib.pyplot as plt
import numpy as np

import nmrf

folder = pathlib.Path(__file__).resolve().parents[1] / "pair"
left = nmrf.read_image(folder / "left.png")
right = nmrf.read_image(folder / "right.png")
matcher = nmrf.Matcher()

# %% Does it look like a rectified pair?
for warning in nmrf.check_pair(left, right).warnings:
    print("warning:", warning)

# %% Match. The arrays share the memory of the result.
d = matcher.match(left, right)
filled = (d.mask & nmrf.FILLED) != 0
print(f"{d.map.shape[1]}x{d.map.shape[0]}, median {np.median(d.map):.1f} px, "
      f"{100 * filled.mean():.1f} % filled in")

# %% From pixels to metres.
calibration = nmrf.read_calibration(folder / "calib.txt")
depth = nmrf.depth(d, calibration)
cloud = nmrf.point_cloud(d, left, calibration, edge=2)
print(f"{len(cloud)} points, {np.percentile(cloud.points[:, 2], 50):.2f} m in the median")

# %% Draw.
figure, axes = plt.subplots(2, 2, figsize=(11, 8), constrained_layout=True)
panels = [
    ("left view", left, None),
    ("disparity, px", d.map, "turbo"),
    ("confidence", d.confidence, "gray"),
    ("depth, m", np.where(np.isfinite(depth), depth, np.nan), "viridis_r"),
]
for axis, (title, values, colors) in zip(axes.flat, panels):
    image = axis.imshow(values, cmap=colors)
    axis.set_title(title)
    axis.set_axis_off()
    if colors:
        figure.colorbar(image, ax=axis, shrink=0.8)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=100)
else:
    plt.show()

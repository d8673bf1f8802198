import subprocess

import numpy as np
import pytest

import nmrf
from conftest import PAIR


def test_images(tmp_path, pair):
    left = pair[0]
    assert left.dtype == np.uint8 and left.shape == (432, 576, 3)
    nmrf.write_image(tmp_path / "a.png", left)
    assert np.array_equal(nmrf.read_image(tmp_path / "a.png"), left)
    nmrf.write_image(str(tmp_path / "b.png"), left[..., ::-1], bgr=True)
    assert np.array_equal(nmrf.read_image(str(tmp_path / "b.png")), left)
    deep = np.arange(20 * 30, dtype=np.uint16).reshape(20, 30) * 100
    nmrf.write_image(tmp_path / "deep.png", deep)
    back = nmrf.read_image(tmp_path / "deep.png")
    assert back.dtype == np.uint16 and np.array_equal(back, deep)
    with pytest.raises(ValueError, match="xyz"):
        nmrf.write_image(tmp_path / "a.xyz", left)
    with pytest.raises(FileNotFoundError, match="nowhere.png"):
        nmrf.read_image("/nowhere.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match="broken.png"):
        nmrf.read_image(tmp_path / "broken.png")


@pytest.mark.parametrize("extension", ["pfm", "npy", "tiff", "png"])
def test_disparity_files(tmp_path, extension):
    map = np.linspace(1, 60, 31 * 17).reshape(17, 31).astype(np.float32)
    map[3, 4] = np.inf
    path = tmp_path / ("map." + extension)
    nmrf.write_disparity(path, map)
    back = nmrf.read_disparity(path)
    assert back.dtype == np.float32 and np.isinf(back[3, 4])
    known = np.isfinite(map)
    assert np.max(np.abs(back[known] - map[known])) <= (1 / 256 if extension == "png" else 0)
    nmrf.write_disparity(path, nmrf.Disparity(map[:, ::2]))
    assert nmrf.read_disparity(path).shape == (17, 16)
    if extension == "png":
        nmrf.write_disparity(path, map)
        half = nmrf.read_disparity(path, divisor=128)
        assert np.allclose(half[known], 2 * back[known])


def test_bad_maps(tmp_path):
    for wrong in (np.zeros((3, 4, 2)), np.zeros(5), np.array([["a"]]), None):
        with pytest.raises(ValueError, match="the disparity map"):
            nmrf.write_disparity(tmp_path / "x.pfm", wrong)
    with pytest.raises(ValueError, match="differ in size"):
        nmrf.Disparity(np.ones((4, 5)), confidence=np.ones((4, 4)))
    with pytest.raises(FileNotFoundError):
        nmrf.read_disparity(tmp_path / "missing.pfm")
    d = nmrf.Disparity(np.ones((4, 5)))
    assert d.confidence is None and d.mask is None and d.shape == (4, 5)


def test_depth(tmp_path, pair):
    calibration = nmrf.read_calibration(PAIR / "calib.txt")
    assert (calibration.width, calibration.height) == (576, 432)
    truth = nmrf.read_disparity(PAIR / "disparity.png")
    depth = nmrf.depth(truth, calibration)
    known = np.isfinite(truth)
    expected = calibration.baseline * calibration.fx / (truth[known] + calibration.doffs)
    assert np.allclose(depth[known], expected, rtol=1e-5) and np.all(np.isinf(depth[~known]))
    half = calibration.scaled(0.5, 0.5)
    assert half.fx == calibration.fx / 2 and half.width == 288

    # What was filled in is no measurement.
    mask = np.zeros(truth.shape, np.uint8)
    mask[100] = nmrf.FILLED
    d = nmrf.Disparity(truth, mask=mask)
    assert np.all(np.isinf(nmrf.depth(d, calibration)[100]))
    assert np.any(np.isfinite(nmrf.depth(d, calibration, filled=True)[100]))
    nmrf.write_depth(tmp_path / "depth.npy", depth)
    assert np.array_equal(np.load(tmp_path / "depth.npy")[known], depth[known])

    for bad in ({"fx": -1}, {"baseline": 0}, {"fx": float("nan")}):
        with pytest.raises(ValueError):
            nmrf.Calibration(**{"fx": 700, "baseline": 0.1, "cx": 300, "cy": 200, **bad})
    with pytest.raises(ValueError):
        nmrf.read_calibration(PAIR / "left.png")
    with pytest.raises(FileNotFoundError):
        nmrf.read_calibration("/nowhere.txt")


def test_point_cloud(tmp_path, pair):
    calibration = nmrf.Calibration(fx=700, baseline=0.1, cx=287.5, cy=215.5)
    assert calibration.fy == 700
    map = np.full((432, 576), 35, np.float32)
    map[0] = np.inf
    cloud = nmrf.point_cloud(map, pair[0], calibration)
    assert len(cloud) == 431 * 576
    assert cloud.points.shape == (len(cloud), 3) and cloud.colors.shape == (len(cloud), 3)
    assert np.allclose(cloud.points[:, 2], 2.0)
    assert np.allclose(cloud.points[0], [-287.5 * 2 / 700, -214.5 * 2 / 700, 2])
    assert np.array_equal(cloud.colors.reshape(431, 576, 3), pair[0][1:])
    flipped = nmrf.point_cloud(map, pair[0][..., ::-1], calibration, bgr=True, stride=4)
    assert 0 < len(flipped) < len(cloud) / 15
    assert cloud.normals is None
    normals = nmrf.point_cloud(map, pair[0], calibration, normals=True).normals
    assert normals.shape == cloud.points.shape
    assert np.mean(np.abs(normals - [0, 0, -1]).max(axis=1) < 1e-3) > 0.9  # a wall
    points = cloud.points
    cloud.write_ply(tmp_path / "cloud.ply")
    assert (tmp_path / "cloud.ply").stat().st_size > 15 * len(cloud)
    del cloud
    assert np.allclose(points[:, 2], 2.0)  # the arrays keep the points
    assert len(nmrf.point_cloud(map, pair[0], calibration, z_far=1)) == 0
    assert nmrf.point_cloud(map, pair[0], calibration, z_far=1).points.shape == (0, 3)
    with pytest.raises(ValueError):
        nmrf.point_cloud(map, pair[0][:100], calibration)
    with pytest.raises(ValueError, match="onfidence"):
        nmrf.point_cloud(map, pair[0], calibration, min_confidence=3)


def rig_file(path):
    """A crooked rig of two lenses for the size of the bundled pair, as OpenCV writes it."""
    turn = 0.03
    rotation = [[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]]
    entries = {
        "M1": [[420, 0, 290], [0, 421, 214], [0, 0, 1]],
        "D1": [[-0.25, 0.08, 0.001, -0.0005, 0]],
        "M2": [[424, 0, 286], [0, 425, 217], [0, 0, 1]],
        "D2": [[-0.2, 0.05, 0, 0.001, 0]],
        "R": rotation,
        "T": [[-0.12], [0.002], [0.001]],
    }
    text = "%YAML:1.0\nimage_width: 576\nimage_height: 432\n"
    for name, rows in entries.items():
        data = ", ".join(repr(float(value)) for row in rows for value in row)
        text += f"{name}: !!opencv-matrix\n   rows: {len(rows)}\n   cols: {len(rows[0])}\n"
        text += f"   dt: d\n   data: [ {data} ]\n"
    path.write_text(text)
    return np.array(rotation)


def test_rectification(command, pair, tmp_path):
    rotation = rig_file(tmp_path / "stereo.yml")
    rig = nmrf.read_rig(tmp_path / "stereo.yml")
    assert (rig.left.width, rig.left.height) == (576, 432) and not rig.left.fisheye
    assert rig.left.fx == 420 and rig.right.distortion == [-0.2, 0.05, 0, 0.001, 0]
    assert np.allclose(rig.rotation, rotation) and np.allclose(rig.translation, [-0.12, 0.002, 0.001])
    rectifier = nmrf.Rectifier(rig)
    left, right = rectifier.rectify(*pair)
    assert left.shape == right.shape == (432, 576, 3) and left.dtype == np.uint8

    # Both cameras look the same way afterwards, and the baseline is along x.
    assert np.allclose(rectifier.r2 @ rotation, rectifier.r1)
    assert np.allclose((rectifier.r2 @ rig.translation)[1:], 0, atol=1e-12)
    calibration = rectifier.calibration
    assert calibration.baseline == pytest.approx(np.linalg.norm(rig.translation))
    assert rectifier.p1[0, 0] == calibration.fx and rectifier.p1[1, 2] == rectifier.p2[1, 2]
    assert rectifier.q.shape == (4, 4)
    rectifier.write_calibration(tmp_path / "rectified.yml")
    assert nmrf.read_calibration(tmp_path / "rectified.yml").fx == pytest.approx(calibration.fx)

    # As the command does it; numbers instead of a file; BGR.
    subprocess.run(
        [command, "rectify", PAIR / "left.png", PAIR / "right.png", "-q", "-o", tmp_path / "out"]
        + ["--calib", tmp_path / "stereo.yml"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert np.array_equal(left, nmrf.read_image(next((tmp_path / "out" / "left").iterdir())))
    cameras = [
        nmrf.Camera(fx=c.fx, fy=c.fy, cx=c.cx, cy=c.cy, distortion=c.distortion, width=576, height=432)
        for c in (rig.left, rig.right)
    ]
    same = nmrf.Rectifier(nmrf.Rig(*cameras, rotation, rig.translation))
    reverse = same.rectify(pair[0][..., ::-1], pair[1][..., ::-1], bgr=True)
    assert np.array_equal(reverse[1][..., ::-1], right)
    wide = nmrf.Rectifier(rig, alpha=1, width=640, height=480)
    assert wide.rectify(*pair)[0].shape == (480, 640, 3) and wide.calibration.width == 640

    with pytest.raises(ValueError, match="size"):
        rectifier.rectify(pair[0][:100], pair[1][:100])
    with pytest.raises(ValueError, match="9 numbers"):
        nmrf.Rig(*cameras, np.eye(2), rig.translation)
    with pytest.raises(ValueError):
        nmrf.Rig(*cameras, 2 * np.eye(3), rig.translation)  # no rotation
    with pytest.raises(ValueError):
        nmrf.Rectifier(rig, alpha=-3)
    with pytest.raises(ValueError):
        nmrf.read_rig(PAIR / "left.png")
    with pytest.raises(FileNotFoundError):
        nmrf.read_rig("/nowhere.yml")

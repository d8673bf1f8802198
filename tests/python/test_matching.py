import logging
import os
import signal
import subprocess
import threading

import numpy as np
import pytest

import nmrf
from conftest import PAIR, SOURCE


def test_same_as_command(command, pair, tmp_path):
    subprocess.run(
        [command, "match", PAIR / "left.png", PAIR / "right.png", "--scale", "1", "-q"]
        + ["--model", nmrf.bundled_model(), "-o", tmp_path / "map.pfm", "--confidence", "--mask"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    d = nmrf.Matcher().match(*pair, scale=1)
    assert np.array_equal(d.map, nmrf.read_disparity(tmp_path / "map.pfm"))
    assert np.array_equal(d.mask, nmrf.read_image(tmp_path / "map_mask.png"))
    confidence = np.load(tmp_path / "map_confidence.npy")
    assert np.array_equal(d.confidence, confidence)


def test_finds_the_wall(matcher, small):
    d = matcher.match(*small, scale=1)
    assert d.shape == (43, 67) and d.map.dtype == np.float32
    assert d.confidence.dtype == np.float32 and d.mask.dtype == np.uint8
    assert np.mean(np.abs(d.map - 5) < 1) > 0.6
    assert np.all((d.confidence >= 0) & (d.confidence <= 1))


def test_arrays_share_memory_and_outlive_the_result(matcher, small):
    d = matcher.match(*small, scale=1)
    assert np.shares_memory(d.map, d.map) and d.map.base is not None
    d.map[0, 0] = 1234
    assert d.map[0, 0] == 1234
    kept = d.map
    expected = kept.copy()
    del d
    for _ in range(3):
        matcher.match(*small, scale=1)
    assert np.array_equal(kept, expected)


def layouts(image):
    """The same pixels in other memory layouts, and whether they are BGR."""
    wide = np.zeros((image.shape[0], image.shape[1] + 5, 4), np.uint8)
    wide[:, 2:-3, :3] = image
    yield "alpha, strided", wide[:, 2:-3], False
    yield "alpha dropped by slicing", wide[:, 2:-3, :3], False
    yield "BGR", np.ascontiguousarray(image[..., ::-1]), True
    yield "BGR by a negative stride", image[..., ::-1], True
    yield "bottom up", image[::-1].copy()[::-1], False
    yield "right to left", image[:, ::-1].copy()[:, ::-1], False
    yield "Fortran order", np.asfortranarray(image), False
    yield "16 bit", image.astype(np.uint16) * 257, False
    yield "big-endian", (image.astype(np.uint16) * 257).astype(">u2"), False
    odd = np.zeros(image.size * 2 + 1, np.uint8)
    unaligned = odd[1:].view(np.uint16).reshape(image.shape)
    unaligned[:] = image.astype(np.uint16) * 257
    yield "unaligned 16 bit", unaligned, False
    frozen = image.copy()
    frozen.flags.writeable = False
    yield "read only", frozen, False


def test_layouts(matcher, small):
    expected = matcher.match(*small, scale=1).map
    for (name, left, bgr), (_, right, _) in zip(layouts(small[0]), layouts(small[1])):
        got = matcher.match(left, right, bgr=bgr, scale=1).map
        assert np.array_equal(got, expected), name


def test_grey(matcher, small):
    left, right = (image[..., 1] for image in small)  # strided
    expected = matcher.match(*(np.repeat(g[..., None], 3, axis=2) for g in (left, right)), scale=1)
    assert np.array_equal(matcher.match(left, right, scale=1).map, expected.map)
    got = matcher.match(left[..., None], right[..., None], scale=1)
    assert np.array_equal(got.map, expected.map)
    row = np.broadcast_to(left[:1], left.shape)  # stride 0
    flat = matcher.match(row, row, scale=1)
    assert np.array_equal(flat.map, matcher.match(row.copy(), row.copy(), scale=1).map)


@pytest.mark.parametrize(
    "left, right, words",
    [
        (np.zeros((40, 50, 3), np.uint8), np.zeros((40, 60, 3), np.uint8), "50x40 but the right one is 60x40"),
        (np.zeros((40, 50, 7), np.uint8), np.zeros((40, 50, 7), np.uint8), "7 channels"),
        (np.zeros((40, 50, 3)), np.zeros((40, 50, 3)), "the left image has the type float64"),
        (np.zeros((40, 50, 3), np.uint8), np.zeros((40, 50), np.int16), "the right image has the type int16"),
        (np.zeros(40, np.uint8), np.zeros(40, np.uint8), r"the shape \(40,\)"),
        (np.zeros((0, 50, 3), np.uint8), np.zeros((0, 50, 3), np.uint8), "empty"),
        (np.zeros((20, 50, 3), np.uint8), np.zeros((20, 50, 3), np.uint8), "at least 32x32"),
        ("left.png", "right.png", "the left image"),
        (None, None, "the left image"),
    ],
)
def test_bad_pairs(matcher, left, right, words):
    with pytest.raises(ValueError, match=words):
        matcher.match(left, right, scale=1)


def test_bad_options(matcher, small):
    with pytest.raises(ValueError, match="scale is -1"):
        matcher.match(*small, scale=-1)
    with pytest.raises(ValueError, match="expected 'left' or 'right'"):
        matcher.match(*small, view="up")
    with pytest.raises(ValueError, match="threads is 0"):
        nmrf.Matcher(threads=0)
    with pytest.raises(nmrf.ModelError, match="/nowhere/model"):
        nmrf.Matcher("/nowhere/model.safetensors")
    with pytest.raises(nmrf.Error):
        nmrf.Matcher(b"no model")
    with pytest.raises(TypeError):
        nmrf.Matcher(3)


def test_models(small, monkeypatch):
    path = nmrf.bundled_model()
    with open(path, "rb") as file:
        from_bytes = nmrf.Matcher(file.read(), threads=1, max_disp=64)
    from_path = nmrf.Matcher(path, threads=2, max_disp=64)
    assert from_path.threads == 2 and from_path.max_disp == 64
    expected = from_path.match(*small, scale=1).map
    assert np.array_equal(from_bytes.match(*small, scale=1).map, expected)
    changed = nmrf.Matcher(path, max_disp=64, set=["refinement.count=0"])
    assert not np.array_equal(changed.match(*small, scale=1).map, expected)
    monkeypatch.setenv("NMRF_MODEL", "/nowhere/else.safetensors")
    with pytest.raises(nmrf.ModelError, match="/nowhere/else"):
        nmrf.Matcher()


def test_precision(small):
    assert nmrf.Matcher("formula:fast", threads=1).precision in ("float32", "int8")
    assert nmrf.Matcher("formula:fast", threads=1, precision="float32").precision == "float32"
    coarse = nmrf.Matcher(threads=2, max_disp=64, precision="int8")
    assert coarse.precision == "int8"
    assert np.mean(np.abs(coarse.match(*small, scale=1).map - 5) < 1) > 0.6
    with pytest.raises(ValueError, match="precision is 'int4'"):
        nmrf.Matcher(precision="int4")


def test_error_model(matcher, small):
    d = matcher.match(*small, scale=1)
    assert d.expected_error.shape == d.shape and np.all(d.expected_error >= 0)
    assert np.all(d.confidence3 >= d.confidence) and np.all(d.confidence3 <= 1)
    assert np.all((d.posterior >= 0) & (d.posterior <= 1))
    assert np.shares_memory(d.expected_error, d.expected_error)
    calibration = nmrf.Calibration(fx=700, baseline=0.1, cx=33, cy=21)
    depth = nmrf.depth(d, calibration, filled=True)
    sigma = nmrf.depth_sigma(d, calibration, filled=True)
    assert np.allclose(sigma, depth * d.expected_error / d.map, rtol=1e-3)
    plain = nmrf.Matcher("formula:fast", threads=1).match(*small, scale=1)
    assert plain.expected_error is None and plain.confidence3 is None
    with pytest.raises(ValueError, match="expected error"):
        nmrf.depth_sigma(plain, calibration)


def test_alignment(command, matcher, pair, tmp_path):
    assert not nmrf.Alignment() and nmrf.Alignment(turn=0.01)
    left, right = pair
    assert not nmrf.check_pair(*pair).correctable
    wrong = nmrf.Alignment(offset=-1.5, turn=-0.004)
    low = nmrf.aligned(right, wrong)
    found = nmrf.check_pair(left, low)
    assert found.correctable and found.alignment_error < 0.25
    # To a fraction of a pixel, at the corners too.
    assert abs(found.alignment.offset - 1.5) < 0.3 and abs(found.alignment.turn - 0.004) < 1.5e-3
    assert found.alignment.vertical_rms(576, 432) == pytest.approx(wrong.vertical_rms(576, 432), rel=0.25)

    good = matcher.match(left, right, scale=0.5)
    bad = matcher.match(left, low, scale=0.5)
    corrected = matcher.match(left, low, scale=0.5, align=True)
    assert not bad.alignment and corrected.alignment.offset == found.alignment.offset
    known = matcher.match(left, low, scale=0.5, alignment=found.alignment)
    assert np.array_equal(known.map, corrected.map)
    off = [np.mean(np.abs(d.map - good.map) > 0.5) for d in (bad, corrected)]
    assert off[1] < 0.5 * off[0]
    assert np.array_equal(matcher.match(left, right, scale=0.5, align=True).map, good.map)

    # The command corrects by default.
    nmrf.write_image(tmp_path / "low.png", low)
    subprocess.run(
        [command, "match", PAIR / "left.png", tmp_path / "low.png", "--scale", "0.5", "-q"]
        + ["--model", nmrf.bundled_model(), "--max-disp", "64", "-o", tmp_path / "map.pfm"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert np.array_equal(corrected.map, nmrf.read_disparity(tmp_path / "map.pfm"))

    reverse = nmrf.aligned(right[..., ::-1], wrong, bgr=True)
    assert np.array_equal(reverse[..., ::-1], low)
    with pytest.raises(ValueError, match="not finite"):
        matcher.match(left, low, scale=0.5, alignment=nmrf.Alignment(turn=float("nan")))


def test_views(matcher, small):
    left = matcher.match(*small, scale=1)
    right = matcher.match(*small, scale=1, view="right")
    left.check_consistency(right)
    assert left.mask[20, 0] & nmrf.OUT_OF_VIEW
    assert left.mask[20, 40] & (nmrf.OUT_OF_VIEW | nmrf.OCCLUDED) == 0
    twice = matcher.match(*small, scale=2)
    assert twice.shape == (86, 134)
    assert matcher.match(*small, scale=2, full_size=True).shape == (43, 67)
    with pytest.raises(ValueError):
        left.check_consistency(twice)


def test_progress(matcher, small):
    calls = []
    matcher.match(*small, scale=1, progress=lambda done, stage: calls.append((done, stage)))
    assert calls == sorted(calls, key=lambda call: call[0]) and calls[-1] == (1.0, "done")
    with pytest.raises(nmrf.Cancelled):
        matcher.match(*small, scale=1, progress=lambda done, stage: False)

    def broken(done, stage):
        raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        matcher.match(*small, scale=1, progress=broken)
    assert matcher.match(*small, scale=1).shape == (43, 67)


def test_interrupt(matcher, small):
    def interrupt(done, stage):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        matcher.match(*small, scale=1, progress=interrupt)


def test_threads_run_beside_each_other(matcher, small):
    """Python goes on while a match runs, and several matches give equal maps."""
    expected = matcher.match(*small, scale=1).map
    inside, seen, results = threading.Event(), [], []
    release = threading.Event()

    def wait_in_match(done, stage):
        inside.set()
        seen.append(release.wait(60))

    def one():
        results.append(matcher.match(*small, scale=1, progress=wait_in_match).map)

    workers = [threading.Thread(target=one) for _ in range(4)]
    for worker in workers:
        worker.start()
    assert inside.wait(60)  # a match is on its way, and this thread runs
    release.set()
    for worker in workers:
        worker.join()
    assert len(results) == 4 and all(seen)
    assert all(np.array_equal(result, expected) for result in results)


def test_gil_is_released(pair):
    """A thread counts while a match runs without callbacks on another."""
    matcher = nmrf.Matcher(threads=1)
    done = threading.Event()

    def match():
        matcher.match(*pair, scale=1)
        done.set()

    worker = threading.Thread(target=match)
    worker.start()
    count = 0
    while not done.wait(0.002):
        count += 1
    worker.join()
    assert count > 5


def test_sequence(matcher, small):
    sequence = nmrf.Sequence(matcher, scale=1)
    first, second = sequence.next(*small), sequence.next(*small)
    assert np.array_equal(first.map, matcher.match(*small, scale=1).map)
    # The second frame is guided by the first.
    assert np.median(np.abs(first.map - second.map)) < 0.2
    assert not np.shares_memory(first.map, second.map)
    assert sequence.continued
    sequence.restart()
    assert not sequence.next(*small).alignment and not sequence.continued
    sequence.restart()
    reverse = sequence.next(*(image[..., ::-1] for image in small), bgr=True)
    assert np.array_equal(reverse.map, first.map)
    # The sequence keeps its matcher alive.
    lonely = nmrf.Sequence(nmrf.Matcher(threads=1, max_disp=64))
    assert lonely.next(*small).shape == (43, 67)
    with pytest.raises(TypeError):
        nmrf.Sequence(None)


def test_log(caplog):
    with caplog.at_level(logging.WARNING, logger="nmrf"):
        nmrf.Matcher("formula:fast", threads=1)
    assert "untrained" in caplog.text


def test_check_pair(pair):
    good = nmrf.check_pair(*pair)
    assert good.conclusive and not good.warnings and good.horizontal > 0 and good.matches > 40
    swapped = nmrf.check_pair(pair[1], pair[0])
    assert swapped.swapped and len(swapped.warnings) == 1
    assert nmrf.check_pair(pair[0], pair[0]).identical


def test_names_and_docs():
    for name in nmrf.__all__:
        assert hasattr(nmrf, name), name
        if callable(getattr(nmrf, name)):
            assert getattr(nmrf, name).__doc__, name
    assert nmrf.__version__ in (SOURCE / "CMakeLists.txt").read_text()

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/file.h"
#include "core/rng.h"
#include "io/maps.h"
#include "nmrf/geometry.h"
#include "nmrf/log.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

const char* const kMiddlebury =
    "cam0=[999.421 0 294.182; 0 999.421 252.932; 0 0 1]\n"
    "cam1=[999.421 0 326.96; 0 999.421 252.932; 0 0 1]\n"
    "doffs=32.778\nbaseline=193.001\nwidth=741\nheight=497\nndisp=70\nisint=0\nvmin=7\nvmax=65\n";

const char* const kKittiRaw =
    "calib_time: 09-Jan-2012 13:57:47\n"
    "corner_dist: 9.950000e-02\n"
    "S_rect_02: 1.242000e+03 3.750000e+02\n"
    "P_rect_00: 7.215377e+02 0 6.095593e+02 0 0 7.215377e+02 1.728540e+02 0 0 0 1 0\n"
    "P_rect_02: 7.215377e+02 0.000000e+00 6.095593e+02 4.485728e+01 0.000000e+00 7.215377e+02 "
    "1.728540e+02 2.163791e-01 0.000000e+00 0.000000e+00 1.000000e+00 2.745884e-03\n"
    "P_rect_03: 7.215377e+02 0.000000e+00 6.095593e+02 -3.395242e+02 0.000000e+00 7.215377e+02 "
    "1.728540e+02 2.199936e+00 0.000000e+00 0.000000e+00 1.000000e+00 2.729905e-03\n";

const char* const kKittiObject =
    "P0: 700 0 600 0 0 700 180 0 0 0 1 0\n"
    "P1: 700 0 600 -350 0 700 180 0 0 0 1 0\n"
    "P2: 700 0 600 42 0 710 180 0 0 0 1 0\n"
    "P3: 700 0 603.5 -308 0 710 180 0 0 0 1 0\n"
    "R0_rect: 1 0 0 0 1 0 0 0 1\n";

const char* const kJson =
    R"({"comment": "x", "width": 640, "height": 480, "fx": 500.5, "fy": 501, "cx0": 320, "cx1": 325,
        "cy": 240, "baseline_meters": 0.075, "depth_range": [0.3, 20]})";

const char* const kK = "754.668 0.0 489.379 0.0 754.5 265.161 0.0 0.0 1.0\n0.063\n";

class CalibrationTest : public ::testing::Test {
 protected:
  Calibration read(const std::string& content, const std::string& name = "calib.txt") {
    test::put(folder_ / name, content);
    return read_calibration(folder_ / name);
  }

  std::string refused(const std::string& content, const std::string& name = "bad.txt") {
    const std::string message = error_of(ErrorKind::kInput, [&] { read(content, name); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    return message;
  }

  test::TempFolder folder_;
};

// A rig as OpenCV's stereoRectify gives it: cx differs between the views, so doffs is not 0.
struct Rig {
  double f = 600, cx_left = 330, cx_right = 310, cy = 250, baseline = 0.12;
  bool vertical = false;  // one camera above the other

  std::vector<double> q() const {
    return {1,
            0,
            0,
            -cx_left,
            0,
            1,
            0,
            -cy,
            0,
            0,
            0,
            f,
            0,
            0,
            1 / baseline,
            (cx_right - cx_left) / baseline};
  }
  std::vector<double> p1() const { return {f, 0, cx_left, 0, 0, f, cy, 0, 0, 0, 1, 0}; }
  std::vector<double> p2() const {
    return {f, 0, cx_right, vertical ? 0 : -f * baseline, 0, f, cy, vertical ? -f * baseline : 0, 0,
            0, 1, 0};
  }
};

// A matrix in the words of OpenCV's FileStorage.
std::string matrix_text(char form, const std::string& key, const std::vector<double>& values) {
  const std::size_t rows = values.size() == 16 ? 4 : 3, cols = values.size() / rows;
  if (form == 'y')
    return fmt::format(
        "{}: !!opencv-matrix\n   rows: {}\n   cols: {}\n   dt: d\n   data: [ {:.16e},\n       "
        "{:.16e} ]\n",
        key, rows, cols, fmt::join(values.begin(), values.end() - 2, ", "),
        fmt::join(values.end() - 2, values.end(), ", "));
  if (form == 'x')
    return fmt::format(
        "<{0} type_id=\"opencv-matrix\">\n  <rows>{1}</rows>\n  <cols>{2}</cols>\n  <dt>d</dt>\n  "
        "<data>\n    {3:.16e}</data></{0}>\n",
        key, rows, cols, fmt::join(values, " "));
  return fmt::format(
      ",\n    \"{}\": {{\n        \"type_id\": \"opencv-matrix\",\n        \"rows\": {},\n        "
      "\"cols\": {},\n        \"dt\": \"d\",\n        \"data\": [ {:.16e} ]\n    }}",
      key, rows, cols, fmt::join(values, ", "));
}

// What FileStorage writes, by the extension of `name`: yml, xml or json.
std::string opencv_text(const std::string& name, bool with_q, bool with_p, const Rig& rig = {}) {
  const char form = name.ends_with("ml") && !name.ends_with("xml") ? 'y'
                    : name.ends_with("xml")                        ? 'x'
                                                                   : 'j';
  std::string text = form == 'y' ? "%YAML:1.0\n---\nimage_width: 640\nimage_height: 480\n"
                     : form == 'x'
                         ? "<?xml version=\"1.0\"?>\n<opencv_storage>\n"
                           "<image_width>640</image_width>\n<image_height>480</image_height>\n"
                         : "{\n    \"image_width\": 640,\n    \"image_height\": 480";
  text += matrix_text(form, "R1", {1, 0, 0, 0, 1, 0, 0, 0, 1});
  if (with_q) text += matrix_text(form, "Q", rig.q());
  if (with_p) text += matrix_text(form, "P1", rig.p1()) + matrix_text(form, "P2", rig.p2());
  return text + (form == 'y' ? "" : form == 'x' ? "</opencv_storage>\n" : "\n}\n");
}

TEST_F(CalibrationTest, Middlebury) {
  for (const std::string& text :
       {std::string(kMiddlebury),
        std::string(
            " cam0 = [999.421 0 294.182; 0 999.421 252.932; 0 0 1]\r\ncam1 = [999.421 0 326.96; 0 "
            "999.421 252.932; 0 0 1]\r\nbaseline = 193.001\r\nwidth=741\r\nheight=497\r\n")}) {
    const Calibration c = read(text);
    EXPECT_DOUBLE_EQ(c.fx, 999.421);
    EXPECT_DOUBLE_EQ(c.fy, 999.421);
    EXPECT_DOUBLE_EQ(c.cx, 294.182);
    EXPECT_DOUBLE_EQ(c.cy, 252.932);
    EXPECT_NEAR(c.doffs, 32.778, 1e-9);
    EXPECT_DOUBLE_EQ(c.baseline, 0.193001);
    EXPECT_EQ(c.width, 741);
    EXPECT_EQ(c.height, 497);
    EXPECT_NE(c.source.find("Middlebury"), std::string::npos);
    EXPECT_NE(c.source.find("calib.txt"), std::string::npos);
  }
}

TEST_F(CalibrationTest, KittiRaw) {
  const Calibration c = read(kKittiRaw);
  EXPECT_DOUBLE_EQ(c.fx, 721.5377);
  EXPECT_DOUBLE_EQ(c.fy, 721.5377);
  EXPECT_DOUBLE_EQ(c.cx, 609.5593);
  EXPECT_DOUBLE_EQ(c.cy, 172.854);
  EXPECT_DOUBLE_EQ(c.doffs, 0);
  EXPECT_NEAR(c.baseline, 0.5327, 1e-4);
  EXPECT_EQ(c.width, 1242);
  EXPECT_EQ(c.height, 375);
}

TEST_F(CalibrationTest, KittiObject) {
  const Calibration c = read(kKittiObject);
  EXPECT_DOUBLE_EQ(c.fx, 700);
  EXPECT_DOUBLE_EQ(c.fy, 710);
  EXPECT_DOUBLE_EQ(c.cy, 180);
  EXPECT_DOUBLE_EQ(c.doffs, 3.5);
  EXPECT_DOUBLE_EQ(c.baseline, 0.5);
  EXPECT_EQ(c.width, 0);
}

TEST_F(CalibrationTest, StereodemoJson) {
  const Calibration c = read(kJson);
  EXPECT_DOUBLE_EQ(c.fx, 500.5);
  EXPECT_DOUBLE_EQ(c.fy, 501);
  EXPECT_DOUBLE_EQ(c.cx, 320);
  EXPECT_DOUBLE_EQ(c.cy, 240);
  EXPECT_DOUBLE_EQ(c.doffs, 5);
  EXPECT_DOUBLE_EQ(c.baseline, 0.075);
  EXPECT_EQ(c.width, 640);
  EXPECT_EQ(c.height, 480);
}

TEST_F(CalibrationTest, KTxt) {
  for (const std::string& text :
       {std::string(kK), std::string("754.668 0 489.379\n0 754.5 265.161\n0 0 1\n0.063")}) {
    const Calibration c = read(text);
    EXPECT_DOUBLE_EQ(c.fx, 754.668);
    EXPECT_DOUBLE_EQ(c.fy, 754.5);
    EXPECT_DOUBLE_EQ(c.cx, 489.379);
    EXPECT_DOUBLE_EQ(c.cy, 265.161);
    EXPECT_DOUBLE_EQ(c.doffs, 0);
    EXPECT_DOUBLE_EQ(c.baseline, 0.063);
  }
}

// A point of the world, seen by both rectified cameras, is the judge, for each storage format.
TEST_F(CalibrationTest, OpenCvStorage) {
  const Rig rig;
  for (const char* name : {"a.yml", "a.xml", "a.json", "a.yaml"})
    for (bool with_q : {true, false}) {
      SCOPED_TRACE(std::string(name) + (with_q ? " Q" : " P1 P2"));
      const Calibration c = read(opencv_text(name, with_q, !with_q), name);
      EXPECT_NEAR(c.baseline, 0.12, 1e-9);
      EXPECT_NEAR(c.doffs, -20, 1e-9);
      EXPECT_EQ(c.width, 640);
      EXPECT_EQ(c.height, 480);
      EXPECT_NE(c.source.find("metres"), std::string::npos);
      const double point[3] = {0.3, -0.2, 2.5};
      const double x = rig.f * point[0] / point[2] + rig.cx_left;
      const double y = rig.f * point[1] / point[2] + rig.cy;
      const double d = x - (rig.f * (point[0] - rig.baseline) / point[2] + rig.cx_right);
      const double z = c.baseline * c.fx / (d + c.doffs);
      EXPECT_NEAR(z, 2.5, 1e-6);
      EXPECT_NEAR((x - c.cx) / c.fx * z, 0.3, 1e-6);
      EXPECT_NEAR((y - c.cy) / c.fy * z, -0.2, 1e-6);
    }
  // Byte for byte what OpenCV 4.6 writes.
  const Calibration c = read(
      "%YAML:1.0\n---\nimage_width: 640\nimage_height: 480\nQ: !!opencv-matrix\n   rows: 4\n"
      "   cols: 4\n   dt: d\n   data: [ 1., 0., 0., -330., 0., 1., 0., -250., 0., 0., 0., 600., "
      "0.,\n       0., 8.3333333333333339e+00, -1.6666666666666669e+02 ]\n");
  EXPECT_NEAR(c.baseline, 0.12, 1e-9);
  EXPECT_NEAR(c.doffs, -20, 1e-9);
  EXPECT_DOUBLE_EQ(c.cx, 330);
}

TEST_F(CalibrationTest, ByteOrderMark) {
  for (const char* text : {kMiddlebury, kKittiRaw, kKittiObject, kJson, kK})
    EXPECT_EQ(read("\xef\xbb\xbf" + std::string(text)).fx, read(text).fx);
  for (const char* name : {"a.yml", "a.xml", "a.json"})
    EXPECT_EQ(read("\xef\xbb\xbf" + opencv_text(name, true, false), name).fx, 600);
}

TEST_F(CalibrationTest, ContradictoryOffsets) {
  const std::string start =
      "cam0=[1000 0 300; 0 1000 250; 0 0 1]\ncam1=[1000 0 330; 0 1000 250; 0 0 1]\n"
      "baseline=100\n";
  EXPECT_DOUBLE_EQ(read(start + "doffs=30.05\n").doffs, 30.05);  // rounded otherwise
  const std::string message = refused(start + "doffs=-30\n");
  EXPECT_NE(message.find("doffs is -30 px"), std::string::npos) << message;
  EXPECT_NE(message.find("differ by 30 px"), std::string::npos) << message;
  EXPECT_NE(message.find("(300 and 330)"), std::string::npos) << message;
  // Every point behind the cameras.
  const std::string behind =
      refused("cam0=[1000 0 300; 0 1000 250; 0 0 1]\nbaseline=100\ndoffs=-640\nwidth=640\n");
  EXPECT_NE(behind.find("behind"), std::string::npos) << behind;
}

TEST_F(CalibrationTest, WarnsWhenTheBaselineLooksLikeMillimetres) {
  std::string heard;
  set_log_sink([&](LogLevel level, const std::string& text) {
    if (level == LogLevel::kWarning) heard += text;
  });
  const std::string text = opencv_text("a.yml", true, false, {.baseline = 120});
  EXPECT_EQ(heard, "");
  read(text, "a.yml");
  set_log_sink({});
  EXPECT_NE(heard.find("millimetres"), std::string::npos);
  EXPECT_NE(heard.find("a.yml"), std::string::npos);
}

TEST_F(CalibrationTest, SaysWhatIsMissing) {
  auto expect_in = [](const std::string& part, const std::string& message) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  std::string message = refused("cam0=[1 0 2; 0 1 2; 0 0 1]\ndoffs=0\n");
  expect_in("Middlebury", message);
  expect_in("'baseline' is missing", message);
  expect_in("Found: cam0, doffs", message);
  expect_in("'cam0' is missing", refused("baseline=100\ndoffs=0\n"));
  expect_in("'doffs' (or 'cam1') is missing",
            refused("cam0=[1 0 2; 0 1 2; 0 0 1]\nbaseline=100\n"));
  expect_in("'cam0' has 8 numbers, expected 9",
            refused("cam0=[1 0 2; 0 1 2; 0 0]\nbaseline=100\n"));
  expect_in("not a camera matrix", refused("cam0=[1 0 2; 0 1 2; 0 0 2]\nbaseline=100\n"));
  expect_in("not a number of pixels",
            refused("cam0=[1 0 2; 0 1 2; 0 0 1]\nbaseline=100\ndoffs=0\nwidth=-5\n"));
  expect_in("not a number of pixels",
            refused("cam0=[1 0 2; 0 1 2; 0 0 1]\nbaseline=100\ndoffs=0\nwidth=1e30\n"));

  const std::string raw = kKittiRaw;
  expect_in("'P_rect_03' is missing", refused(raw.substr(0, raw.find("P_rect_03"))));
  const std::string object = kKittiObject;
  expect_in("'P3' is missing", refused(object.substr(0, object.find("P3"))));
  expect_in("'P2' has 3 numbers, expected 12", refused("P2: 1 2 3\nP3: 1 2 3\n"));

  expect_in("'baseline_meters' is missing", refused(R"({"fx": 1, "cx0": 1, "cy": 1})"));
  expect_in("'fx' is missing", refused(R"({"fx": "one", "baseline_meters": 1})"));
  expect_in("truncated", refused(R"({"fx": 1, )"));
  expect_in("'Q' (or 'P1' and 'P2') is missing", refused(R"({"a": 1})"));

  expect_in("'Q' (or 'P1' and 'P2') is missing", refused(opencv_text("a.yml", false, false)));
  expect_in("'P2' is missing",
            refused("%YAML:1.0\n---\nP1: [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]\n"));
  expect_in("'Q' has 3 numbers, expected 16", refused("%YAML:1.0\n---\nQ: [1, 2, 3]\n"));
  expect_in("row 4, column 3",
            refused("%YAML:1.0\n---\nQ: [1, 0, 0, -3, 0, 1, 0, -2, 0, 0, 0, 5, 0, 0, 0, 0]\n"));
  expect_in("vertical", refused(opencv_text("a.yml", true, true, {.vertical = true})));
  expect_in("vertical", refused(opencv_text("a.yml", false, true, {.vertical = true})));

  expect_in("'baseline' is missing", refused("1 0 2 0 1 2 0 0 1\n"));
  expect_in("holds 4 numbers", refused("1 2 3 4"));
  expect_in("'baseline' has 2 numbers", refused("1 0 2 0 1 2 0 0 1\n0.1 0.2"));
  expect_in("not a camera matrix", refused("1 2 3 4 5 6 7 8 9 10"));
  expect_in("Known are: Middlebury", refused("hello\n"));
  expect_in("empty", refused(""));
  expect_in("empty", refused(" \n\t"));
  error_of(ErrorKind::kInput, [&] { read_calibration(folder_ / "none.txt"); });
}

TEST_F(CalibrationTest, RefusesImpossibleNumbers) {
  EXPECT_NE(refused("100 0 2 0 100 2 0 0 1\n-0.1").find("swapped"), std::string::npos);
  EXPECT_NE(refused("0 0 2 0 100 2 0 0 1\n0.1").find("focal"), std::string::npos);
  EXPECT_NE(refused("100 0 nan 0 100 2 0 0 1\n0.1").find("finite"), std::string::npos);
  EXPECT_NE(refused("100 0 2 0 100 2 0 0 1\ninf").find("finite"), std::string::npos);
  refused("100 0 2 0 100 2 0 0 1\n1e999");
  refused("P2: 0 0 1 1 0 1 1 0 0 0 1 0\nP3: 0 0 1 0 0 1 1 0 0 0 1 0\n");
  refused(R"({"fx": 1e999, "cx0": 1, "cy": 1, "baseline_meters": 1})");
  EXPECT_NE(refused(opencv_text("a.yml", true, false, {.baseline = -0.1})).find("swapped"),
            std::string::npos);
}

// Cut anywhere, or with any byte changed, a file is read or refused, and nothing else happens.
TEST_F(CalibrationTest, DamagedFilesThrowOurError) {
  for (const std::string& text :
       {std::string(kMiddlebury), std::string(kKittiObject), std::string(kJson), std::string(kK),
        opencv_text("a.yml", true, false), opencv_text("a.xml", true, false),
        opencv_text("a.json", true, false)}) {
    int refusals = 0;
    auto attempt = [&](const std::string& content) {
      try {
        read(content);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInput);
        ++refusals;
      }
    };
    for (std::size_t cut = 0; cut < text.size(); cut += 7) attempt(text.substr(0, cut));
    Rng random(11);
    for (int i = 0; i < 80; ++i) {
      std::string damaged = text;
      damaged[static_cast<std::size_t>(
          random.integer(0, static_cast<std::int64_t>(text.size()) - 1))] =
          static_cast<char>(random.integer(0, 255));
      attempt(damaged);
    }
    EXPECT_GT(refusals, 5);
  }
}

// A matrix that claims to be huge costs nothing.
TEST_F(CalibrationTest, ForgedMatrixSize) {
  const Calibration c = read(
      "%YAML:1.0\n---\nQ: !!opencv-matrix\n   rows: 2000000000\n   cols: 2000000000\n   dt: d\n"
      "   data: [1, 0, 0, -320, 0, 1, 0, -240, 0, 0, 0, 500, 0, 0, 10, 0]\n");
  EXPECT_DOUBLE_EQ(c.baseline, 0.1);
  EXPECT_DOUBLE_EQ(c.fx, 500);
}

TEST_F(CalibrationTest, RealMiddlebury) {
  NMRF_NEED_SHARED("data/Middlebury/MiddEval3/trainingQ/Motorcycle/calib.txt");
  const Calibration c = read_calibration(
      test::shared_folder() / "data/Middlebury/MiddEval3/trainingQ/Motorcycle/calib.txt");
  EXPECT_DOUBLE_EQ(c.fx, 999.421);
  EXPECT_DOUBLE_EQ(c.baseline, 0.193001);
  EXPECT_DOUBLE_EQ(c.doffs, 32.778);
  EXPECT_EQ(c.width, 741);
}

TEST(Calibration, ScalingKeepsTheDepth) {
  const Calibration c{.fx = 1000,
                      .fy = 900,
                      .cx = 320,
                      .cy = 240,
                      .doffs = 12,
                      .baseline = 0.2,
                      .width = 641,
                      .height = 481,
                      .source = "test"};
  const Calibration half = c.scaled(0.5, 0.25);
  EXPECT_DOUBLE_EQ(half.fx, 500);
  EXPECT_DOUBLE_EQ(half.fy, 225);
  EXPECT_DOUBLE_EQ(half.cx, 159.75);  // (320 + 0.5) / 2 - 0.5
  EXPECT_DOUBLE_EQ(half.cy, 59.625);
  EXPECT_DOUBLE_EQ(half.doffs, 6);
  EXPECT_DOUBLE_EQ(half.baseline, 0.2);
  EXPECT_EQ(half.width, 321);
  EXPECT_EQ(half.height, 120);
  EXPECT_EQ(half.source, "test");
  // A pixel and its disparity shrink with the image; the depth stays.
  EXPECT_FLOAT_EQ(depth_from_disparity(FloatMap(1, 1, 40), c).at(0, 0),
                  depth_from_disparity(FloatMap(1, 1, 20), half).at(0, 0));
  // The centre of the image stays its centre, and there and back again changes nothing.
  Calibration middle = c;
  middle.cx = 640 / 2.0 - 0.5;
  EXPECT_DOUBLE_EQ(middle.scaled(0.25, 1).cx, 160 / 2.0 - 0.5);
  const Calibration again = c.scaled(0.3, 0.7).scaled(1 / 0.3, 1 / 0.7);
  EXPECT_NEAR(again.cx, c.cx, 1e-9);
  EXPECT_NEAR(again.cy, c.cy, 1e-9);
  EXPECT_NEAR(again.doffs, c.doffs, 1e-9);
  error_of(ErrorKind::kUsage, [&] { c.scaled(0, 1); });
  error_of(ErrorKind::kUsage, [&] { c.scaled(1, -1); });
  error_of(ErrorKind::kUsage, [&] { c.scaled(std::numeric_limits<double>::quiet_NaN(), 1); });
}

TEST(Calibration, DepthFromDisparity) {
  const float inf = std::numeric_limits<float>::infinity();
  Calibration c{
      .fx = 1000, .fy = 1000, .cx = 3, .cy = 2, .doffs = -10, .baseline = 0.2, .source = "test"};
  const FloatMap d =
      test::row_map({20, 10, 9, 0, -5, inf, -inf, std::numeric_limits<float>::quiet_NaN(), 110});
  const FloatMap z = test::row_map({20, inf, inf, inf, inf, inf, inf, inf, 2});
  test::expect_same_bits(depth_from_disparity(d, c), z);
  // Without the pixels that were filled in, unless they are asked for.
  Disparity disparity;
  disparity.map = d;
  test::expect_same_bits(depth_from_disparity(disparity, c), z);
  disparity.mask = ByteMap(9, 1);
  disparity.mask.at(0, 0) = kFilled | kOccluded;
  disparity.mask.at(0, 8) = kOccluded;
  test::expect_same_bits(depth_from_disparity(disparity, c, true), z);
  FloatMap measured = z;
  measured.at(0, 0) = inf;
  test::expect_same_bits(depth_from_disparity(disparity, c), measured);
  disparity.mask = ByteMap(8, 1);
  error_of(ErrorKind::kUsage, [&] { depth_from_disparity(disparity, c); });
  error_of(ErrorKind::kUsage, [&] { depth_from_disparity(FloatMap(), c); });
  c.baseline = 0;
  error_of(ErrorKind::kInput, [&] { depth_from_disparity(d, c); });
}

}  // namespace
}  // namespace nmrf

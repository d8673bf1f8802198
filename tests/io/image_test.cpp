#include "nmrf/image.h"

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "io/maps.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::error_of;

// A picture with smooth colours (so that JPEG and WebP keep them) and 16-bit values that use the
// whole range.
cv::Mat picture(int rows, int cols, int type) {
  cv::Mat image(rows, cols, type);
  const int channels = image.channels();
  const double top = image.depth() == CV_16U ? 65535 : 255;
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < cols; ++x)
      for (int c = 0; c < channels; ++c) {
        const double value = top * (x + y + 5 * c) / (rows + cols + 5 * channels - 7);
        if (image.depth() == CV_16U)
          image.ptr<std::uint16_t>(y)[x * channels + c] = cv::saturate_cast<std::uint16_t>(value);
        else
          image.ptr<std::uint8_t>(y)[x * channels + c] = cv::saturate_cast<std::uint8_t>(value);
      }
  return image;
}

// What read_image must give for `image`, computed pixel by pixel.
cv::Mat expected_bgr(const cv::Mat& image) {
  cv::Mat bgr(image.size(), CV_8UC3);
  const int channels = image.channels();
  for (int y = 0; y < image.rows; ++y)
    for (int x = 0; x < image.cols; ++x)
      for (int c = 0; c < 3; ++c) {
        const int at = x * channels + (channels == 1 ? 0 : c);
        bgr.at<cv::Vec3b>(y, x)[c] =
            image.depth() == CV_16U
                ? static_cast<std::uint8_t>(std::lround(image.ptr<std::uint16_t>(y)[at] / 257.0))
                : image.ptr<std::uint8_t>(y)[at];
      }
  return bgr;
}

std::string encoded(const std::string& extension, const cv::Mat& image,
                    const std::vector<int>& options = {}) {
  std::vector<std::uint8_t> bytes;
  EXPECT_TRUE(cv::imencode(extension, image, bytes, options));
  return {bytes.begin(), bytes.end()};
}

TEST(ReadImage, LosslessFormats) {
  test::TempFolder folder;
  struct Case {
    const char* name;
    int type;
  };
  for (const Case& c : {Case{"a.png", CV_8UC1},
                        {"a.png", CV_8UC3},
                        {"a.png", CV_8UC4},
                        {"a.png", CV_16UC1},
                        {"a.png", CV_16UC3},
                        {"a.png", CV_16UC4},
                        {"a.tiff", CV_8UC1},
                        {"a.tiff", CV_8UC3},
                        {"a.tiff", CV_8UC4},
                        {"a.tif", CV_16UC1},
                        {"a.tif", CV_16UC3},
                        {"a.ppm", CV_8UC3},
                        {"a.ppm", CV_16UC3},
                        {"a.pgm", CV_8UC1},
                        {"a.pgm", CV_16UC1},
                        {"a.bmp", CV_8UC1},
                        {"a.bmp", CV_8UC3},
                        {"a.bmp", CV_8UC4}})
    for (cv::Size size : {cv::Size(1, 1), cv::Size(3, 1), cv::Size(17, 13)}) {
      SCOPED_TRACE(std::string(c.name) + " " + cv::typeToString(c.type));
      const cv::Mat image = picture(size.height, size.width, c.type);
      ASSERT_TRUE(cv::imwrite((folder / c.name).string(), image));
      test::expect_same_bits(read_image(folder / c.name), expected_bgr(image));
    }
}

TEST(ReadImage, LossyFormats) {
  test::TempFolder folder;
  for (const char* name : {"a.jpg", "a.webp"})
    for (int type : {CV_8UC1, CV_8UC3}) {
      SCOPED_TRACE(name);
      const cv::Mat image = picture(40, 56, type);
      ASSERT_TRUE(cv::imwrite((folder / name).string(), image));
      const cv::Mat back = read_image(folder / name);
      ASSERT_EQ(back.type(), CV_8UC3);
      ASSERT_EQ(back.size(), image.size());
      EXPECT_LT(cv::norm(back, expected_bgr(image), cv::NORM_INF), 16);
    }
  const std::string progressive =
      encoded(".jpg", picture(40, 56, CV_8UC3),
              {cv::IMWRITE_JPEG_PROGRESSIVE, 1, cv::IMWRITE_JPEG_RST_INTERVAL, 2});
  test::put(folder / "p.jpg", progressive);
  EXPECT_LT(cv::norm(read_image(folder / "p.jpg"), picture(40, 56, CV_8UC3), cv::NORM_INF), 16);
  const std::string lossless =
      encoded(".webp", picture(9, 11, CV_8UC3), {cv::IMWRITE_WEBP_QUALITY, 101});
  test::put(folder / "l.webp", lossless);
  test::expect_same_bits(read_image(folder / "l.webp"), picture(9, 11, CV_8UC3));
}

// The kind is found by content: a wrong extension does no harm.
TEST(ReadImage, ExtensionDoesNotMatter) {
  test::TempFolder folder;
  const cv::Mat image = picture(5, 6, CV_8UC3);
  test::put(folder / "a.jpg", encoded(".png", image));
  test::expect_same_bits(read_image(folder / "a.jpg"), image);
  test::put(folder / "noextension", encoded(".ppm", image));
  test::expect_same_bits(read_image(folder / "noextension"), image);
}

TEST(ReadImage, TextPpm) {
  test::TempFolder folder;
  test::put(folder / "a.ppm", "P3\n# by hand\n2 1\n255\n10 20 30  40 50 60\n");
  const cv::Mat image = read_image(folder / "a.ppm");
  ASSERT_EQ(image.size(), cv::Size(2, 1));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 0), cv::Vec3b(30, 20, 10));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 1), cv::Vec3b(60, 50, 40));
}

// A phone that lies on its side must not turn one of the two images.
TEST(ReadImage, ExifOrientationIsIgnored) {
  test::TempFolder folder;
  std::string jpeg = encoded(".jpg", picture(24, 40, CV_8UC3));
  // APP1 with one tag: 0x0112 (orientation) = 6, quarter turn.
  const std::string exif(
      "\xFF\xE1\x00\x22"
      "Exif\0\0"
      "MM\0*\0\0\0\x08"
      "\0\x01"
      "\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
      "\0\0\0\0",
      36);
  jpeg.insert(2, exif);
  test::put(folder / "a.jpg", jpeg);
  // The file is a proper one: OpenCV turns it unless told otherwise.
  ASSERT_EQ(cv::imread((folder / "a.jpg").string()).size(), cv::Size(24, 40));
  EXPECT_EQ(read_image(folder / "a.jpg").size(), cv::Size(40, 24));
}

TEST(ReadImage, TrailingBytesAfterJpegAndPng) {
  test::TempFolder folder;
  const cv::Mat image = picture(24, 40, CV_8UC3);
  test::put(folder / "a.jpg", encoded(".jpg", image) + std::string(100, 'x'));
  EXPECT_EQ(read_image(folder / "a.jpg").size(), image.size());
  test::put(folder / "a.png", encoded(".png", image) + "\n");
  test::expect_same_bits(read_image(folder / "a.png"), image);
}

TEST(ReadImage, RefusesEveryTruncation) {
  test::TempFolder folder;
  cv::Mat noise(19, 23, CV_8UC3);
  cv::RNG(7).fill(noise, cv::RNG::UNIFORM, 0, 256);
  for (const char* extension : {".png", ".jpg", ".webp", ".ppm", ".bmp", ".tiff"}) {
    const std::string whole = encoded(extension, noise);
    const auto path = folder / (std::string("cut") + extension);
    for (std::size_t cut = 0; cut < whole.size(); cut += cut < 64 ? 1 : 37) {
      test::put(path, whole.substr(0, cut));
      SCOPED_TRACE(path.filename().string() + " of " + std::to_string(cut) + " bytes");
      const std::string message = error_of(ErrorKind::kInput, [&] { read_image(path); });
      EXPECT_NE(message.find(path.string()), std::string::npos);
    }
    for (std::size_t less : {1u, 2u}) {
      test::put(path, whole.substr(0, whole.size() - less));
      SCOPED_TRACE(path.filename().string() + " less " + std::to_string(less));
      error_of(ErrorKind::kInput, [&] { read_image(path); });
    }
  }
  test::put(folder / "cut.png", encoded(".png", noise).substr(0, 700));
  const std::string message = error_of(ErrorKind::kInput, [&] { read_image(folder / "cut.png"); });
  EXPECT_NE(message.find("truncated"), std::string::npos) << message;
  EXPECT_NE(message.find("again"), std::string::npos) << message;
}

TEST(ReadImage, RefusesDamagedPng) {
  test::TempFolder folder;
  std::string png = encoded(".png", picture(19, 23, CV_8UC3));
  for (std::size_t at : {20u, 45u, 60u}) {
    std::string damaged = png;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    test::put(folder / "a.png", damaged);
    error_of(ErrorKind::kInput, [&] { read_image(folder / "a.png"); });
  }
}

// PNG by hand, for the varieties that OpenCV does not write. Checksums bit by bit.
std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string png_chunk(const std::string& type, const std::string& data) {
  std::uint32_t crc = ~0u;
  for (char c : type + data) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return big_endian(static_cast<std::uint32_t>(data.size())) + type + data + big_endian(~crc);
}

// `rows` holds the filter byte and the packed pixels of every row; stored, not compressed.
std::string handmade_png(int width, int height, int bits, int colour_type, const std::string& rows,
                         const std::string& palette = "") {
  std::uint32_t a = 1, b = 0;  // Adler-32
  for (char c : rows) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto length = static_cast<std::uint16_t>(rows.size());
  std::string stored = "\x78\x01\x01";
  stored += static_cast<char>(length & 0xFF);
  stored += static_cast<char>(length >> 8);
  stored += static_cast<char>(~length & 0xFF);
  stored += static_cast<char>(~length >> 8 & 0xFF);
  stored += rows + big_endian(b << 16 | a);
  std::string header = big_endian(static_cast<std::uint32_t>(width)) +
                       big_endian(static_cast<std::uint32_t>(height));
  for (int value : {bits, colour_type, 0, 0, 0}) header += static_cast<char>(value);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) +
         (palette.empty() ? "" : png_chunk("PLTE", palette)) + png_chunk("IDAT", stored) +
         png_chunk("IEND", "");
}

TEST(ReadImage, RarerVarietiesOfPng) {
  test::TempFolder folder;
  const auto path = folder / "a.png";
  using namespace std::string_literals;
  test::put(path, handmade_png(2, 1, 8, 3, "\0\1\0"s, "\x0A\x14\x1E\x28\x32\x3C"));  // palette
  cv::Mat image = read_image(path);
  ASSERT_EQ(image.size(), cv::Size(2, 1));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 0), cv::Vec3b(60, 50, 40));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 1), cv::Vec3b(30, 20, 10));
  test::put(path, handmade_png(2, 1, 8, 4, "\0\x64\0\xC8\xFF"s));  // grey and alpha
  image = read_image(path);
  ASSERT_EQ(image.type(), CV_8UC3);
  EXPECT_EQ(image.at<cv::Vec3b>(0, 0), cv::Vec3b(100, 100, 100));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 1), cv::Vec3b(200, 200, 200));
  test::put(path, handmade_png(3, 2, 1, 0, "\0\xA0\0\x40"s));  // one bit a pixel
  image = read_image(path);
  ASSERT_EQ(image.size(), cv::Size(3, 2));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 0), cv::Vec3b(255, 255, 255));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 1), cv::Vec3b(0, 0, 0));
  EXPECT_EQ(image.at<cv::Vec3b>(1, 1), cv::Vec3b(255, 255, 255));
  test::put(path, handmade_png(1, 1, 16, 4, "\0\x80\0\xFF\xFF"s));  // 16-bit grey and alpha
  EXPECT_EQ(read_image(path).at<cv::Vec3b>(0, 0), cv::Vec3b(128, 128, 128));
  // A proper checksum does not make a forged size plausible.
  test::put(path, handmade_png(30000, 30000, 8, 0, "\0\1"s));
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(path); }).find("30000x30000"),
            std::string::npos);
  test::put(path, handmade_png(0, 5, 8, 0, "\0\1"s));
  error_of(ErrorKind::kInput, [&] { read_image(path); });
}

TEST(ReadImage, RefusesForgedSizes) {
  test::TempFolder folder;
  auto refused = [&](const std::string& name, const std::string& content) {
    test::put(folder / name, content);
    return error_of(ErrorKind::kInput, [&] { read_image(folder / name); });
  };
  // JPEG: rewrite height and width of the frame header.
  std::string jpeg = encoded(".jpg", picture(8, 8, CV_8UC3));
  const std::size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  for (std::size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\xF0';
  EXPECT_NE(refused("a.jpg", jpeg).find("61680x61680"), std::string::npos);
  // PPM: a size that the file cannot hold, and ones that overflow.
  EXPECT_NE(refused("a.ppm", "P6\n100000 100000\n255\nabc").find("100000x100000"),
            std::string::npos);
  refused("b.ppm", "P6\n4294967296 4294967297\n255\nabc");
  refused("c.ppm", "P3\n30000 30000\n255\n1 2 3");
  refused("d.ppm", "P6\n0 4\n255\nabc");
  refused("e.ppm", "P6\n2 2\n99999\nabc");
  refused("f.ppm", "P6\n-2 2\n255\nabcabcabcabcabc");
  // TIFF: 10^9 rows in a directory of either byte order; and a directory that is not there.
  for (bool big : {false, true}) {
    auto number = [&](std::uint32_t value, int bytes) {
      std::string text;
      for (int i = 0; i < bytes; ++i)
        text += static_cast<char>(value >> (8 * (big ? bytes - 1 - i : i)));
      return text;
    };
    auto entry = [&](std::uint32_t tag, std::uint32_t value) {
      return number(tag, 2) + number(4, 2) + number(1, 4) + number(value, 4);
    };
    const std::string start = (big ? "MM" : "II") + number(42, 2);
    const std::string directory = number(8, 4) + number(3, 2);
    EXPECT_NE(refused("a.tiff", start + directory + entry(256, 1000) + entry(257, 1000000000) +
                                    entry(258, 8) + number(0, 4))
                  .find("1000x1000000000"),
              std::string::npos);
    EXPECT_NE(refused("b.tiff", start + directory + entry(256, 10)).find("truncated"),
              std::string::npos);
    EXPECT_NE(refused("c.tiff", start + number(0xFFFFFFFF, 4) + "xx").find("truncated"),
              std::string::npos);
    EXPECT_NE(refused("d.tiff", (big ? "MM" : "II") + number(43, 2) + number(8, 2) + number(0, 4))
                  .find("BigTIFF"),
              std::string::npos);
    refused("e.tiff", start);
    // Whole, and cut inside its pixels: here the directory comes first.
    const std::string small = start + number(8, 4) + number(8, 2) + entry(256, 4) + entry(257, 2) +
                              entry(258, 8) + entry(259, 1) + entry(262, 1) + entry(273, 110) +
                              entry(278, 2) + entry(279, 8) + number(0, 4);
    ASSERT_EQ(small.size(), 110u);
    test::put(folder / "f.tiff", small + "abcdefgh");
    const cv::Mat image = read_image(folder / "f.tiff");
    ASSERT_EQ(image.size(), cv::Size(4, 2));
    EXPECT_EQ(image.at<cv::Vec3b>(1, 3), cv::Vec3b('h', 'h', 'h'));
    EXPECT_NE(refused("g.tiff", small + "abcdefg").find("truncated"), std::string::npos);
  }
  // BMP of 2^31 - 1 pixels a side.
  std::string bmp = encoded(".bmp", picture(8, 8, CV_8UC3));
  for (std::size_t i = 18; i < 26; ++i) bmp[i] = (i - 18) % 4 == 3 ? '\x7F' : '\xFF';
  refused("a.bmp", bmp);
}

// With any byte changed a file is read or refused, and nothing else happens.
TEST(ReadImage, DamagedFilesThrowOurError) {
  test::TempFolder folder;
  cv::RNG random(5);
  for (const char* extension : {".png", ".ppm", ".bmp", ".tiff", ".webp"}) {
    const std::string whole = encoded(extension, picture(9, 11, CV_8UC3));
    int refusals = 0;
    for (int i = 0; i < 80; ++i) {
      std::string damaged = whole;
      const int end = i % 2 == 0 ? 64 : static_cast<int>(whole.size());  // headers matter most
      damaged[static_cast<std::size_t>(random.uniform(0, end))] =
          static_cast<char>(random.uniform(0, 256));
      test::put(folder / "a", damaged);
      try {
        EXPECT_EQ(read_image(folder / "a").type(), CV_8UC3);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInput);
        ++refusals;
      }
    }
    EXPECT_GT(refusals, 3) << extension;
  }
}

TEST(ReadImage, SaysWhatTheFileIsInstead) {
  test::TempFolder folder;
  auto message_of = [&](const std::string& name, const std::string& content) {
    test::put(folder / name, content);
    const std::string message = error_of(ErrorKind::kInput, [&] { read_image(folder / name); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    return message;
  };
  EXPECT_NE(message_of("text.png", "left right disparity\n").find("looks like text"),
            std::string::npos);
  EXPECT_NE(message_of("empty.png", "").find("empty"), std::string::npos);
  EXPECT_NE(message_of("lfs.png", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
                .find("git lfs pull"),
            std::string::npos);
  EXPECT_NE(message_of("zip.png", std::string("PK\x03\x04\x00\x00", 6)).find("known kind"),
            std::string::npos);
  EXPECT_NE(message_of("one.png", "P").find("text"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(folder / "none.png"); }).find("none.png"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(folder.path()); }).find("not a file"),
            std::string::npos);
  cv::imwrite((folder / "float.tiff").string(), test::sample_map(4, 4, false));
  EXPECT_NE(error_of(ErrorKind::kInput, [&] { read_image(folder / "float.tiff"); }).find("CV_32F"),
            std::string::npos);
}

TEST(ToBgr8, SixteenBitsAreScaledNeverWrapped) {
  cv::Mat image(1, 6, CV_16UC1);
  const int values[] = {0, 128, 129, 256, 32768, 65535};
  const int wanted[] = {0, 0, 1, 1, 128, 255};
  for (int x = 0; x < 6; ++x) image.at<std::uint16_t>(0, x) = static_cast<std::uint16_t>(values[x]);
  const cv::Mat bgr = to_bgr8(image, "memory");
  for (int x = 0; x < 6; ++x)
    for (int c = 0; c < 3; ++c) EXPECT_EQ(bgr.at<cv::Vec3b>(0, x)[c], wanted[x]) << values[x];
}

TEST(ToBgr8, Channels) {
  const cv::Mat two = picture(3, 5, CV_8UC2);
  cv::Mat grey;
  cv::extractChannel(two, grey, 0);
  test::expect_same_bits(to_bgr8(two, "memory"), expected_bgr(grey));
  for (int type : {CV_8UC1, CV_8UC3, CV_8UC4, CV_16UC1, CV_16UC3, CV_16UC4})
    test::expect_same_bits(to_bgr8(picture(3, 5, type), "memory"),
                           expected_bgr(picture(3, 5, type)));
  for (int type : {CV_8UC(5), CV_8SC1, CV_16SC1, CV_32SC1, CV_32FC1, CV_64FC3}) {
    const std::string message =
        error_of(ErrorKind::kInput, [&] { to_bgr8(cv::Mat(2, 2, type), "left image"); });
    EXPECT_NE(message.find("left image"), std::string::npos);
  }
  error_of(ErrorKind::kInput, [] { to_bgr8(cv::Mat(), "left image"); });
}

TEST(WriteImage, RoundTripsAndRefuses) {
  test::TempFolder folder;
  for (const char* name : {"a.png", "a.tiff", "a.ppm", "a.bmp", "A.PNG"}) {
    const cv::Mat image = picture(7, 9, CV_8UC3);
    write_image(folder / name, image);
    test::expect_same_bits(read_image(folder / name), image);
  }
  write_image(folder / "grey.png", picture(7, 9, CV_8UC1));
  test::expect_same_bits(read_image(folder / "grey.png"), expected_bgr(picture(7, 9, CV_8UC1)));
  write_image(folder / "a.jpg", picture(7, 9, CV_8UC3));
  write_image(folder / "a.webp", picture(7, 9, CV_8UC3));
  EXPECT_EQ(read_image(folder / "a.jpg").size(), cv::Size(9, 7));
  const auto message =
      error_of(ErrorKind::kUsage, [&] { write_image(folder / "a.xyz", picture(7, 9, CV_8UC3)); });
  EXPECT_NE(message.find(".xyz"), std::string::npos);
  error_of(ErrorKind::kUsage, [&] { write_image(folder / "b.png", cv::Mat()); });
  error_of(ErrorKind::kUsage, [&] { write_image(folder / "b.png", picture(7, 9, CV_16UC1)); });
  error_of(ErrorKind::kUsage, [&] { write_image(folder / "b.png", cv::Mat(2, 2, CV_32FC1)); });
  EXPECT_FALSE(std::filesystem::exists(folder / "b.png"));
}

TEST(ReadImage, RealPictures) {
  NMRF_NEED_SHARED("data/pairs.txt");
  const auto data = test::shared_folder() / "data";
  for (const char* name :
       {"KITTI/KITTI_2015/training/image_2/000001_10.png", "Middlebury/2003/teddy/im6.png",
        "Middlebury/MiddEval3/trainingQ/Motorcycle/im0.png",
        "ETH3D/two_view_training/playground_1l/im0.png",
        "SceneFlow/FlyingThings3D/frames_cleanpass/TEST/A/0000/left/0006.png"}) {
    SCOPED_TRACE(name);
    if (!std::filesystem::exists(data / name)) continue;
    test::expect_same_bits(read_image(data / name), cv::imread((data / name).string()));
  }
}

}  // namespace
}  // namespace nmrf

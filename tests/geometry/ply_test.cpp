#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "core/file.h"
#include "io/maps.h"
#include "nmrf/geometry.h"
#include "support/support.h"

namespace nmrf {
namespace {

struct Cloud {
  std::vector<std::string> header;
  std::string body;
};

// The header lines and what follows them.
Cloud parse(const std::string& content) {
  Cloud cloud;
  const std::string mark = "end_header\n";
  const std::size_t end = content.find(mark);
  EXPECT_NE(end, std::string::npos);
  std::istringstream lines(content.substr(0, end));
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("comment ")) cloud.header.push_back(line);
  cloud.body = content.substr(end + mark.size());
  return cloud;
}

TEST(Ply, BinaryLittleEndianWithColours) {
  test::TempFolder folder;
  write_ply(folder / "a.ply", {{1.5f, -2.0f, 3.0f, {10, 20, 255}}, {0, 0, 1, {0, 1, 2}}});
  const Cloud cloud = parse(read_file(folder / "a.ply"));
  EXPECT_EQ(cloud.header,
            (std::vector<std::string>{"ply", "format binary_little_endian 1.0", "element vertex 2",
                                      "property float x", "property float y", "property float z",
                                      "property uchar red", "property uchar green",
                                      "property uchar blue"}));
  using test::float_bytes;
  EXPECT_EQ(cloud.body, float_bytes(1.5f) + float_bytes(-2.0f) + float_bytes(3.0f) +
                            "\x0A\x14\xFF" + float_bytes(0) + float_bytes(0) + float_bytes(1) +
                            std::string("\0\1\2", 3));
}

TEST(Ply, ManyPointsAndNone) {
  test::TempFolder folder;
  write_ply(folder / "a.ply", {});
  EXPECT_EQ(parse(read_file(folder / "a.ply")).body, "");
  std::vector<Point> points(40001);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].z = static_cast<float>(i);
  write_ply(folder / "a.ply", points);
  const Cloud cloud = parse(read_file(folder / "a.ply"));
  EXPECT_EQ(cloud.header[2], "element vertex 40001");
  ASSERT_EQ(cloud.body.size(), points.size() * 15);
  for (std::size_t i = 0; i < points.size(); ++i) {
    float z;
    std::memcpy(&z, cloud.body.data() + i * 15 + 8, 4);
    ASSERT_EQ(z, points[i].z);
  }
}

}  // namespace
}  // namespace nmrf

#include "io/photo_info.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/check.h"
#include "io/picture_check.h"

namespace nmrf {
namespace {

using namespace std::string_view_literals;

// A structure of TIFF's tags. Reads nothing outside of its bytes.
class Tags {
 public:
  explicit Tags(std::string_view data) : data_(data), big_(data.starts_with("MM"sv)) {
    const bool known = data.starts_with("II*\0"sv) || data.starts_with("MM\0*"sv);
    if (known) first_ = number(4);
  }
  // Where the first directory begins; 0: there is none.
  std::size_t first() const { return first_; }

  struct Value {
    int type = 0;
    std::size_t count = 0;
    std::size_t at = 0;  // of its first byte
  };
  // An entry of the directory at `directory`.
  std::optional<Value> find(std::size_t directory, unsigned tag) const {
    for (std::size_t i = 0, count = entries(directory); i < count; ++i) {
      const std::size_t at = directory + 2 + 12 * i;
      if (word(at) != tag) continue;
      constexpr std::size_t kBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8};
      Value value{static_cast<int>(word(at + 2)), number(at + 4), at + 8};
      if (value.type < 1 || value.type > 12) return {};
      if (value.count == 0 || value.count > data_.size()) return {};
      const std::size_t bytes = value.count * kBytes[value.type];
      if (bytes > 4) value.at = number(at + 8);
      if (!inside(value.at, bytes)) return {};
      return value;
    }
    return {};
  }
  // A single positive number: integer or fraction.
  std::optional<double> positive(std::size_t directory, unsigned tag) const {
    const auto value = find(directory, tag);
    if (!value) return {};
    double result = 0;
    if (value->type == 3) result = static_cast<double>(word(value->at));
    if (value->type == 4) result = static_cast<double>(number(value->at));
    if (value->type == 5)
      result = static_cast<double>(number(value->at)) / static_cast<double>(number(value->at + 4));
    if (!(result > 0 && std::isfinite(result))) return {};
    return result;
  }
  // The directory behind this one; 0: there is none.
  std::size_t next(std::size_t directory) const {
    return number(directory + 2 + 12 * entries(directory));
  }
  // 0 where the structure has no such bytes.
  std::size_t word(std::size_t at) const { return bytes(at, 2); }
  std::size_t number(std::size_t at) const { return bytes(at, 4); }

 private:
  bool inside(std::size_t at, std::size_t count) const {
    return at <= data_.size() && count <= data_.size() - at;
  }
  std::size_t bytes(std::size_t at, std::size_t count) const {
    if (!inside(at, count)) return 0;
    std::size_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value = value << 8 | static_cast<std::uint8_t>(data_[at + (big_ ? i : count - 1 - i)]);
    return value;
  }
  std::size_t entries(std::size_t directory) const {
    return directory == 0 ? 0 : std::min(word(directory), data_.size() / 12);
  }

  std::string_view data_;
  bool big_;
  std::size_t first_ = 0;
};

// The content of the first segment with this marker that begins with `head`, without the head.
// Looks no further than to the first scan.
std::string_view segment(std::string_view file, std::uint8_t marker, std::string_view head) {
  if (!file.starts_with("\xFF\xD8"sv)) return {};
  std::size_t at = 2;
  while (at + 4 <= file.size() && file[at] == '\xFF') {
    const auto kind = static_cast<std::uint8_t>(file[at + 1]);
    if (kind == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    if (kind == 0xDA || kind == 0xD9) break;
    const std::size_t length = static_cast<std::size_t>(static_cast<std::uint8_t>(file[at + 2]))
                                   << 8 |
                               static_cast<std::uint8_t>(file[at + 3]);
    if (length < 2 || length > file.size() - at - 2) break;
    const std::string_view content = file.substr(at + 4, length - 2);
    if (kind == marker && content.starts_with(head)) return content.substr(head.size());
    at += 2 + length;
  }
  return {};
}

constexpr std::uint8_t kApp1 = 0xE1, kApp2 = 0xE2;

std::string_view index_of(std::string_view file) { return segment(file, kApp2, "MPF\0"sv); }

bool begins_picture(std::string_view file, std::size_t at) {
  return at < file.size() && file.substr(at).starts_with("\xFF\xD8\xFF"sv);
}

// Where the index says that the second view begins; nothing when it does not fit the file.
std::optional<std::size_t> indexed_view(std::string_view file) {
  constexpr unsigned kEntries = 0xB002;
  constexpr std::size_t kEntry = 16, kMostPictures = 64;
  constexpr std::size_t kThumbnails = 0x01, kDisparity = 0x020002;
  const std::string_view index = index_of(file);
  const Tags tags(index);
  const auto list = tags.find(tags.first(), kEntries);
  if (!list || list->type != 7) return {};
  // Offsets count from the index itself.
  const auto base = static_cast<std::size_t>(index.data() - file.data());
  std::optional<std::size_t> other;
  for (std::size_t i = 1; i < std::min(list->count / kEntry, kMostPictures); ++i) {
    const std::size_t kind = tags.number(list->at + kEntry * i) & 0xFFFFFF,
                      at = base + tags.number(list->at + kEntry * i + 8);
    if (at <= base || !begins_picture(file, at)) continue;
    if (kind == kDisparity) return at;
    if (kind >> 16 != kThumbnails && !other) other = at;
  }
  return other;
}

std::optional<double> baseline_of(std::string_view file) {
  constexpr unsigned kBaseline = 0xB206;
  const Tags tags(index_of(file));
  std::size_t directory = tags.first();
  for (int i = 0; i < 3 && directory != 0; ++i, directory = tags.next(directory))
    if (const auto metres = tags.positive(directory, kBaseline); metres && *metres < 100)
      return metres;
  return {};
}

}  // namespace

std::optional<double> PhotoInfo::focal_px(int width, int height, int file_width) const {
  std::optional<double> focal;
  const double diagonal = std::hypot(width, height);
  if (focal_35mm) {
    focal = *focal_35mm / std::hypot(36, 24) * diagonal;
  } else if (focal_mm && sensor_px_mm) {
    // Of files that hold both views nobody knows which width the camera meant.
    const double resized = sensor_width && file_width == width ? width / *sensor_width : 1;
    focal = *focal_mm * *sensor_px_mm * resized;
  }
  // Between a fisheye and a telescope.
  if (focal && !(*focal > 0.15 * diagonal && *focal < 50 * diagonal)) focal.reset();
  return focal;
}

PhotoInfo photo_info(std::string_view file) {
  constexpr unsigned kOrientation = 0x0112, kExif = 0x8769, kFocal = 0x920A, kFocal35 = 0xA405;
  constexpr unsigned kWidth = 0xA002, kPlaneX = 0xA20E, kPlaneUnit = 0xA210;
  constexpr double kUnits[] = {25.4, 25.4, 25.4, 10, 1, 0.001};  // mm; inches where none is told
  const Tags tags(segment(file, kApp1, "Exif\0\0"sv));
  PhotoInfo info;
  if (const auto turn = tags.positive(tags.first(), kOrientation); turn && *turn <= 8)
    info.orientation = static_cast<int>(*turn);
  const auto exif = tags.find(tags.first(), kExif);
  if (!exif || exif->type != 4) return info;
  const std::size_t directory = tags.number(exif->at);
  info.focal_35mm = tags.positive(directory, kFocal35);
  info.focal_mm = tags.positive(directory, kFocal);
  info.sensor_width = tags.positive(directory, kWidth);
  const auto unit = static_cast<std::size_t>(
      std::clamp(tags.positive(directory, kPlaneUnit).value_or(2), 0.0, 5.0));
  if (const auto per_unit = tags.positive(directory, kPlaneX))
    info.sensor_px_mm = *per_unit / kUnits[unit];
  return info;
}

Image upright(const Image& image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const bool quarter = orientation >= 5;
  const int width = image.width(), height = image.height();
  Image result(quarter ? height : width, quarter ? width : height, image.channels(), image.bits());
  const auto pixel = static_cast<std::size_t>(image.channels() * image.bits() / 8);
  const bool from_right =
                 orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
             from_below =
                 orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (int y = 0; y < result.height(); ++y)
    for (int x = 0; x < result.width(); ++x) {
      int column = quarter ? y : x, row = quarter ? x : y;
      if (from_right) column = width - 1 - column;
      if (from_below) row = height - 1 - row;
      std::memcpy(result.row(y) + static_cast<std::size_t>(x) * pixel,
                  image.row(row) + static_cast<std::size_t>(column) * pixel, pixel);
    }
  return result;
}

MultiPicture multi_picture(std::string_view file, const std::string& name) {
  check(begins_picture(file, 0), ErrorKind::kInput,
        "{}: is not an MPO file, which holds JPEG pictures one after the other.", name);
  std::optional<std::size_t> at = indexed_view(file);
  if (!at) {
    at = file.find("\xFF\xD8\xFF"sv, jpeg_end(file, name));
    check(*at != std::string_view::npos, ErrorKind::kInput,
          "{}: holds one picture; an MPO file of a stereo camera holds two. It was perhaps saved "
          "again by a program that dropped the second.",
          name);
  }
  MultiPicture found{file.substr(*at), baseline_of(file)};
  if (!found.baseline) found.baseline = baseline_of(found.right);
  return found;
}

}  // namespace nmrf

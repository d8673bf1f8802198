#include "synth/photos.h"

#include <algorithm>
#include <array>
#include <map>
#include <opencv2/imgproc.hpp>
#include <set>

#include "core/check.h"
#include "core/log.h"
#include "data/mats.h"

namespace nmrf::synth {
namespace fs = std::filesystem;
namespace {

constexpr int kLongSide = 1024;  // larger photographs are reduced; bounds the memory
constexpr int kSmallest = 256;

// 8-bit sRGB-like to linear; a plain power is close enough for textures.
const std::array<float, 256>& linear_table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> t{};
    for (int i = 0; i < 256; ++i)
      t[static_cast<std::size_t>(i)] = std::pow(static_cast<float>(i) / 255.f, 2.2f);
    return t;
  }();
  return table;
}

// Mirrors an index into 0..n-1.
int mirrored(int i, int n) {
  int period = 2 * n;
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - 1 - i;
}

Vec3 bilinear(const cv::Mat& image, float x, float y) {
  const auto& table = linear_table();
  x -= 0.5f, y -= 0.5f;
  float bx = std::floor(x), by = std::floor(y);
  float fx = x - bx, fy = y - by;
  int x0 = mirrored(static_cast<int>(bx), image.cols);
  int x1 = mirrored(static_cast<int>(bx) + 1, image.cols);
  int y0 = mirrored(static_cast<int>(by), image.rows);
  int y1 = mirrored(static_cast<int>(by) + 1, image.rows);
  const cv::Vec3b *row0 = image.ptr<cv::Vec3b>(y0), *row1 = image.ptr<cv::Vec3b>(y1);
  auto color = [&](const cv::Vec3b& p) { return Vec3{table[p[2]], table[p[1]], table[p[0]]}; };
  return mix(mix(color(row0[x0]), color(row0[x1]), fx), mix(color(row1[x0]), color(row1[x1]), fx),
             fy);
}

}  // namespace

Photo::Photo(const cv::Mat& bgr) {
  cv::Mat level = bgr;
  int longest = std::max(bgr.cols, bgr.rows);
  if (longest > kLongSide) {
    double s = static_cast<double>(kLongSide) / longest;
    cv::resize(bgr, level, {}, s, s, cv::INTER_AREA);
  }
  aspect_ = static_cast<float>(level.cols) / static_cast<float>(level.rows);
  levels_.push_back(level.clone());
  while (std::max(level.cols, level.rows) > 1) {
    cv::Mat half;
    cv::resize(level, half, cv::Size((level.cols + 1) / 2, (level.rows + 1) / 2), 0, 0,
               cv::INTER_AREA);
    levels_.push_back(half);
    level = half;
  }
}

Vec3 Photo::color(float u, float v, float width) const {
  u = std::clamp(u, -1e4f, 1e4f), v = std::clamp(v, -1e4f, 1e4f);
  float texels = width * static_cast<float>(levels_[0].rows);
  float level =
      std::clamp(std::log2(std::max(texels, 1.f)), 0.f, static_cast<float>(levels_.size() - 1));
  auto base = static_cast<std::size_t>(level);
  auto at = [&](const cv::Mat& image) {
    return bilinear(image, u / aspect_ * static_cast<float>(image.cols),
                    v * static_cast<float>(image.rows));
  };
  float fraction = level - static_cast<float>(base);
  if (fraction < 0.05f || base + 1 >= levels_.size()) return at(levels_[base]);
  return mix(at(levels_[base]), at(levels_[base + 1]), fraction);
}

PhotoLibrary::PhotoLibrary(const std::string& folder) : folder_(folder) {
  check(fs::is_directory(folder), ErrorKind::kInput,
        "{}: not a folder; expected a folder of photographs for synth.textures", folder);
  static const std::set<std::string> kKnown = {".png", ".jpg", ".jpeg", ".webp",
                                               ".bmp", ".ppm", ".tif",  ".tiff"};
  std::vector<fs::path> paths;
  std::set<fs::path> seen;  // the packages link one picture under many names
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink)) {
    std::string extension = entry.path().extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (!kKnown.count(extension) || !entry.is_regular_file()) continue;
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::error_code ignored;
    fs::path real = fs::canonical(path, ignored);
    if (ignored || !seen.insert(real).second) continue;
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->path = path;
  }
  check(
      !slots_.empty(), ErrorKind::kInput,
      "{}: holds no image (png, jpg, webp, bmp, ppm, tif); expected photographs for synth.textures",
      folder);
}

std::shared_ptr<PhotoLibrary> PhotoLibrary::open(const std::string& folder) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<PhotoLibrary>> libraries;
  std::lock_guard lock(mutex);
  auto& library = libraries[folder];
  if (!library) library.reset(new PhotoLibrary(folder));
  return library;
}

const Photo* PhotoLibrary::load(std::size_t index) {
  Slot& slot = *slots_[index];
  std::call_once(slot.once, [&] {
    try {
      cv::Mat image = read_bgr(slot.path);
      if (std::max(image.cols, image.rows) >= kSmallest && std::min(image.cols, image.rows) >= 16)
        slot.photo = std::make_unique<Photo>(image);
    } catch (const Error& error) {
      log_warning("texture left out: {}", error.what());
    }
  });
  return slot.photo.get();
}

const Photo& PhotoLibrary::photo(std::uint32_t index) {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (const Photo* photo = load((index + i) % slots_.size())) return *photo;
  fail(ErrorKind::kInput, "{}: none of its {} images can be used as a texture", folder_,
       slots_.size());
}

}  // namespace nmrf::synth

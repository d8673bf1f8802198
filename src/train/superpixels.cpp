#include "train/superpixels.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <opencv2/core/utility.hpp>
#include <opencv2/ximgproc/lsc.hpp>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "core/sha256.h"
#include "data/mats.h"
#include "io/formats.h"

namespace nmrf::train {
namespace fs = std::filesystem;

namespace {

constexpr int kRegion = 10;
constexpr float kRatio = 0.075f;
constexpr int kIterations = 20;
// Below this side OpenCV's LSC may find no place for a seed, and divides by zero.
constexpr int kLeastSide = 2 * kRegion;

// Part of the key: change it whenever the same image would get other labels.
constexpr std::string_view kMethod = "LSC 1 region 10 ratio 0.075 iterations 20 BGR\n";

constexpr std::string_view kMark = "nmrf superpixels 1\n";
constexpr std::size_t kDigest = 64;     // hexadecimal digits of a SHA-256
constexpr std::size_t kPngHeader = 33;  // signature and the whole IHDR chunk
constexpr std::uint64_t kFileLimit = std::uint64_t{1} << 30;

void check_image(const cv::Mat& image) {
  check(image.type() == CV_8UC3 && !image.empty(), ErrorKind::kUsage,
        "superpixels: the image is {} x {} of OpenCV type {}; expected 8-bit BGR (type {})",
        image.cols, image.rows, image.type(), CV_8UC3);
}

std::string digest_of(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

// OpenCV on one thread while at least one of these lives: with more, LSC adds its sums in any
// order. The number of threads is the process's, so the first one remembers it and the last one
// restores it.
class OneThread {
 public:
  OneThread() {
    std::lock_guard lock(mutex());
    if (alive()++ > 0) return;
    before() = cv::getNumThreads();
    cv::setNumThreads(1);
  }
  ~OneThread() {
    std::lock_guard lock(mutex());
    if (--alive() == 0) cv::setNumThreads(before());
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static int& alive() {
    static int count = 0;
    return count;
  }
  static int& before() {
    static int threads = 1;
    return threads;
  }
};

}  // namespace

cv::Mat superpixels(const cv::Mat& image) {
  check_image(image);
  cv::Mat large = image, labels;
  const int bottom = std::max(0, kLeastSide - image.rows);
  const int right = std::max(0, kLeastSide - image.cols);
  if (bottom + right > 0)
    cv::copyMakeBorder(image, large, 0, bottom, 0, right,
                       cv::BORDER_REPLICATE | cv::BORDER_ISOLATED);
  OneThread guard;
  auto method = cv::ximgproc::createSuperpixelLSC(large, kRegion, kRatio);
  method->iterate(kIterations);
  method->getLabels(labels);
  check(labels.type() == CV_32SC1 && labels.size() == large.size(), ErrorKind::kFailure,
        "superpixels: OpenCV gave a label map of {} x {}, type {}", labels.cols, labels.rows,
        labels.type());
  return labels(cv::Rect({0, 0}, image.size())).clone();  // getLabels may share its memory
}

std::string encode_labels(const cv::Mat& labels) {
  double least = 0, most = 0;
  cv::minMaxLoc(labels, &least, &most);
  cv::Mat narrow;
  if (least >= 0 && most <= 0xffff)
    labels.convertTo(narrow, CV_16U);
  else
    narrow = cv::Mat(labels.size(), CV_8UC4, labels.data, labels.step);
  const std::string payload = formats::encode_png(view(narrow), "superpixels");
  std::string content(kMark);
  content += digest_of(payload);
  content += payload;
  return content;
}

std::optional<cv::Mat> decode_labels(std::string_view content, cv::Size size) {
  if (content.size() < kMark.size() + kDigest + kPngHeader) return std::nullopt;
  if (content.substr(0, kMark.size()) != kMark) return std::nullopt;
  const std::string_view digest = content.substr(kMark.size(), kDigest);
  const std::string_view png = content.substr(kMark.size() + kDigest);
  if (digest_of(png) != digest) return std::nullopt;
  // Width and height of the header, before the decoder allocates them.
  if (big_endian(png, 16) != static_cast<std::uint32_t>(size.width) ||
      big_endian(png, 20) != static_cast<std::uint32_t>(size.height))
    return std::nullopt;
  Image image = formats::decode_png(png, "superpixels").image;
  cv::Mat narrow = mat(image), labels;
  if (narrow.size() != size) return std::nullopt;
  if (narrow.type() == CV_16UC1) {
    narrow.convertTo(labels, CV_32S);
  } else if (narrow.type() == CV_8UC4) {
    constexpr int kSwap[] = {0, 2, 1, 1, 2, 0, 3, 3};  // files are in RGBA order
    labels.create(size, CV_32SC1);
    cv::Mat bytes(size, CV_8UC4, labels.data, labels.step);
    cv::mixChannels(&narrow, 1, &bytes, 1, kSwap, 4);
  } else {
    return std::nullopt;
  }
  return labels;
}

SuperpixelCache::SuperpixelCache(fs::path folder) : folder_(std::move(folder)) {
  if (!folder_.empty()) make_folder(folder_);
}

fs::path SuperpixelCache::path_of(const cv::Mat& image) const {
  check_image(image);
  if (folder_.empty()) return {};
  Sha256 hash;
  hash.update(kMethod);
  hash.update(fmt::format("{} {}\n", image.cols, image.rows));
  for (int row = 0; row < image.rows; ++row)
    hash.update(image.ptr(row), static_cast<std::size_t>(image.cols) * image.elemSize());
  const std::string name = hash.hex();
  return folder_ / name.substr(0, 2) / (name.substr(2) + ".lsc");  // 256 folders of moderate size
}

cv::Mat SuperpixelCache::get(const cv::Mat& image) const {
  const fs::path path = path_of(image);
  std::error_code code;
  if (!path.empty() && fs::exists(path, code)) {
    std::optional<cv::Mat> found;
    try {
      found = decode_labels(read_file(path, ErrorKind::kInput, kFileLimit), image.size());
    } catch (const Error&) {  // unreadable, or just being replaced
    } catch (const cv::Exception&) {
    }
    if (found) {
      ++hits_;
      return *found;
    }
    ++damaged_;
    log_warning("{}: this file of superpixels is damaged; it is computed again", path.string());
  }
  ++computed_;
  cv::Mat labels = superpixels(image);
  if (!path.empty()) keep(path, labels);
  return labels;
}

Segmenter cached_superpixels(const fs::path& folder) {
  auto cache = std::make_shared<const SuperpixelCache>(folder);
  return [cache](const cv::Mat& image) { return cache->get(image); };
}

void SuperpixelCache::keep(const fs::path& path, const cv::Mat& labels) const {
  try {
    make_folder(path.parent_path());
    write_file(path, encode_labels(labels));
  } catch (const Error& error) {
    // Another machine may have had the same idea and the same temporary name; then all is well.
    std::error_code code;
    if (fs::is_regular_file(path, code)) return;
    if (!warned_.exchange(true))
      log_warning("{} Superpixels are computed again every time they are needed.", error.what());
  }
}

}  // namespace nmrf::train

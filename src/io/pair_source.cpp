#include "io/pair_source.h"

#include <glob.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <new>
#include <set>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "io/codec.h"
#include "io/folders.h"
#include "io/list_file.h"
#include "io/photo_info.h"
#include "io/picture_check.h"
#include "io/video.h"
#include "nmrf/files.h"

namespace nmrf {
namespace fs = std::filesystem;

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

bool is_pattern(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos && !fs::exists(text);
}

bool is_video(const fs::path& path) {
  static const std::set<std::string> known{".mp4",  ".avi",   ".mkv",  ".mov", ".webm",
                                           ".m4v",  ".mpg",   ".mpeg", ".ts",  ".wmv",
                                           ".mjpg", ".mjpeg", ".y4m"};
  return known.contains(lower_extension(path));
}

// One picture of each side, or one picture of both (right empty).
struct Entry {
  fs::path left, right;
  std::string stem;
};

// What matching looks at: a path, and the part of it that must fit the other side.
struct Candidate {
  fs::path path;
  std::string key;
};

// The file name of `path` with `parents` folder names in front: "a/b/c.png", 1 -> "b_c".
std::string stem_with_parents(const fs::path& path, int parents) {
  std::string stem = path.stem().string();
  fs::path above = path.parent_path();
  for (int i = 0; i < parents && above.has_filename(); ++i, above = above.parent_path()) {
    std::string part = above.filename().string();
    if (part != "." && part != "..") stem.insert(0, part + "_");
  }
  return stem;
}

// Gives all entries different stems: file names, with as many parent folders in front as it takes.
// A picture that comes again gets a number.
void name_entries(std::vector<Entry>& entries) {
  std::set<fs::path> pictures;
  for (const auto& entry : entries) pictures.insert(entry.left);
  int parents = 0;
  for (; parents < 8; ++parents) {
    std::set<std::string> seen;
    for (const auto& picture : pictures) seen.insert(stem_with_parents(picture, parents));
    if (seen.size() == pictures.size()) break;
  }
  std::set<std::string> taken;
  for (auto& entry : entries) {
    std::string stem = stem_with_parents(entry.left, parents);
    entry.stem = stem;
    for (int again = 2; !taken.insert(entry.stem).second; ++again)
      entry.stem = fmt::format("{}-{}", stem, again);
  }
}

// Of pictures that hold two views.
std::optional<Layout> layout_by_name(const fs::path& path) {
  const std::string extension = lower_extension(path);
  if (extension == ".mpo") return Layout::kMpo;
  if (extension == ".jps" || extension == ".pns") return Layout::kCrossed;
  return {};
}

std::vector<Candidate> in_folder(const fs::path& folder) {
  std::vector<Candidate> found;
  for (const auto& name : scan::file_names(folder))
    if (scan::is_image_extension(fs::path(name).extension().string()) || layout_by_name(name))
      found.push_back({folder / name, fs::path(name).stem().string()});
  check(!found.empty(), ErrorKind::kInput,
        "{}: the folder contains no images (png, jpg, webp, bmp, tiff, ppm, pgm)", folder.string());
  return found;
}

// Matches `text` against a pattern of * ? [ ] and notes what each wildcard stands for. Wildcards do
// not cross slashes.
bool capture(const char* pattern, const char* text, std::string& captured) {
  if (*pattern == '\0') return *text == '\0';
  if (*pattern == '*') {
    for (std::size_t length = 0;; ++length) {
      std::string below;
      if (capture(pattern + 1, text + length, below)) {
        captured = "/" + std::string(text, length) + below;
        return true;
      }
      if (text[length] == '\0' || text[length] == '/') return false;
    }
  }
  if (*text == '\0') return false;
  const char* after = pattern + 1;
  bool wild = *pattern == '?';
  if (*pattern == '[') {  // glob() has checked the character already
    const char* close = pattern + 1;
    if (*close == '!' || *close == '^') ++close;
    if (*close == ']') ++close;
    while (*close != '\0' && *close != ']') ++close;
    if (*close == ']') {
      wild = true;
      after = close + 1;
    }
  }
  if (!wild && *pattern != *text) return false;
  std::string below;
  if (!capture(after, text + 1, below)) return false;
  captured = (wild ? "/" + std::string(1, *text) : "") + below;
  return true;
}

std::vector<Candidate> by_pattern(const std::string& pattern) {
  glob_t matches{};
  int code = ::glob(pattern.c_str(), GLOB_TILDE, nullptr, &matches);
  std::vector<Candidate> found;
  for (std::size_t i = 0; code == 0 && i < matches.gl_pathc; ++i) {
    fs::path path = matches.gl_pathv[i];
    if (!fs::is_regular_file(path)) continue;
    std::string key;
    if (!capture(pattern.c_str(), path.c_str(), key)) key = "/" + path.stem().string();
    found.push_back({path, key.substr(std::min<std::size_t>(1, key.size()))});
  }
  ::globfree(&matches);
  check(!found.empty(), ErrorKind::kInput,
        "no file matches '{}'. In a shell, put the pattern in quotes.", pattern);
  // glob() sorts by the locale; bytes sort the same everywhere.
  std::sort(found.begin(), found.end(),
            [](const Candidate& a, const Candidate& b) { return a.path < b.path; });
  return found;
}

std::vector<Candidate> candidates(const std::string& side) {
  return fs::is_directory(side) ? in_folder(side) : by_pattern(side);
}

std::vector<Entry> match(const std::vector<Candidate>& left, const std::vector<Candidate>& right,
                         const PairInput& input) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    bool both = i < left.size() && i < right.size();
    if (both && name_without_side(left[i].key) == name_without_side(right[i].key)) {
      entries.push_back({left[i].path, right[i].path, ""});
      continue;
    }
    // The one that sorts first is the one whose partner is missing.
    bool left_is_odd =
        !both ? i < left.size() : name_without_side(left[i].key) < name_without_side(right[i].key);
    const Candidate& odd = left_is_odd ? left[i] : right[i];
    fail(ErrorKind::kInput,
         "{}: has no counterpart in '{}' ({} left images, {} right). Both sides need the same file "
         "names, apart from the words left and right.",
         odd.path.string(), left_is_odd ? input.right : input.left, left.size(), right.size());
  }
  return entries;
}

Image rgb8(Image image, const std::string& name) {
  const bool done = image.channels() == 3 && image.bits() == 8;
  return done ? std::move(image) : to_rgb8(image, name);
}

// Cuts both halves out of a picture that shows the two views.
void cut_halves(const Image& whole, Layout layout, const std::string& name, InputPair& pair) {
  const bool above = layout == Layout::kTopBottom || layout == Layout::kBottomTop;
  const int side = above ? whole.height() : whole.width();
  check(side >= 2 && side % 2 == 0, ErrorKind::kInput,
        "{}: is {} pixels {}; two views {} have an even {}", name, side, above ? "high" : "wide",
        above ? "above each other" : "side by side", above ? "height" : "width");
  ImageView half = whole;
  (above ? half.height : half.width) /= 2;
  half.stride = static_cast<std::ptrdiff_t>(whole.row_bytes());
  const bool swapped = layout == Layout::kCrossed || layout == Layout::kBottomTop;
  (swapped ? pair.right : pair.left) = to_rgb8(half, name);
  half.data = above ? whole.row(half.height) : whole.row(0) + half.row_bytes();
  (swapped ? pair.left : pair.right) = to_rgb8(half, name);
}

void check_sizes(const InputPair& pair) {
  check(pair.left.width() == pair.right.width() && pair.left.height() == pair.right.height(),
        ErrorKind::kInput,
        "{} is {} x {} pixels, but {} is {} x {}; both images of a rectified pair must have the "
        "same size",
        pair.left_name, pair.left.width(), pair.left.height(), pair.right_name, pair.right.width(),
        pair.right.height());
}

// Runs `read`, which fills the images; what it throws becomes the pair's error.
template <class Read>
void guarded(InputPair& pair, Read&& read) {
  try {
    read();
    check_sizes(pair);
  } catch (const Error& error) {
    pair.error = error;
  } catch (const std::bad_alloc&) {
    pair.error = Error(ErrorKind::kDevice, pair.left_name + ": there is not enough memory for it");
  }
  if (pair.error) pair.left = pair.right = Image();
}

class PictureSource : public PairSource {
 public:
  // An entry without a right picture has the layout of the input, or that of its name.
  PictureSource(std::vector<Entry> entries, const PairInput& input)
      : entries_(std::move(entries)), layout_(input.layout), upright_(input.upright) {
    const Shard& shard = input.shard;
    name_entries(entries_);  // all of them: names must not depend on who has which
    std::int64_t item = 0;
    std::erase_if(entries_, [&](const Entry&) { return !shard.owns(item++); });
  }
  bool next(InputPair& pair) override {
    if (at_ >= entries_.size()) return false;
    const Entry& entry = entries_[at_];
    pair = {};
    pair.stem = entry.stem;
    pair.index = static_cast<std::int64_t>(at_++);
    pair.left_name = entry.left.string();
    pair.right_name = (entry.right.empty() ? entry.left : entry.right).string();
    guarded(pair, [&] {
      if (entry.right.empty())
        read_both(entry.left, pair);
      else
        read_each(entry, pair);
    });
    return true;
  }
  std::optional<std::int64_t> total() const override {
    return static_cast<std::int64_t>(entries_.size());
  }

 private:
  void read_both(const fs::path& path, InputPair& pair) {
    const std::string content = bytes_of(path);
    const PhotoInfo info = photo_info(content);
    const Layout layout =
        layout_ == Layout::kByName ? layout_by_name(path).value_or(layout_) : layout_;
    Image first = decode_image(content, pair.left_name);
    const int file_width = first.width();
    if (layout == Layout::kMpo) {
      const MultiPicture both = multi_picture(content, pair.left_name);
      pair.left = rgb8(std::move(first), pair.left_name);
      pair.right = rgb8(decode_image(both.right, pair.right_name), pair.right_name);
      pair.baseline_guess = both.baseline;
    } else {
      cut_halves(first, layout, pair.left_name, pair);
    }
    pair.focal_guess = info.focal_px(pair.left.width(), pair.left.height(), file_width);
    turn(pair.left, info, pair.left_name);
    turn(pair.right, info, pair.left_name);
  }
  void read_each(const Entry& entry, InputPair& pair) {
    auto read = [&](const fs::path& path, const std::string& name, Image& image) {
      const std::string content = bytes_of(path);
      image = rgb8(decode_image(content, name), name);
      const PhotoInfo info = photo_info(content);
      const auto focal = info.focal_px(image.width(), image.height(), image.width());
      turn(image, info, name);
      return focal;
    };
    pair.focal_guess = read(entry.left, pair.left_name, pair.left);
    read(entry.right, pair.right_name, pair.right);
  }
  static std::string bytes_of(const fs::path& path) {
    return read_file(path, ErrorKind::kInput, kMaxPictureBytes);
  }
  void turn(Image& image, const PhotoInfo& info, const std::string& name) {
    if (info.orientation == 1) return;
    if (upright_) {
      image = upright(image, info.orientation);
    } else if (!warned_) {
      log_warning(
          "{}: the photo has EXIF orientation {}, which is ignored; PairInput::upright rotates it "
          "first.",
          name, info.orientation);
      warned_ = true;
    }
  }

  std::vector<Entry> entries_;
  Layout layout_;
  bool upright_, warned_ = false;
  std::size_t at_ = 0;
};

class VideoSource : public PairSource {
 public:
  // `right` empty: the frames of `left` hold both views.
  VideoSource(const std::string& left, const std::string& right, Layout layout)
      : left_(open_video(left)),
        right_(right.empty() ? nullptr : open_video(right)),
        names_{left, right},
        prefix_(fs::path(left).stem().string()),
        layout_(layout) {}
  VideoSource(const std::string& camera, Layout layout)
      : left_(open_camera(camera)),
        names_{"camera " + camera, ""},
        prefix_("camera" + camera.substr(0, camera.find_first_not_of("0123456789"))),
        layout_(layout),
        camera_(true) {}
  bool next(InputPair& pair) override {
    Image first, second;
    bool has_left = left_->next(first);
    bool has_right = right_ ? right_->next(second) : has_left;
    if (has_left != has_right)
      log_warning("{} ends after {} frames, before {}; the remaining frames are ignored",
                  names_[has_left ? 1 : 0], index_, names_[has_left ? 0 : 1]);
    if (!has_left || !has_right) {
      check(index_ > 0, ErrorKind::kInput, "{}: no frame can be read from this video",
            names_[has_left ? 1 : 0]);
      return false;
    }
    pair = {};
    pair.index = index_++;
    pair.stem = fmt::format("{}_{:06}", prefix_, pair.index);
    pair.left_name = fmt::format("{}, frame {}", names_[0], pair.index);
    pair.right_name = right_ ? fmt::format("{}, frame {}", names_[1], pair.index) : pair.left_name;
    guarded(pair, [&] {
      if (right_) {
        pair.left = rgb8(std::move(first), pair.left_name);
        pair.right = rgb8(std::move(second), pair.right_name);
      } else {
        cut_halves(first, layout_, pair.left_name, pair);
      }
    });
    return true;
  }
  std::optional<std::int64_t> total() const override {
    if (camera_) return {};
    const auto frames = left_->frame_count();
    if (!right_ || !frames) return frames;
    const auto others = right_->frame_count();
    return others ? std::optional(std::min(*frames, *others)) : std::nullopt;
  }
  // Cameras do not always tell.
  std::optional<double> frame_rate() const override {
    const auto rate = left_->frame_rate();
    return camera_ ? rate.value_or(30) : rate;
  }

 private:
  std::unique_ptr<VideoReader> left_, right_;
  std::string names_[2], prefix_;
  Layout layout_;
  bool camera_ = false;
  std::int64_t index_ = 0;
};

std::unique_ptr<PairSource> open_video_pairs(const PairInput& input) {
  check(input.shard.world == 1, ErrorKind::kUsage,
        "{}: the frames of a video depend on each other and cannot be shared by {} processes "
        "(WORLD_SIZE)",
        input.left, input.shard.world);
  return std::make_unique<VideoSource>(input.left, input.right, input.layout);
}

std::vector<Entry> from_list(const PairInput& input) {
  fs::path list = input.list;
  fs::path base = input.root.empty() ? list.parent_path() : fs::path(input.root);
  std::vector<Entry> entries;
  for (const auto& [number, columns] : read_list(list)) {
    check(columns.size() >= 2, ErrorKind::kInput,
          "{}, line {}: has one column; expected 'left right'", list.string(), number);
    entries.push_back({base / columns[0], base / columns[1], ""});
  }
  check(!entries.empty(), ErrorKind::kInput, "{}: the list has no line of the form 'left right'",
        list.string());
  return entries;
}

void check_file(const std::string& path) {
  check(fs::exists(path), ErrorKind::kInput,
        "{}: no such file or folder. Check the path; a pattern with * needs quotes.", path);
}

}  // namespace

std::string name_without_side(const std::string& name) {
  std::string text(name.size(), ' ');
  std::transform(name.begin(), name.end(), text.begin(), lower);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t skip = 0;
    if (text.compare(i, 4, "left") == 0) skip = 4;
    if (text.compare(i, 5, "right") == 0) skip = 5;
    bool alone =
        (i == 0 || !is_letter(text[i - 1])) && (i + 1 == text.size() || !is_letter(text[i + 1]));
    if (skip == 0 && alone && (text[i] == 'l' || text[i] == 'r')) skip = 1;
    out += skip ? '*' : text[i];
    i += std::max<std::size_t>(skip, 1);
  }
  return out;
}

std::unique_ptr<PairSource> open_pairs(const PairInput& input) {
  if (!input.list.empty()) {
    check(input.left.empty() && input.right.empty() && input.layout == Layout::kByName,
          ErrorKind::kUsage, "give either a list file or a left and a right input, not both");
    return std::make_unique<PictureSource>(from_list(input), input);
  }
  if (input.camera) {
    check(input.left.empty() && input.right.empty(), ErrorKind::kUsage,
          "give either a camera or files, not both");
    return std::make_unique<VideoSource>(*input.camera, input.layout);
  }
  check(!input.left.empty(), ErrorKind::kUsage,
        "no input given; expected a left and a right image");
  if (input.layout != Layout::kByName || (input.right.empty() && layout_by_name(input.left))) {
    check(input.right.empty(), ErrorKind::kUsage,
          "with this layout one image holds both views; drop '{}'", input.right);
    std::vector<Entry> entries;
    if (fs::is_directory(input.left) || is_pattern(input.left)) {
      for (auto& candidate : candidates(input.left)) entries.push_back({candidate.path, "", ""});
    } else {
      check_file(input.left);
      if (is_video(input.left)) {
        check(input.layout != Layout::kMpo, ErrorKind::kUsage,
              "'{}' is a video; MPO files are pictures", input.left);
        return open_video_pairs(input);
      }
      entries.push_back({input.left, "", ""});
    }
    return std::make_unique<PictureSource>(std::move(entries), input);
  }
  check(!input.right.empty(), ErrorKind::kUsage,
        "'{}' needs a right image too, or PairInput::layout if it holds both views", input.left);
  auto is_many = [](const std::string& side) { return fs::is_directory(side) || is_pattern(side); };
  if (is_many(input.left) || is_many(input.right)) {
    for (const std::string& side : {input.left, input.right})
      check(is_many(side), ErrorKind::kUsage,
            "'{}' is a file but the other input is a folder or pattern; give two files, two "
            "folders or two patterns",
            side);
    return std::make_unique<PictureSource>(
        match(candidates(input.left), candidates(input.right), input), input);
  }
  check_file(input.left);
  check_file(input.right);
  check(is_video(input.left) == is_video(input.right), ErrorKind::kUsage,
        "'{}' and '{}': one is a video and the other is not", input.left, input.right);
  if (is_video(input.left)) return open_video_pairs(input);
  return std::make_unique<PictureSource>(std::vector<Entry>{{input.left, input.right, ""}}, input);
}

}  // namespace nmrf

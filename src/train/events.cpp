#include "train/events.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <opencv2/imgcodecs.hpp>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "core/log.h"

namespace nmrf::train {
namespace fs = std::filesystem;

namespace {

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

// The few shapes of protocol buffer fields that events need.
class Message {
 public:
  Message& varint(int field, std::uint64_t value) {
    key(field, 0);
    number(value);
    return *this;
  }
  Message& fixed64(int field, double value) {
    key(field, 1);
    raw(&value, 8);
    return *this;
  }
  Message& fixed32(int field, float value) {
    key(field, 5);
    raw(&value, 4);
    return *this;
  }
  Message& bytes(int field, const std::string& value) {
    key(field, 2);
    number(value.size());
    text_ += value;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void key(int field, int type) { number(static_cast<std::uint64_t>(field) << 3 | type); }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  void raw(const void* data, std::size_t size) {
    text_.append(static_cast<const char*>(data), size);
  }
  std::string text_;
};

double now() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Event{wall_time = 1, step = 2, summary = 5{value = 1{...}}}
std::string event_of(std::int64_t step, const Message& value) {
  Message summary, event;
  summary.bytes(1, value.text());
  event.fixed64(1, now()).varint(2, static_cast<std::uint64_t>(step)).bytes(5, summary.text());
  return event.text();
}

constexpr std::string_view kPrefix = "events.out.tfevents.";

std::uint64_t read_varint(std::string_view text, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0; at < text.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(text[at++]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// The step of an event as event_of() writes it: behind the wall time. 0 when it has none.
std::int64_t step_of(std::string_view event) {
  std::size_t at = 9;  // a key and a double
  if (event.size() <= at || event[0] != (1 << 3 | 1) || event[at] != (2 << 3 | 0)) return 0;
  ++at;
  return static_cast<std::int64_t>(read_varint(event, at));
}

// The records of an event file up to `keep_until`, and how many those are. A record that was cut
// short when its process was killed ends the file.
std::pair<std::string, int> kept_records(const std::string& bytes, std::int64_t keep_until) {
  std::string kept;
  int count = 0;
  for (std::size_t at = 0; bytes.size() - at >= 16;) {
    std::uint64_t length = 0;
    std::memcpy(&length, &bytes[at], 8);
    if (length > bytes.size() - at - 16) break;
    const std::size_t whole = 16 + static_cast<std::size_t>(length);
    if (step_of(std::string_view(bytes).substr(at + 12, length)) <= keep_until) {
      kept.append(bytes, at, whole);
      ++count;
    }
    at += whole;
  }
  return {kept, count};
}

// Cuts later events from the event files of a folder. Returns the time in the name of the newest.
long long cut_files(const fs::path& folder, std::int64_t keep_until) {
  long long newest = 0;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(kPrefix)) files.push_back(entry.path());
  for (const fs::path& path : files) {
    newest = std::max(newest, std::atoll(path.filename().string().substr(kPrefix.size()).c_str()));
    const std::string bytes = read_file(path, ErrorKind::kFailure);
    const auto [kept, count] = kept_records(bytes, keep_until);
    std::error_code ignored;
    if (count <= 1)  // nothing but the version
      fs::remove(path, ignored);
    else if (kept.size() < bytes.size())
      write_file(path, kept);
  }
  return newest;
}

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t start) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0);
      t[i] = value;
    }
    return t;
  }();
  std::uint32_t crc = ~start;
  const auto* cursor = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) crc = table[(crc ^ cursor[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
}

EventFile::EventFile(const fs::path& folder, std::int64_t keep_until) {
  make_folder(folder);
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  const long long seconds =
      std::max(static_cast<long long>(now()), cut_files(folder, keep_until) + 1);
  path_ = folder / (std::string(kPrefix) + std::to_string(seconds) + "." + host);
  file_ = std::fopen(path_.c_str(), "wb");
  check(file_ != nullptr, ErrorKind::kFailure, "{}: cannot be written: {}", path_.string(),
        std::strerror(errno));
  Message head;
  head.fixed64(1, now()).bytes(3, "brain.Event:2");
  record(head.text());
}

EventFile::~EventFile() { std::fclose(file_); }

void EventFile::record(const std::string& payload) {
  const std::uint64_t length = payload.size();
  const std::uint32_t length_crc = masked(crc32c(&length, 8));
  const std::uint32_t data_crc = masked(crc32c(payload.data(), payload.size()));
  std::fwrite(&length, 8, 1, file_);
  std::fwrite(&length_crc, 4, 1, file_);
  std::fwrite(payload.data(), 1, payload.size(), file_);
  std::fwrite(&data_crc, 4, 1, file_);
  complain();
}

// Curves are not worth a run: the checkpoints tell when the disk is really full.
void EventFile::complain() {
  if (!std::ferror(file_) || complained_) return;
  complained_ = true;
  log_warning("{}: writing failed: {}. The run goes on; its curves will have gaps.", path_.string(),
              std::strerror(errno));
}

void EventFile::scalar(std::int64_t step, const std::string& tag, double value) {
  Message entry;
  entry.bytes(1, tag).fixed32(2, static_cast<float>(value));
  record(event_of(step, entry));
}

void EventFile::picture(std::int64_t step, const std::string& tag, const cv::Mat& bgr) {
  std::vector<std::uint8_t> png;
  cv::imencode(".png", bgr, png);
  Message image, entry;
  image.varint(1, static_cast<std::uint64_t>(bgr.rows))
      .varint(2, static_cast<std::uint64_t>(bgr.cols))
      .varint(3, static_cast<std::uint64_t>(bgr.channels()))
      .bytes(4, std::string(png.begin(), png.end()));
  entry.bytes(1, tag).bytes(4, image.text());
  record(event_of(step, entry));
}

void EventFile::flush() {
  std::fflush(file_);
  complain();
}

}  // namespace nmrf::train

#include <algorithm>
#include <filesystem>

#include "io/module.h"
#include "io/pictures.h"
#include "io/video.h"

namespace nmrf::test {
namespace {

std::string little(std::size_t value, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

std::string chunk(const std::string& name, const std::string& data) {
  return name + little(data.size()) + data + (data.size() % 2 ? std::string(1, '\0') : "");
}

std::string list(const std::string& name, const std::string& data) {
  return chunk("LIST", name + data);
}

}  // namespace

std::string avi_file(const std::vector<Image>& frames, int frames_per_second) {
  const auto width = static_cast<std::size_t>(frames.at(0).width());
  const auto height = static_cast<std::size_t>(frames.at(0).height());
  const auto rate = static_cast<std::size_t>(frames_per_second);
  std::string images, index;
  std::size_t largest = 0;
  for (const Image& frame : frames) {
    const std::string jpeg = jpeg_file(frame, {});
    index += "00dc" + little(16) + little(images.size() + 4) + little(jpeg.size());
    images += chunk("00dc", jpeg);
    largest = std::max(largest, jpeg.size());
  }
  const std::string main = little(1000000 / rate) + little(largest * rate) + little(0) +
                           little(16) + little(frames.size()) + little(0) + little(1) +
                           little(largest) + little(width) + little(height) + std::string(16, '\0');
  const std::string stream = "vidsMJPG" + little(0) + little(0) + little(0) + little(1) +
                             little(rate) + little(0) + little(frames.size()) + little(largest) +
                             little(0xFFFFFFFF) + little(0) + little(0, 2) + little(0, 2) +
                             little(width, 2) + little(height, 2);
  const std::string format = little(40) + little(width) + little(height) + little(1, 2) +
                             little(24, 2) + "MJPG" + little(width * height * 3) +
                             std::string(16, '\0');
  const std::string headers = list(
      "hdrl", chunk("avih", main) + list("strl", chunk("strh", stream) + chunk("strf", format)));
  return chunk("RIFF", "AVI " + headers + list("movi", images) + chunk("idx1", index));
}

bool has_video_module() {
  const auto folders = module_folders();
  return std::any_of(folders.begin(), folders.end(), [](const auto& folder) {
    return std::filesystem::exists(folder / kVideoModule);
  });
}

}  // namespace nmrf::test

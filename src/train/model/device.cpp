#include "train/model/device.h"

#include <algorithm>
#include <cstdlib>

#include "core/check.h"
#include "core/log.h"

namespace nmrf::train {
namespace {

// The GPU of this process among those of the machine.
int own_gpu() {
  const char* rank = std::getenv("LOCAL_RANK");
  const int count = std::max(1, static_cast<int>(torch::cuda::device_count()));
  return rank ? std::max(0, std::atoi(rank)) % count : 0;
}

}  // namespace

torch::Device choose_device(const std::string& wish) {
  const bool cuda = torch::cuda::is_available();
  if (wish == "auto") {
    if (!cuda) {
      log_info("device: cpu, as this libtorch sees no CUDA device");
      return torch::Device(torch::kCPU);
    }
    const int gpu = own_gpu();
    log_info("device: cuda:{}, of {}", gpu, static_cast<int>(torch::cuda::device_count()));
    return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  }
  if (wish == "cpu") {
    log_info("device: cpu, as asked");
    return torch::Device(torch::kCPU);
  }
  check(wish == "cuda" || (wish.rfind("cuda:", 0) == 0 && wish.size() > 5 && wish.size() < 9 &&
                           wish.find_first_not_of("0123456789", 5) == std::string::npos),
        ErrorKind::kUsage, "device '{}': expected auto, cpu, cuda or cuda:N", wish);
  check(cuda, ErrorKind::kDevice,
        "device '{}': this libtorch sees no CUDA device. Use --device cpu, or build nmrf against a "
        "libtorch with CUDA.",
        wish);
  const int index = wish == "cuda" ? own_gpu() : std::stoi(wish.substr(5));
  check(index < static_cast<int>(torch::cuda::device_count()), ErrorKind::kDevice,
        "device '{}': there are {} CUDA devices", wish,
        static_cast<int>(torch::cuda::device_count()));
  log_info("device: cuda:{}, as asked", index);
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

}  // namespace nmrf::train

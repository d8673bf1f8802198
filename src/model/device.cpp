#include "model/device.h"

#include "core/check.h"
#include "core/log.h"

namespace nmrf {

torch::Device choose_device(const std::string& wish) {
  const bool cuda = torch::cuda::is_available();
  if (wish == "auto") {
    log_info("device: {}",
             cuda ? "cuda:0, the first GPU" : "cpu, as this libtorch sees no CUDA device");
    return cuda ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
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
  const int index = wish == "cuda" ? 0 : std::stoi(wish.substr(5));
  check(index < static_cast<int>(torch::cuda::device_count()), ErrorKind::kDevice,
        "device '{}': there are {} CUDA devices", wish,
        static_cast<int>(torch::cuda::device_count()));
  log_info("device: cuda:{}, as asked", index);
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

}  // namespace nmrf

// Choosing where tensors live.
#pragma once

#include <torch/torch.h>

#include <string>

namespace nmrf {

// "auto" takes a GPU when this libtorch has one; "cpu", "cuda", "cuda:1". Throws Error(kUsage) for
// another word, Error(kDevice) when there is no such device. Logs what was chosen and why.
torch::Device choose_device(const std::string& wish);

}  // namespace nmrf

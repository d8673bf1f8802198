// Several processes that train one network: the same weights everywhere, gradients averaged.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace nmrf::train {

// The processes of a run. With one process every call is a no-op.
class ProcessGroup {
 public:
  // From MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, as torchrun, Slurm wrappers and `--nproc`
  // set them; alone when WORLD_SIZE is unset or 1. Uses Gloo, and with `cuda` NCCL for CUDA tensors
  // where this libtorch has it. Throws Error(kUsage) for half-set variables, Error(kFailure) when
  // the others do not come.
  static std::shared_ptr<ProcessGroup> from_environment(double timeout_seconds, bool cuda);
  virtual ~ProcessGroup() = default;

  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  // Replaces the tensor by the sum over all processes; `wait` of the result before use.
  class Work {
   public:
    virtual ~Work() = default;
    // Throws Error(kFailure) when a peer is lost.
    virtual void wait() = 0;
  };
  virtual std::unique_ptr<Work> sum(torch::Tensor&) { return nullptr; }
  // Rank 0's content everywhere.
  virtual void broadcast(torch::Tensor&) {}
  virtual void barrier() {}

  void sum_now(torch::Tensor& tensor) {
    if (auto work = sum(tensor)) work->wait();
  }
};

// Averages gradients over the processes in buckets, each sent as soon as backward has filled it.
class GradientAverager {
 public:
  GradientAverager(std::shared_ptr<ProcessGroup> group,
                   const std::vector<std::pair<std::string, torch::Tensor>>& parameters,
                   std::size_t bucket_bytes = 4 << 20);
  ~GradientAverager();

  // Call before the backward pass whose gradients shall be averaged (the last one of an
  // accumulation).
  void arm();
  // Call after it: sends what is left, waits, and writes the averages into the gradients.
  void finish();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace nmrf::train

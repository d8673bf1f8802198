#include "train/distributed.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#ifdef NMRF_WITH_GLOO
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
// Its content is there only in a libtorch that was built with NCCL.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <chrono>
#include <cstdlib>

#include "core/check.h"

namespace nmrf::train {
namespace {

#ifdef NMRF_WITH_GLOO

[[noreturn]] void lost(const std::exception& error) {
  std::string reason = error.what();
  reason = reason.substr(0, reason.find('\n'));
  fail(ErrorKind::kFailure,
       "lost contact with another process of this run ({}). Start all processes again with "
       "--resume: "
       "the run goes on from its last checkpoint.",
       reason);
}

// This machine's own address on the way to `host`: peers behind the same network reach it there.
// Empty when `host` has no address or no way leads to it.
std::string own_address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  std::string address;
  for (addrinfo* a = found; a && address.empty(); a = a->ai_next) {
    // Connecting a datagram socket sends nothing; it only chooses the route.
    const int fd = ::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char text[NI_MAXHOST] = "";
    if (fd >= 0 && ::connect(fd, a->ai_addr, a->ai_addrlen) == 0 &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0)
      address = text;
    if (fd >= 0) ::close(fd);
  }
  ::freeaddrinfo(found);
  return address;
}

// libtorch's process groups: Gloo, and NCCL beside it for tensors on GPUs where it is there.
class C10dGroup : public ProcessGroup {
 public:
  C10dGroup(const std::string& address, int port, int rank, int size, double timeout,
            [[maybe_unused]] bool cuda) {
    const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000));
    try {
      c10d::TCPStoreOptions store_options;
      store_options.port = static_cast<std::uint16_t>(port);
      store_options.isServer = rank == 0;
      store_options.numWorkers = size;
      store_options.timeout = limit;
      store_ = c10::make_intrusive<c10d::TCPStore>(address, store_options);
      auto options = c10d::ProcessGroupGloo::Options::create(limit);
      const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
      const std::string own = own_address_towards(address, port);
      options->devices.push_back(
          interface && *interface ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
          : !own.empty()          ? c10d::ProcessGroupGloo::createDeviceForHostname(own)
                                  : c10d::ProcessGroupGloo::createDefaultDevice());
      gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, rank, size, options);
#ifdef USE_C10D_NCCL
      if (cuda) {
        // Without this a lost peer would be waited for without end.
        ::setenv("NCCL_BLOCKING_WAIT", "1", 0);
        ::setenv("TORCH_NCCL_BLOCKING_WAIT", "1", 0);  // its name in libtorch 2
        auto nccl_options = c10d::ProcessGroupNCCL::Options::create();
        nccl_options->timeout = limit;
        nccl_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(
            c10::make_intrusive<c10d::PrefixStore>("nccl", store_), rank, size, nccl_options);
      }
#endif
    } catch (const std::exception& error) {
      std::string reason = error.what();
      fail(ErrorKind::kFailure,
           "the {} processes of this run did not find each other at {}:{} within {:.0f} s ({}). "
           "Check MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE of each, and firewalls between "
           "them; GLOO_SOCKET_IFNAME names the network interface to use.",
           size, address, port, timeout, reason.substr(0, reason.find('\n')));
    }
  }
  int rank() const override { return gloo_->getRank(); }
  int size() const override { return gloo_->getSize(); }

  std::unique_ptr<Work> sum(torch::Tensor& tensor) override {
    try {
      std::vector<torch::Tensor> tensors{tensor};
#ifdef USE_C10D_NCCL
      if (nccl_ && tensor.is_cuda()) return std::make_unique<C10dWork>(nccl_->allreduce(tensors));
#endif
      return std::make_unique<C10dWork>(gloo_->allreduce(tensors));
    } catch (const std::exception& error) {
      lost(error);
    }
  }
  void broadcast(torch::Tensor& tensor) override {
    try {
      std::vector<torch::Tensor> tensors{tensor};
#ifdef USE_C10D_NCCL
      if (nccl_ && tensor.is_cuda()) {
        nccl_->broadcast(tensors)->wait();
        return;
      }
#endif
      gloo_->broadcast(tensors)->wait();
    } catch (const std::exception& error) {
      lost(error);
    }
  }
  void barrier() override {
    try {
      gloo_->barrier()->wait();
    } catch (const std::exception& error) {
      lost(error);
    }
  }

 private:
  using WorkPointer = decltype(std::declval<c10d::ProcessGroupGloo>().barrier());
  class C10dWork : public Work {
   public:
    explicit C10dWork(WorkPointer work) : work_(std::move(work)) {}
    void wait() override {
      try {
        work_->wait();
      } catch (const std::exception& error) {
        lost(error);
      }
    }

   private:
    WorkPointer work_;
  };
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
#ifdef USE_C10D_NCCL
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
#endif
};

#endif  // NMRF_WITH_GLOO

// The variable as a number in [low, high]; `otherwise` when it is unset.
int number_of(const char* name, int low, int high, int otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  check(*end == 0 && value >= low && value <= high, ErrorKind::kUsage,
        "{} is '{}'; expected a number from {} to {}", name, text, low, high);
  return static_cast<int>(value);
}

}  // namespace

std::shared_ptr<ProcessGroup> ProcessGroup::from_environment(double timeout_seconds,
                                                             [[maybe_unused]] bool cuda) {
  const int size = number_of("WORLD_SIZE", 1, 4096, 1);
  if (size == 1) return std::make_shared<ProcessGroup>();
  const int rank = number_of("RANK", 0, size - 1, -1);
  const int port = number_of("MASTER_PORT", 1, 65535, -1);
  const char* address = std::getenv("MASTER_ADDR");
  check(rank >= 0 && port > 0 && address && *address, ErrorKind::kUsage,
        "WORLD_SIZE is {}, so RANK, MASTER_ADDR and MASTER_PORT must be set too (or use --nproc)",
        size);
#ifdef NMRF_WITH_GLOO
  return std::make_shared<C10dGroup>(address, port, rank, size, timeout_seconds, cuda);
#else
  fail(ErrorKind::kUsage,
       "this nmrf was built without Gloo and runs in one process only (wanted: {}). Install "
       "libgloo-dev and build again.",
       size);
#endif
}

struct GradientAverager::State {
  struct Bucket {
    std::vector<std::size_t> members;  // indices of parameters
    std::size_t pending = 0;
    torch::Tensor flat;
    std::unique_ptr<ProcessGroup::Work> work;
  };

  std::shared_ptr<ProcessGroup> group;
  std::vector<torch::Tensor> parameters;
  std::vector<std::size_t> bucket_of;
  std::vector<Bucket> buckets;
  std::size_t sent = 0;  // buckets go out in order, so that all processes agree on it
  bool armed = false;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;

  void ready(std::size_t index) {
    if (!armed) return;
    --buckets[bucket_of[index]].pending;
    while (sent < buckets.size() && buckets[sent].pending == 0) send(buckets[sent++]);
  }

  void send(Bucket& bucket) {
    torch::NoGradGuard no_grad;
    int64_t elements = 0;
    for (auto i : bucket.members) elements += parameters[i].numel();
    bucket.flat = torch::empty({elements}, parameters[bucket.members[0]].options());
    int64_t offset = 0;
    for (auto i : bucket.members) {
      auto slot = bucket.flat.narrow(0, offset, parameters[i].numel());
      const auto& gradient = parameters[i].grad();
      if (gradient.defined())
        slot.copy_(gradient.reshape({-1}));
      else
        slot.zero_();
      offset += parameters[i].numel();
    }
    bucket.work = group->sum(bucket.flat);
  }
};

GradientAverager::GradientAverager(
    std::shared_ptr<ProcessGroup> group,
    const std::vector<std::pair<std::string, torch::Tensor>>& parameters, std::size_t bucket_bytes)
    : state_(std::make_shared<State>()) {
  state_->group = std::move(group);
  if (state_->group->size() == 1) return;
  // Backward meets the parameters roughly from the last to the first.
  std::size_t filled = bucket_bytes;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const auto& parameter = parameters[i].second;
    state_->parameters.push_back(parameter);
    if (filled >= bucket_bytes) {
      state_->buckets.emplace_back();
      filled = 0;
    }
    filled += parameter.nbytes();
    state_->buckets.back().members.push_back(state_->parameters.size() - 1);
    state_->bucket_of.push_back(state_->buckets.size() - 1);
    auto accumulator = torch::autograd::impl::grad_accumulator(parameter);
    accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [weak = std::weak_ptr<State>(state_), index = state_->parameters.size() - 1](
            const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
          if (auto state = weak.lock()) state->ready(index);
          return outputs;
        }));
    state_->accumulators.push_back(std::move(accumulator));
  }
}

GradientAverager::~GradientAverager() = default;

void GradientAverager::arm() {
  State& s = *state_;
  if (s.group->size() == 1) return;
  s.sent = 0;
  s.armed = true;
  for (auto& bucket : s.buckets) bucket.pending = bucket.members.size();
}

void GradientAverager::finish() {
  State& s = *state_;
  if (s.group->size() == 1) return;
  s.armed = false;
  torch::NoGradGuard no_grad;
  while (s.sent < s.buckets.size()) s.send(s.buckets[s.sent++]);
  for (auto& bucket : s.buckets) {
    bucket.work->wait();
    bucket.work.reset();
    bucket.flat.div_(s.group->size());
    int64_t offset = 0;
    for (auto i : bucket.members) {
      auto& parameter = s.parameters[i];
      auto slot = bucket.flat.narrow(0, offset, parameter.numel());
      offset += parameter.numel();
      // A parameter without a gradient has none on any process: all run the same graph.
      if (parameter.grad().defined()) parameter.mutable_grad().copy_(slot.view(parameter.sizes()));
    }
    bucket.flat = torch::Tensor();
  }
}

}  // namespace nmrf::train

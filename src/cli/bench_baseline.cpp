// OpenCV's semi-global matching beside the runtime, in turn with it.
#include <opencv2/core.hpp>

#include "cli/bench.h"
#include "eval/baseline.h"

namespace nmrf::cli {
namespace {

class SgbmSubject : public BenchSubject {
 public:
  explicit SgbmSubject(int threads) : threads_(threads) {}
  void prepare() override { cv::setNumThreads(threads_); }
  std::vector<float> run(const BenchScene& scene) override {
    const cv::Mat result = sgbm(view_of(scene.left), view_of(scene.right));
    return {result.begin<float>(), result.end<float>()};
  }

 private:
  // SGBM treats all channels alike: RGB will do.
  static cv::Mat view_of(const Image& image) {
    return cv::Mat(image.height(), image.width(), CV_8UC3, const_cast<std::uint8_t*>(image.data()),
                   image.row_bytes());
  }
  int threads_;
};

}  // namespace

std::unique_ptr<BenchSubject> make_sgbm_subject(int threads) {
  return std::make_unique<SgbmSubject>(threads);
}

}  // namespace nmrf::cli

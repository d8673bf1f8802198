// The data sets by name: what lies below a folder, in a stable order.
//
//   DatasetOptions options;
//   options.name = "kitti2015";
//   options.root = "/data/KITTI";
//   auto dataset = open_dataset(options);
//   Sample sample = dataset->load(0);
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/fields.h"
#include "data/sample.h"

namespace nmrf {

// Whether truth counts as sparse (see Sample::sparse).
enum class TruthDensity { kAuto, kDense, kSparse };

template <>
struct EnumNames<TruthDensity> {
  static constexpr std::array<std::pair<TruthDensity, const char*>, 3> values{
      {{TruthDensity::kAuto, "auto"},
       {TruthDensity::kDense, "dense"},
       {TruthDensity::kSparse, "sparse"}}};
};

// Which data set and which part of it. docs/data.md lists the values each data set understands.
struct DatasetOptions {
  std::string name;
  std::string root;
  std::string split;     // "" = the data set's default
  std::string pass;      // renderings of SceneFlow, Sintel
  std::string size;      // of Middlebury 2003, 2005, 2006
  std::string variant;   // of Middlebury 2014: perfect, imperfect, all
  std::string lighting;  // of Middlebury 2014: default, E, L, all
  std::string list;      // the list file of "list"; for other names: only the samples named in it
  double divisor = 0;    // of integer disparity files; 0 = the data set's own
  TruthDensity truth = TruthDensity::kAuto;
  double max_disparity = 0;  // 0 = the data set's own
  bool needs_truth = true;   // leave out pairs without truth; no setting, submissions clear it

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("name", self.name, "data set, such as kitti2015 or list");
    visit("root", self.root, "its folder");
    visit("split", self.split, "split; empty = the data set's default");
    visit("pass", self.pass, "SceneFlow, Sintel: clean, final, both; empty = final, else clean");
    visit("size", self.size, "Middlebury 2003-2006: full, half, third, quarter, all");
    visit("variant", self.variant, "Middlebury 2014: perfect, imperfect, all");
    visit("lighting", self.lighting, "Middlebury 2014, right image: default, E, L, all");
    visit("list", self.list,
          "list file; with other data sets: names of the samples to keep, one per line");
    visit("divisor", self.divisor,
          "disparity = value / divisor in integer files; 0 = as documented");
    visit("truth", self.truth, "auto, dense or sparse: which augmentation rules apply");
    visit("max_disparity", self.max_disparity,
          "treat truth from this disparity on as unknown, pixels; 0 = as documented");
  }
  // Throws Error(kUsage).
  void validate() const;
};

// A list of samples.
class Dataset {
 public:
  Dataset(std::string name, std::vector<SampleRef> refs)
      : name_(std::move(name)), refs_(std::move(refs)) {}
  const std::string& name() const { return name_; }
  std::size_t size() const { return refs_.size(); }
  const std::vector<SampleRef>& refs() const { return refs_; }
  const SampleRef& ref(std::size_t index) const { return refs_.at(index); }
  Sample load(std::size_t index) const { return load_sample(refs_.at(index)); }

 private:
  std::string name_;
  std::vector<SampleRef> refs_;
};

// Lists the data set's files; reads no image. Throws Error(kUsage) for an unknown name, split or
// other setting (listing the known ones), Error(kInput) when nothing is found, naming the pattern
// that was looked for. Pairs whose truth or right image is missing are left out with one warning.
std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options);

// All names, in the order of the documentation.
std::vector<std::string> dataset_names();

}  // namespace nmrf

// nmrf_fuzz_seeds FOLDER: small sound files of every format, one folder per target.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/file.h"
#include "io/formats.h"
#include "io/npy.h"
#include "io/pfm.h"
#include "io/pictures.h"
#include "io/toml.h"
#include "matching/error_model.h"
#include "network/formula.h"
#include "network/model_file.h"
#include "weights/pth_builder.h"
#include "weights/safetensors.h"

namespace nmrf {
namespace {

namespace fs = std::filesystem;

class Seeds {
 public:
  explicit Seeds(fs::path folder) : folder_(std::move(folder)) {}
  fs::path place(const std::string& target, const std::string& name) const {
    make_folder(folder_ / target);
    return folder_ / target / name;
  }
  void put(const std::string& target, const std::string& name, const std::string& bytes) const {
    write_file(place(target, name), bytes);
  }

 private:
  fs::path folder_;
};

void put_maps(const Seeds& seeds) {
  FloatMap map(5, 3, 1.5f);
  write_pfm(seeds.place("pfm", "grey.pfm"), map);
  seeds.put("pfm", "colour.pfm", "PF\n# made\n1 1\r\n1.0\r\n" + std::string(12, '\x3f'));
  const std::vector<float> floats(6, 2);
  const std::vector<std::uint8_t> bytes(6, 3);
  const std::vector<std::int32_t> integers(6, 4);
  write_npy(seeds.place("npy", "floats.npy"), {2, 3}, floats.data());
  write_npy(seeds.place("npy", "bytes.npy"), {6}, bytes.data());
  write_npy(seeds.place("npy", "integers.npy"), {1, 2, 3}, integers.data());
}

void put_pictures(const Seeds& seeds) {
  for (const std::string extension : {".png", ".jpg", ".tiff", ".webp", ".ppm", ".bmp"})
    seeds.put("picture", "colour" + extension, test::encoded(extension, test::picture(9, 7, 3)));
  for (const std::string extension : {".png", ".jpg", ".tiff", ".pgm"})
    seeds.put("picture", "grey" + extension, test::encoded(extension, test::picture(9, 7, 1)));
  for (const std::string extension : {".png", ".tiff", ".ppm"})
    seeds.put("picture", "wide" + extension, test::encoded(extension, test::picture(5, 4, 3, 16)));
  seeds.put("picture", "interlaced.png", test::interlaced_png(test::picture(9, 7, 3)));
  seeds.put("picture", "palette.png",
            test::handmade_png(4, 2, 4, 3, std::string("\0\x01\x10\0\x11\x01", 6),
                               test::png_chunk("PLTE", std::string("\xff\0\0\0\xff\0", 6))));
  seeds.put("picture", "progressive.jpg",
            test::jpeg_file(test::picture(16, 16, 3), {.progressive = true, .restart = 1}));
  seeds.put("picture", "lossy.webp", test::lossy_webp(test::picture(16, 16, 3)));
  seeds.put("picture", "packed.tiff", test::tiff_file(test::picture(9, 7, 3), {.packing = 5}));
  seeds.put("picture", "tiles.tiff",
            test::tiff_file(test::picture(20, 17, 3), {.packing = 8, .tile = 16}));
  seeds.put("picture", "floats.tiff", formats::encode_tiff(FloatMap(4, 3, 2.5f), "a seed"));
  seeds.put("picture", "text.pbm", "P1\n# made\n3 2\n0 1 0 1 1 0\n");
  seeds.put("picture", "text.ppm", "P3\n2 1\n255\n1 2 3 4 5 6\n");
}

void put_weights(const Seeds& seeds) {
  const std::vector<test::MadeTensor> tensors = {
      {.name = "module.a.weight"},
      {.name = "module.a.bias", .shape = {3, 2}, .strides = {1, 3}},
      {.name = "module.part", .shape = {2}, .strides = {1}, .offset = 3, .parameter = true}};
  const std::string pickle = test::state_dict_pickle(tensors, "model");
  const std::string storage = test::floats({0, 1, 2, 3, 4, 5});
  seeds.put("pickle", "state.pkl", pickle);
  seeds.put("pickle", "plain.pkl", test::state_dict_pickle(tensors));
  seeds.put("pth", "model.pth", test::make_pth(pickle, {storage}));
  seeds.put("zip", "model.zip", test::make_pth(pickle, {storage}));
  seeds.put("zip", "descriptors.zip", test::make_zip({{"a", "1"}, {"b", "22"}}, {true, true}));
  seeds.put("zip", "large.zip",
            test::make_zip({{"a", "1"}}, {.zip64_sizes = true, .comment = "made"}));
  StoredTensor floats{"a.weight", DType::kF32, {2, 3}, {}};
  floats.data = {reinterpret_cast<const std::uint8_t*>(storage.data()), storage.size()};
  StoredTensor halves{"b", DType::kF16, {1, 12}, floats.data};
  StoredTensor scalar{"c", DType::kI64, {}, floats.data.first(8)};
  const std::vector<StoredTensor> all = {floats, halves, scalar};
  write_safetensors(seeds.place("safetensors", "small.safetensors"), all, {{"options", "{}"}});
  seeds.put("safetensors", "foreign.safetensors",
            test::le<std::uint64_t>(56) +
                R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}} )" + "  xx");
}

// The smallest network that the options allow, and its options alone.
void put_models(const Seeds& seeds) {
  ModelOptions options = preset_options("fast");
  for (const char* setting :
       {"backbone.stem=8", "backbone.stage1=8", "backbone.stage2=8", "backbone.stage3=8",
        "backbone.features=16", "seeds.groups=2", "propagation.layers=1", "propagation.channels=8",
        "propagation.heads=2", "inference.layers=1", "inference.channels=8", "inference.heads=2",
        "refinement.layers=1", "refinement.channels=8", "refinement.heads=2"})
    set_field(options, setting);
  options.validate();
  std::vector<ParameterValues> values;
  FormulaParameters formula;
  for (const auto& spec : parameters_of(options))
    values.push_back({spec, formula.take(spec.name, spec.shape)});
  save_model(seeds.place("model", "small.safetensors"), options, values, {}, true);
  for (const char* preset : {"paper", "fast"})
    seeds.put("options", std::string(preset) + ".json",
              to_json_object(preset_options(preset)).dump());
  seeds.put("error_model", "zero.json", to_json(ErrorMlp{}).dump());
  seeds.put("options", "part.json", R"({"seeds": {"labels": 2}, "match": {"border": true}})");
}

void put_texts(const Seeds& seeds) {
  const auto calibration = [&](const std::string& name, const std::string& text) {
    seeds.put("calibration", name, text);
  };
  calibration("middlebury.txt",
              "cam0=[700 0 320; 0 700 240; 0 0 1]\ncam1=[700 0 330; 0 700 240; 0 0 1]\ndoffs=10\n"
              "baseline=120.5\nwidth=640\nheight=480\nndisp=64\n");
  calibration("kitti.txt",
              "P2: 7e2 0 3e2 45 0 7e2 1e2 0 0 0 1 0\nP3: 7e2 0 3e2 -3e2 0 7e2 1e2 0 "
              "0 0 1 0\n");
  calibration("kitti_raw.txt",
              "calib_time: 09-Jan-2012\nS_rect_02: 1242 375\nP_rect_02: 7e2 0 3e2 45 0 7e2 1e2 0 0 "
              "0 1 0\nP_rect_03: 7e2 0 3e2 -3e2 0 7e2 1e2 0 0 0 1 0\n");
  calibration("opencv.yml",
              "%YAML:1.0\n---\nQ: !!opencv-matrix\n   rows: 4\n   cols: 4\n   dt: d\n   data: [ 1, "
              "0, 0, -320, 0, 1, 0, -240, 0, 0, 0, 700, 0, 0, 8.3, 0 ]\nimage_width: 640\n");
  calibration("opencv.xml",
              "<?xml version=\"1.0\"?>\n<opencv_storage>\n<P1 type_id=\"opencv-matrix\"><rows>3"
              "</rows><data>700 0 320 0 0 700 240 0 0 0 1 0</data></P1>\n<P2><data>700 0 320 -84 0 "
              "700 240 0 0 0 1 0</data></P2></opencv_storage>\n");
  calibration(
      "opencv.json",
      R"({"P1": {"data": [700,0,320,0,0,700,240,0,0,0,1,0]}, "P2": [700,0,320,-84,0,700,240,0,0,0,1,0]})");
  calibration("k.txt", "700 0 320\n0 700 240\n0 0 1\n0.12\n");
  calibration("stereodemo.json",
              R"({"fx": 700, "cx0": 320, "cx1": 321, "cy": 240, "baseline_meters": 0.12})");
  const std::string distortion = "data: [-0.1, 0.01, 0, 0, 0]\n";
  const std::string opencv_rig =
      "%YAML:1.0\n---\nimage_width: 64\nimage_height: 48\nM1: !!opencv-matrix\n   rows: 3\n   "
      "cols: "
      "3\n   dt: d\n   data: [ 70, 0, 32, 0, 70, 24, 0, 0, 1 ]\nD1: !!opencv-matrix\n   rows: 1\n  "
      " "
      "cols: 5\n   dt: d\n   data: [ 0, 0, 0, 0, 0 ]\nM2: !!opencv-matrix\n   rows: 3\n   cols: "
      "3\n   "
      "dt: d\n   data: [ 70, 0, 32, 0, 70, 24, 0, 0, 1 ]\nD2: !!opencv-matrix\n   rows: 1\n   "
      "cols: "
      "5\n   dt: d\n   data: [ 0, 0, 0, 0, 0 ]\nR: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: "
      "d\n   data: [ 1, 0, 0, 0, 1, 0, 0, 0, 1 ]\nT: !!opencv-matrix\n   rows: 3\n   cols: 1\n   "
      "dt: "
      "d\n   data: [ -0.12, 0, 0 ]\n";
  seeds.put("rig", "opencv.yml", opencv_rig);
  seeds.put("rig", "kalibr.yaml",
            "cam0:\n  camera_model: pinhole\n  distortion_coeffs: [0.1, 0.0, 0.0, 0.0]\n  "
            "distortion_model: radtan\n  intrinsics: [70, 70, 32, 24]\n  resolution: [64, 48]\n"
            "cam1:\n  T_cn_cnm1:\n  - [1.0, 0.0, 0.0, -0.12]\n  - [0.0, 1.0, 0.0, 0.0]\n  - [0.0, "
            "0.0, 1.0, 0.0]\n  - [0.0, 0.0, 0.0, 1.0]\n  camera_model: pinhole\n  "
            "distortion_coeffs: [0, 0, 0, 0]\n  distortion_model: equidistant\n  intrinsics: [70, "
            "70, 32, 24]\n  resolution: [64, 48]\n");
  const auto camera_info = [&](const std::string& shift) {
    return "image_width: 64\nimage_height: 48\ncamera_matrix:\n  rows: 3\n  cols: 3\n  data: [70, "
           "0, "
           "32, 0, 70, 24, 0, 0, 1]\ndistortion_model: plumb_bob\ndistortion_coefficients:\n  "
           "rows: "
           "1\n  cols: 5\n  " +
           distortion +
           "rectification_matrix:\n  rows: 3\n  cols: 3\n  data: [1, 0, 0, 0, 1, 0, 0, 0, "
           "1]\nprojection_matrix:\n  rows: 3\n  cols: 4\n  data: [70, 0, 32, " +
           shift + ", 0, 70, 24, 0, 0, 0, 1, 0]\n";
  };
  seeds.put("rig", "ros.yaml", camera_info("0") + '\0' + camera_info("-8.4"));
  seeds.put(
      "rig", "kitti.txt",
      "calib_time: 09-Jan-2012 13:57:47\nS_02: 64 48\nK_02: 70 0 32 0 70 24 0 0 1\nD_02: -0.3 "
      "0.1 0 0 0\nR_02: 1 0 0 0 1 0 0 0 1\nT_02: 0.06 0 0\nS_03: 64 48\nK_03: 70 0 32 0 70 24 0 "
      "0 1\nD_03: -0.3 0.1 0 0 0\nR_03: 1 0 0 0 1 0 0 0 1\nT_03: -0.47 0 0\n");
  seeds.put(
      "toml", "run.toml",
      "# a run\n[model]\npreset = \"fast\"\nseeds = {max_disp = 48, labels = 2}\n[[a]]\nb = "
      "[1, 2.5e-3, true]\nc = 1979-05-27\n[stage1]\nlr = 1e-3\nfreeze = ['x', \"\"\"y\"\"\"]\n");
  seeds.put("list", "pairs.txt",
            "# left right truth\nl.png r.png d.pfm\n\"a b.png\" c.png  # with blanks\n\n");
}

}  // namespace
}  // namespace nmrf

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: nmrf_fuzz_seeds FOLDER\n");
    return 2;
  }
  const nmrf::Seeds seeds(argv[1]);
  nmrf::put_maps(seeds);
  nmrf::put_pictures(seeds);
  nmrf::put_weights(seeds);
  nmrf::put_models(seeds);
  nmrf::put_texts(seeds);
  return 0;
}

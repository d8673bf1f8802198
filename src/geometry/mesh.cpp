// A depth map as a textured surface: OBJ and glTF.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "geometry/pixel_choice.h"
#include "io/formats.h"
#include "nmrf/files.h"
#include "nmrf/geometry.h"

namespace nmrf {
namespace fs = std::filesystem;

Mesh depth_mesh(const Disparity& disparity, const Calibration& calibration,
                const PointCloudOptions& options, double cut) {
  check(cut > 0 && std::isfinite(cut), ErrorKind::kUsage,
        "a mesh is cut at steps of {} px per pixel; expected a positive number.", cut);
  const PixelChoice choice(disparity, calibration, options);
  const FloatMap& map = disparity.map;
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  const int columns = (map.width() - 1) / options.stride + 1,
            rows = (map.height() - 1) / options.stride + 1;
  Map<std::uint8_t> wanted(columns, rows);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x)
      wanted.at(y, x) = choice.wanted(y * options.stride, x * options.stride);

  Mesh mesh;
  Map<std::uint32_t> index(columns, rows, kNone);
  struct Corner {
    int y, x;
  };
  auto vertex = [&](Corner c) {
    std::uint32_t& own = index.at(c.y, c.x);
    if (own == kNone) {
      own = static_cast<std::uint32_t>(mesh.vertices.size());
      const int y = c.y * options.stride, x = c.x * options.stride;
      const auto at = choice.position(y, x);
      mesh.vertices.push_back({at[0], at[1], at[2],
                               (static_cast<float>(x) + 0.5f) / static_cast<float>(map.width()),
                               (static_cast<float>(y) + 0.5f) / static_cast<float>(map.height())});
    }
    return own;
  };
  const double most = cut * options.stride;
  auto add = [&](Corner a, Corner b, Corner c) {
    float least = std::numeric_limits<float>::infinity(), greatest = -least;
    for (Corner corner : {a, b, c}) {
      if (!wanted.at(corner.y, corner.x)) return;
      const float d = map.at(corner.y * options.stride, corner.x * options.stride);
      least = std::min(least, d);
      greatest = std::max(greatest, d);
    }
    if (greatest - least > most) return;
    mesh.triangles.push_back({vertex(a), vertex(b), vertex(c)});
  };
  for (int y = 0; y + 1 < rows; ++y)
    for (int x = 0; x + 1 < columns; ++x) {
      add({y, x}, {y + 1, x}, {y, x + 1});
      add({y, x + 1}, {y + 1, x}, {y + 1, x + 1});
    }
  return mesh;
}

std::vector<fs::path> write_obj(const fs::path& path, const Mesh& mesh, const ImageView& texture) {
  const fs::path folder = path.parent_path();
  const std::string stem = path.stem().string();
  const fs::path material = folder / (stem + ".mtl"), picture = folder / (stem + "_texture.png");
  write_image(picture, texture);
  write_file(material, fmt::format("newmtl photo\nKa 1 1 1\nKd 1 1 1\nillum 0\nmap_Kd {}\n",
                                   picture.filename().string()));
  AtomicFile file(path);
  fmt::memory_buffer text;
  auto flush = [&](std::size_t most) {
    if (text.size() <= most) return;
    file.write(text.data(), text.size());
    text.clear();
  };
  constexpr std::size_t kBatch = 1 << 20;
  fmt::format_to(std::back_inserter(text),
                 "# metres; +x right, +y up, +z backward\nmtllib {}\nusemtl photo\n",
                 material.filename().string());
  for (const auto& v : mesh.vertices) {
    fmt::format_to(std::back_inserter(text), "v {:.6g} {:.6g} {:.6g}\n", v.x, -v.y, -v.z);
    flush(kBatch);
  }
  for (const auto& v : mesh.vertices) {
    fmt::format_to(std::back_inserter(text), "vt {:.6f} {:.6f}\n", v.u, 1 - v.v);
    flush(kBatch);
  }
  for (const auto& t : mesh.triangles) {
    fmt::format_to(std::back_inserter(text), "f {0}/{0} {1}/{1} {2}/{2}\n", t[0] + 1, t[1] + 1,
                   t[2] + 1);
    flush(kBatch);
  }
  flush(0);
  file.commit();
  return {path, material, picture};
}

void write_glb(const fs::path& path, const Mesh& mesh, const ImageView& texture) {
  check(!mesh.triangles.empty(), ErrorKind::kInput,
        "{}: no triangle is left of the surface; a larger cut or fewer conditions keep more",
        path.string());
  const std::string picture = formats::encode_jpeg(texture, path.string());
  std::vector<float> positions, places;
  std::array<float, 3> low, high;
  low.fill(std::numeric_limits<float>::infinity());
  high.fill(-std::numeric_limits<float>::infinity());
  for (const auto& v : mesh.vertices) {
    const std::array<float, 3> at{v.x, -v.y, -v.z};
    for (std::size_t i = 0; i < 3; ++i) {
      low[i] = std::min(low[i], at[i]);
      high[i] = std::max(high[i], at[i]);
    }
    positions.insert(positions.end(), at.begin(), at.end());
    places.insert(places.end(), {v.u, v.v});
  }
  std::string binary;
  nlohmann::json views = nlohmann::json::array();
  auto append = [&](const void* data, std::size_t bytes, int target) {
    nlohmann::json view{{"buffer", 0}, {"byteOffset", binary.size()}, {"byteLength", bytes}};
    if (target) view["target"] = target;
    views.push_back(view);
    binary.append(static_cast<const char*>(data), bytes);
    binary.resize((binary.size() + 3) / 4 * 4, '\0');
  };
  constexpr int kVertices = 34962, kIndices = 34963, kFloat = 5126, kUnsigned = 5125;
  append(positions.data(), positions.size() * sizeof(float), kVertices);
  append(places.data(), places.size() * sizeof(float), kVertices);
  append(mesh.triangles.data(), mesh.triangles.size() * sizeof(mesh.triangles[0]), kIndices);
  append(picture.data(), picture.size(), 0);
  const nlohmann::json gltf{
      {"asset", {{"version", "2.0"}, {"generator", "nmrf"}}},
      {"extensionsUsed", {"KHR_materials_unlit"}},
      {"scene", 0},
      {"scenes", {{{"nodes", {0}}}}},
      {"nodes", {{{"mesh", 0}}}},
      {"meshes",
       {{{"primitives",
          {{{"attributes", {{"POSITION", 0}, {"TEXCOORD_0", 1}}},
            {"indices", 2},
            {"material", 0}}}}}}},
      {"materials",
       {{{"pbrMetallicRoughness",
          {{"baseColorTexture", {{"index", 0}}}, {"metallicFactor", 0}, {"roughnessFactor", 1}}},
         {"extensions", {{"KHR_materials_unlit", nlohmann::json::object()}}},
         {"doubleSided", true}}}},
      {"textures", {{{"source", 0}, {"sampler", 0}}}},
      {"samplers", {{{"wrapS", 33071}, {"wrapT", 33071}}}},
      {"images", {{{"bufferView", 3}, {"mimeType", "image/jpeg"}}}},
      {"accessors",
       {{{"bufferView", 0},
         {"componentType", kFloat},
         {"count", mesh.vertices.size()},
         {"type", "VEC3"},
         {"min", low},
         {"max", high}},
        {{"bufferView", 1},
         {"componentType", kFloat},
         {"count", mesh.vertices.size()},
         {"type", "VEC2"}},
        {{"bufferView", 2},
         {"componentType", kUnsigned},
         {"count", 3 * mesh.triangles.size()},
         {"type", "SCALAR"}}}},
      {"bufferViews", views},
      {"buffers", {{{"byteLength", binary.size()}}}}};
  std::string text = gltf.dump();
  text.resize((text.size() + 3) / 4 * 4, ' ');
  AtomicFile file(path);
  auto word = [&](std::size_t value) {
    const auto number = static_cast<std::uint32_t>(value);
    file.write(&number, sizeof number);
  };
  constexpr std::uint32_t kMagic = 0x46546c67, kJson = 0x4e4f534a, kBinary = 0x004e4942;
  word(kMagic), word(2), word(12 + 8 + text.size() + 8 + binary.size());
  word(text.size()), word(kJson);
  file.write(text);
  word(binary.size()), word(kBinary);
  file.write(binary);
  file.commit();
}

}  // namespace nmrf

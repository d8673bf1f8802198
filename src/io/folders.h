// Looking for files: sorted listings, tolerant folder names, image files by stem.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace nmrf::scan {

// Names of the plain files (folders) directly in `folder`, sorted; hidden ones left out; links are
// followed. Empty when the folder does not exist. Throws Error(kInput) when it cannot be read.
std::vector<std::string> file_names(const std::filesystem::path& folder);
std::vector<std::string> folder_names(const std::filesystem::path& folder);

// Every folder of that name at any depth below `root`, relative to it, sorted. Links to folders are
// followed to a depth of 12, so that a loop of links ends.
std::vector<std::filesystem::path> folders_called(const std::filesystem::path& root,
                                                  const std::string& name);
// `root` itself (as ".") and every folder below it, relative to it, sorted.
std::vector<std::filesystem::path> folders_below(const std::filesystem::path& root);

// The child of `folder` called like the first possible of `names`: exactly, else without regard to
// case. Empty when there is none.
std::filesystem::path child(const std::filesystem::path& folder,
                            const std::vector<const char*>& names);

// The first of `stem`.png, .webp, .jpg, .jpeg, .ppm, .pgm, .bmp, .tif, .tiff that exists, else
// empty.
std::filesystem::path image_file(const std::filesystem::path& stem);
// True for the extension (with the dot, any case) of an image file.
bool is_image_extension(const std::string& extension);

}  // namespace nmrf::scan

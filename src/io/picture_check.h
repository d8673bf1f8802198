// Looks at the structure of a picture file before a decoder sees it.
//
// OpenCV's decoders return half a picture for a truncated file, print to stderr, or allocate what a
// forged header asks for. These checks are made on the bytes alone.
#pragma once

#include <string>
#include <string_view>

namespace nmrf {

enum class PictureKind { kPng, kJpeg, kTiff, kNetpbm, kWebp, kBmp };

const char* picture_kind_name(PictureKind kind);

// Finds the kind by its signature and checks that the file is complete and its size plausible.
// `name` stands for the file in messages. Throws Error(kInput).
PictureKind check_picture(std::string_view content, const std::string& name);

}  // namespace nmrf

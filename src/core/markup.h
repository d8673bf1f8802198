// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace nmrf {

// `text` with &, <, > and quotes escaped, for content and attribute values.
std::string html_text(const std::string& text);

// Bytes as text for data: addresses.
std::string base64(std::string_view bytes);

}  // namespace nmrf

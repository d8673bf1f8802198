// Text inside HTML and SVG.
#pragma once

#include <string>

namespace nmrf {

// `text` with &, <, > and quotes escaped, for content and attribute values.
std::string html_text(const std::string& text);

}  // namespace nmrf

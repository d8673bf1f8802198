// The word that a mistyped one was meant to be, for messages.
#pragma once

#include <string>
#include <vector>

namespace nmrf {

// The one of `known` with the fewest letters to change, add or remove; empty when there is none.
std::string closest(const std::string& word, const std::vector<std::string>& known);

}  // namespace nmrf

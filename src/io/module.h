// Modules that are loaded when they are needed, so that nobody else needs what they link.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace nmrf {

// Where modules are looked for: beside the executable, in ../lib/nmrf, and in the build tree that
// the executable lies in.
std::vector<std::filesystem::path> module_folders();

// The function `name` of a module. `what` is what it is needed for, to begin a message. Throws
// Error(kUsage) when the module is in none of the folders, saying what to install.
void* load_module_entry(const char* module, const char* name, const std::string& what,
                        const std::vector<std::filesystem::path>& folders);

}  // namespace nmrf

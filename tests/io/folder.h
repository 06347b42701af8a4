#pragma once
// A folder of its own, gone at the end.
#include <unistd.h>

#include <filesystem>
#include <string>

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("weft_io_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

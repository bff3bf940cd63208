// SPDX-License-Identifier: Apache-2.0
// ScratchFile: a file with given content for one test, gone afterwards.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <unistd.h>
#include <zlib.h>

namespace bursar::test {

class ScratchFile {
 public:
  /// The name ends in `suffix`; the content is as given.
  explicit ScratchFile(std::string_view content, const std::string& suffix = ".csv")
      : path_(std::filesystem::temp_directory_path() /
              ("bursar-" + std::to_string(getpid()) + "-" + std::to_string(++count()) + suffix)) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  std::string path() const { return path_.string(); }
  std::string name() const { return path_.filename().string(); }

 private:
  static int& count() {
    static int files = 0;
    return files;
  }

  std::filesystem::path path_;
};

/// `text` as gzip writes it.
inline std::string gzipped(std::string_view text) {
  const ScratchFile file("", ".gz");
  gzFile out = gzopen(file.path().c_str(), "wb9");
  if (out == nullptr) throw std::runtime_error("gzopen");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A log of `lines` after the header.
inline std::string log_of(std::string_view lines) {
  return "Thread,Time,Action,Pointer,Size,Stream\n" + std::string(lines);
}

}  // namespace bursar::test

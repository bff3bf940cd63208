// SPDX-License-Identifier: Apache-2.0
// TextFile: the lines of a file, plain or compressed by gzip, without reading it whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bursar {
inline namespace v0 {

class TextFile {
 public:
  /// Throws TraceError when the file cannot be opened.
  explicit TextFile(std::string path);
  ~TextFile();

  /// The next line without its end (\n or \r\n), valid until the next call; false at the end.
  /// Throws TraceError, at the line that is cut off, when the file cannot be read to its end.
  bool next(std::string_view& line);
  /// Number of the line that next() gave last, from 1.
  std::uint64_t line_number() const { return line_number_; }
  /// As given to the constructor.
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(void* file) const;
  };

  void read_more();

  std::string path_;
  std::unique_ptr<void, Close> file_;
  std::string buffer_;
  std::size_t at_ = 0;  ///< begin of what next() has not given yet
  bool at_end_ = false;
  std::string failure_;  ///< why there is no more, empty for a proper end
  std::uint64_t line_number_ = 0;
};

}  // namespace v0
}  // namespace bursar

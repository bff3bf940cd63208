// SPDX-License-Identifier: Apache-2.0
// Reading through zlib, which passes plain files through as they are. A compressed file that ends
// too early still gives the lines before the cut; only then does zlib say so, and so do we.
#include "text_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <zlib.h>

#include "trace.hpp"

namespace bursar {
inline namespace v0 {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = 4096;

gzFile as_gz(void* file) { return static_cast<gzFile>(file); }

}  // namespace

void TextFile::Close::operator()(void* file) const { gzclose(as_gz(file)); }

TextFile::TextFile(std::string path) : path_(std::move(path)) {
  errno = 0;
  file_.reset(gzopen(path_.c_str(), "rb"));
  if (!file_) {
    throw TraceError(path_, 0,
                     std::string("cannot open: ") + std::strerror(errno ? errno : ENOMEM));
  }
  gzbuffer(as_gz(file_.get()), kChunk);
}

TextFile::~TextFile() = default;

bool TextFile::next(std::string_view& line) {
  std::size_t end = buffer_.find('\n', at_);
  while (end == std::string::npos && !at_end_) {
    if (buffer_.size() - at_ > kLongestLine) {
      throw TraceError(path_, line_number_ + 1, "line too long: not a log");
    }
    read_more();
    end = buffer_.find('\n', at_);
  }
  if (end == std::string::npos) {
    if (!failure_.empty()) throw TraceError(path_, line_number_ + 1, failure_);
    if (at_ == buffer_.size()) return false;
    end = buffer_.size();
  }
  line = std::string_view(buffer_).substr(at_, end - at_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  at_ = end == buffer_.size() ? end : end + 1;
  ++line_number_;
  return true;
}

void TextFile::read_more() {
  buffer_.erase(0, std::exchange(at_, 0));
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunk);
  const int got = gzread(as_gz(file_.get()), buffer_.data() + kept, static_cast<unsigned>(kChunk));
  buffer_.resize(kept + static_cast<std::size_t>(got > 0 ? got : 0));
  if (got == static_cast<int>(kChunk)) return;
  at_end_ = true;
  int code = Z_OK;
  const char* text = gzerror(as_gz(file_.get()), &code);
  if (code == Z_BUF_ERROR) {
    failure_ = "truncated gzip: the file ends before its compressed data does";
  } else if (code == Z_ERRNO) {
    failure_ = std::string("cannot read: ") + std::strerror(errno);
  } else if (code != Z_OK && code != Z_STREAM_END) {
    failure_ = std::string("corrupt gzip: ") + text;
  }
}

}  // namespace v0
}  // namespace bursar

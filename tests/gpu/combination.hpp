// SPDX-License-Identifier: Apache-2.0
// Combination: one way for two operations to meet over the same bytes, and how many words were
// wrong. What CUDA orders must be right; what it does not order is shown and not judged.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "gpu_fixture.hpp"
#include "support/catch.hpp"

namespace bursar::test {

/// Where the second operation reaches the bytes that the first one used.
enum class Place { same_address, alias };
constexpr const char* to_string(Place place) {
  return place == Place::alias ? "alias" : "same address";
}

struct Combination {
  std::string what;  ///< without the place
  Place place{};
  bool ordered = true;  ///< CUDA orders the two
  unsigned long long words = 0;
  unsigned long long wrong = 0;
  unsigned long long met = 0;  ///< how often the first was seen running when the second started
};

/// The combinations of one experiment, printed as a table and as lines of JSON.
class Combinations {
 public:
  explicit Combinations(std::string name) : name_(std::move(name)) {}

  void add(const Combination& row) {
    std::printf("%s: %-82s %-12s %10llu of %llu words wrong, met %llu times: %s\n", name_.c_str(),
                row.what.c_str(), to_string(row.place), row.wrong, row.words, row.met,
                verdict(row));
    report("alias", "{\"experiment\":\"" + name_ + "\",\"what\":\"" + row.what + "\",\"place\":\"" +
                        to_string(row.place) +
                        "\",\"ordered\":" + (row.ordered ? "true" : "false") + ",\"words\":" +
                        std::to_string(row.words) + ",\"wrong\":" + std::to_string(row.wrong) +
                        ",\"met\":" + std::to_string(row.met) + "}");
    rows_.push_back(row);
  }

  /// Fails the test case where ordered operations got a wrong word, and says whether an alias does
  /// worse than the same address.
  void judge() const {
    std::size_t worse = 0;
    for (const Combination& row : rows_) {
      INFO(row.what << ", " << to_string(row.place));
      CHECK(row.words > 0);
      if (row.ordered) CHECK(row.wrong == 0);
      for (const Combination& other : rows_) {
        const bool pair = other.what == row.what && other.place == Place::same_address;
        if (row.place != Place::alias || !pair) continue;
        if (row.wrong == 0 || other.wrong != 0) continue;
        ++worse;
        std::printf("%s: ONLY AN ALIAS is wrong: %s\n", name_.c_str(), row.what.c_str());
      }
    }
    std::printf("%s: %zu combinations, %zu where only an alias is wrong\n", name_.c_str(),
                rows_.size(), worse);
  }

 private:
  static const char* verdict(const Combination& row) {
    if (row.wrong == 0) return row.ordered ? "right" : "right, by chance";
    return row.ordered ? "WRONG" : "wrong, as unordered work may be";
  }

  std::string name_;
  std::vector<Combination> rows_;
};

}  // namespace bursar::test

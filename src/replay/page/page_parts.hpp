// SPDX-License-Identifier: Apache-2.0
// The fixed parts of the page that html_report writes, compiled in from the files beside this one.
#pragma once

#include <string_view>

namespace bursar {
inline namespace v0 {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace v0
}  // namespace bursar

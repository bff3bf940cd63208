// SPDX-License-Identifier: Apache-2.0
// result<T>: a value or an error, for code that must handle both (std::expected is C++23).
//
// Deliberately small: two states, no monads. `[[nodiscard]]`, so a refusal cannot be overlooked.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include <bursar/core/error.hpp>

namespace bursar {
inline namespace v0 {

template <class T>
class [[nodiscard]] result {
 public:
  // Implicit, so that `return value;` and `return error{...};` both read as what they are.
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(*-explicit-*)
  result(error e) : state_(std::in_place_index<1>, e) {}                 // NOLINT(*-explicit-*)

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// The value. Precondition: ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  /// The error. Precondition: !ok().
  const error& failure() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, error> state_;
};

template <>
class [[nodiscard]] result<void> {
 public:
  result() = default;
  result(error e) : error_(e), ok_(false) {}  // NOLINT(*-explicit-*)

  bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  const error& failure() const { return error_; }

 private:
  error error_{};
  bool ok_ = true;
};

}  // namespace v0
}  // namespace bursar

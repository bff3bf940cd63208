// SPDX-License-Identifier: Apache-2.0
// The door from a C++ test into code that nvcc compiled.
#pragma once

namespace bursar::test {

/// True when the values of every unit and handle compare as they should in a .cu file.
bool units_compare_in_cuda_files();

}  // namespace bursar::test

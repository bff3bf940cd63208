// SPDX-License-Identifier: Apache-2.0
// Device 0 through the CUDA runtime: streams for the replay, and allocators to compare with: those
// of CUDA, and PyTorch's where it is.
#include "cuda_device.hpp"

#include <utility>

#include <bursar/core/log.hpp>

#include "cuda_runtime_target.hpp"
#include "driver_target.hpp"
#include "torch_target.hpp"

namespace bursar {
inline namespace v0 {
namespace {

class CudaDevice final : public ReplayDevice {
 public:
  CudaDevice(std::shared_ptr<Driver> driver, std::optional<Bytes> limit)
      : driver_(std::move(driver)), limit_(limit) {}

  std::string name() const override { return driver_->device_info(DeviceId{}).name; }
  std::vector<std::string_view> allocators() const override {
    if (!torch_) return {"bursar", "cuda_malloc", "cuda_async"};
    return {"bursar", "cuda_malloc", "cuda_async", "torch", "torch_expandable"};
  }
  std::unique_ptr<ReplayTarget> make_target(std::string_view allocator) override {
    if (allocator == "cuda_malloc") return std::make_unique<CudaMallocTarget>();
    if (allocator == "cuda_async") return std::make_unique<CudaAsyncTarget>();
    if (allocator == "torch") return make_torch_target(*torch_, false);
    if (allocator == "torch_expandable") return make_torch_target(*torch_, true);
    return make_bursar_target(driver_, limit_);
  }
  StreamHandle create_stream() override {
    cudaStream_t stream = nullptr;
    const cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (code != cudaSuccess) throw Error(cuda_error(code, DriverCall::stream_id));
    return StreamHandle{stream};
  }
  void destroy_stream(StreamHandle stream) noexcept override {
    warn(cudaStreamDestroy(static_cast<cudaStream_t>(stream.value)), "cudaStreamDestroy");
  }
  void synchronize() noexcept override { warn(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }
  void start_pass() noexcept override { synchronize(); }

 private:
  static void warn(cudaError_t code, const char* call) noexcept {
    if (code == cudaSuccess) return;
    log(LogLevel::warning, std::string(call) + ": " + cudaGetErrorString(code));
  }

  std::shared_ptr<Driver> driver_;
  std::optional<Bytes> limit_;
  const TorchPeer* torch_ = find_torch_peer();
};

}  // namespace

std::unique_ptr<ReplayDevice> make_cuda_device(std::shared_ptr<Driver> driver,
                                               std::optional<Bytes> limit) {
  return std::make_unique<CudaDevice>(std::move(driver), limit);
}

}  // namespace v0
}  // namespace bursar

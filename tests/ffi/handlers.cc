// Handlers for the tests, written with XLA's C++ headers.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;

// y = x * factor
static ffi::Error ScaleImpl(float factor, F32 x, ffi::Result<F32> y) {
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] * factor;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Scale, ScaleImpl, ffi::Ffi::Bind().Attr<float>("factor").Arg<F32>().Ret<F32>());

// rows over the last axis, divided by their root mean square
static ffi::Error NormImpl(float eps, F32 x, ffi::Result<F32> y) {
  auto dims = x.dimensions();
  if (dims.size() == 0) return ffi::Error(ffi::ErrorCode::kInvalidArgument, "Norm input must be an array");
  int64_t n = dims.back(), rows = n == 0 ? 0 : x.element_count() / n;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.typed_data() + r * n;
    float* out = y->typed_data() + r * n;
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += in[i] * in[i];
    float scale = 1.0f / std::sqrt(sum / n + eps);
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] * scale;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Norm, NormImpl, ffi::Ffi::Bind().Attr<float>("eps").Arg<F32>().Ret<F32>());

// x + y and x - y, of operands that may have a leading axis of size 1 or none
static ffi::Error SumDiffImpl(F32 x, F32 y, ffi::Result<F32> sum, ffi::Result<F32> difference) {
  size_t n = sum->element_count(), nx = x.element_count(), ny = y.element_count();
  for (size_t i = 0; i < n; ++i) {
    sum->typed_data()[i] = x.typed_data()[i % nx] + y.typed_data()[i % ny];
    difference->typed_data()[i] = x.typed_data()[i % nx] - y.typed_data()[i % ny];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SumDiff, SumDiffImpl,
                              ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Ret<F32>().Ret<F32>());

static ffi::Error FailImpl(int64_t code, std::string_view message, ffi::RemainingArgs, ffi::RemainingRets) {
  return ffi::Error(static_cast<ffi::ErrorCode>(code), std::string(message));
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Fail, FailImpl,
    ffi::Ffi::Bind().Attr<int64_t>("code").Attr<std::string_view>("message").RemainingArgs().RemainingRets());

static std::atomic<int> calls{0};
extern "C" int Calls() { return calls; }
static ffi::Error CountImpl(F32 x, ffi::Result<F32> y) {
  ++calls;
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Count, CountImpl, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// the operand plus 1, if it is the result's buffer; -1 otherwise
static ffi::Error InPlaceImpl(F32 x, ffi::Result<F32> y) {
  bool same = x.untyped_data() == y->untyped_data();
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = same ? y->typed_data()[i] + 1 : -1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(InPlace, InPlaceImpl, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// how often this call site ran before; its state is made when it is instantiated
struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  explicit Counter(int64_t start) : value(start) {}
  ~Counter() { ++calls; }
  std::atomic<int64_t> value;
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();
extern "C" void* CounterId() { return &Counter::id; }
extern "C" void* CounterInfo() { return &Counter::info; }
static ffi::ErrorOr<std::unique_ptr<Counter>> InstantiateImpl(int64_t start) {
  return std::make_unique<Counter>(start);
}
static ffi::Error StatefulImpl(Counter* counter, ffi::Result<ffi::BufferR0<ffi::S32>> y) {
  *y->typed_data() = static_cast<int32_t>(counter->value++);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CounterInstantiate, InstantiateImpl,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(CounterExecute, StatefulImpl,
                              ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::BufferR0<ffi::S32>>());

// twice the operand, by tasks of the thread pool
static ffi::Error TasksImpl(ffi::ThreadPool pool, F32 x, ffi::Result<F32> y) {
  std::atomic<int> left{static_cast<int>(x.element_count())};
  for (size_t i = 0; i < x.element_count(); ++i)
    pool.Schedule([&, i] {
      y->typed_data()[i] = 2 * x.typed_data()[i];
      --left;
    });
  while (left > 0) std::this_thread::yield();
  return pool.num_threads() > 0 ? ffi::Error::Success() : ffi::Error::Internal("no threads");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Tasks, TasksImpl, ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<F32>().Ret<F32>());

// three times the operand, by a thread that ends after the handler
static ffi::Future LaterImpl(bool fails, F32 x, ffi::Result<F32> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([promise = std::move(promise), fails, x, y]() mutable {
    for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = 3 * x.typed_data()[i];
    if (fails) {
      promise.SetError(ffi::Error(ffi::ErrorCode::kDataLoss, "too late"));
    } else {
      promise.SetAvailable();
    }
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Later, LaterImpl, ffi::Ffi::Bind().Attr<bool>("fails").Arg<F32>().Ret<F32>());

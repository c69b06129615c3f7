// A client of XLA's CPU among several processes: their devices, and collectives between them.
//
// The wheel's client takes both from whoever makes it. What devices exchange goes through the key-value store that
// the C API's caller brings, where gloo would open connections: slow, and enough to test programs over processes.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla/backends/cpu/collectives/cpu_collectives.h"
#include "xla/backends/cpu/collectives/in_process_collectives.h"
#include "xla/core/collectives/clique_key.h"
#include "xla/core/collectives/communicator.h"
#include "xla/pjrt/c/pjrt_c_api.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_topology_description.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"
#include "xla/primitive_util.h"
#include "xla/types.h"

namespace processes {

// The store of the caller.
class Store {
 public:
  explicit Store(const PJRT_Client_Create_Args* args)
      : get_(args->kv_get_callback), get_arg_(args->kv_get_user_arg),
        put_(args->kv_put_callback), put_arg_(args->kv_put_user_arg) {}

  bool there() const { return get_ != nullptr && put_ != nullptr; }

  absl::Status Put(const std::string& key, const char* data, size_t size) const {
    PJRT_CallbackError make = &Make;
    PJRT_KeyValuePutCallback_Args a{};
    a.struct_size = PJRT_KeyValuePutCallback_Args_STRUCT_SIZE;
    a.key = key.data();
    a.key_size = key.size();
    a.value = data;
    a.value_size = size;
    a.callback_error = &make;
    a.user_arg = put_arg_;
    return Status(put_(&a));
  }

  absl::StatusOr<std::string> Get(const std::string& key, int milliseconds) const {
    PJRT_CallbackError make = &Make;
    PJRT_KeyValueGetCallback_Args a{};
    a.struct_size = PJRT_KeyValueGetCallback_Args_STRUCT_SIZE;
    a.key = key.data();
    a.key_size = key.size();
    a.timeout_in_ms = milliseconds;
    a.callback_error = &make;
    a.user_arg = get_arg_;
    absl::Status status = Status(get_(&a));
    if (!status.ok()) return status;
    std::string value(a.value, a.value_size);
    if (a.value_deleter_callback) a.value_deleter_callback(a.value);
    return value;
  }

 private:
  // What callbacks make errors with.
  static PJRT_Error* Make(PJRT_Error_Code code, const char* message, size_t size) {
    return new PJRT_Error{absl::Status(static_cast<absl::StatusCode>(code), absl::string_view(message, size))};
  }

  static absl::Status Status(PJRT_Error* error) {
    std::unique_ptr<PJRT_Error> owned(error);
    return owned ? owned->status : absl::OkStatus();
  }

  PJRT_KeyValueGetCallback get_;
  void* get_arg_;
  PJRT_KeyValuePutCallback put_;
  void* put_arg_;
};

template <typename T>
T Combine(xla::ReductionKind kind, T a, T b) {
  if constexpr (std::is_same_v<T, xla::complex64> || std::is_same_v<T, xla::complex128>) {
    return kind == xla::ReductionKind::PRODUCT ? a * b : a + b;
  } else {
    switch (kind) {
      case xla::ReductionKind::SUM: return static_cast<T>(a + b);
      case xla::ReductionKind::PRODUCT: return static_cast<T>(a * b);
      case xla::ReductionKind::MIN: return b < a ? b : a;
      case xla::ReductionKind::MAX: return a < b ? b : a;
    }
  }
}

template <typename T>
void Reduce(xla::ReductionKind kind, const std::vector<std::string>& all, size_t first, size_t count, void* out) {
  std::vector<T> sum(count), next(count);
  for (size_t i = 0; i < all.size(); ++i) {
    std::memcpy(next.data(), all[i].data() + first * sizeof(T), count * sizeof(T));
    for (size_t k = 0; k < count; ++k) sum[k] = i == 0 ? next[k] : Combine<T>(kind, sum[k], next[k]);
  }
  std::memcpy(out, sum.data(), count * sizeof(T));
}

inline absl::Status ReduceAs(xla::PrimitiveType type, xla::ReductionKind kind, const std::vector<std::string>& all,
                             size_t first, size_t count, void* out) {
  switch (type) {
#define CASE(NAME, T) case xla::NAME: Reduce<T>(kind, all, first, count, out); return absl::OkStatus();
    CASE(PRED, uint8_t) CASE(S8, int8_t) CASE(S16, int16_t) CASE(S32, int32_t) CASE(S64, int64_t)
    CASE(U8, uint8_t) CASE(U16, uint16_t) CASE(U32, uint32_t) CASE(U64, uint64_t)
    CASE(F16, xla::half) CASE(BF16, xla::bfloat16) CASE(F32, float) CASE(F64, double)
    CASE(C64, xla::complex64) CASE(C128, xla::complex128)
#undef CASE
    default: return absl::UnimplementedError(absl::StrCat("a reduction of ", xla::primitive_util::LowercasePrimitiveTypeName(type)));
  }
}

// What one device sends and gets among those of a clique.
class StoreCommunicator : public xla::Communicator {
 public:
  StoreCommunicator(std::shared_ptr<const Store> store, std::string clique, size_t rank, size_t ranks)
      : store_(std::move(store)), clique_(std::move(clique)), rank_(rank), ranks_(ranks) {}

  using Memory = stream_executor::DeviceAddressBase;

  xla::Future<> AllReduce(Memory send, Memory recv, xla::PrimitiveType type, size_t count, xla::ReductionKind kind,
                          const Executor& executor) override {
    return Done([&]() -> absl::Status {
      auto all = Everybody(Bytes(send, type, count), executor);
      return all.ok() ? ReduceAs(type, kind, *all, 0, count, recv.opaque()) : all.status();
    });
  }

  xla::Future<> ReduceScatter(Memory send, Memory recv, xla::PrimitiveType type, size_t count,
                              xla::ReductionKind kind, const Executor& executor) override {
    return Done([&]() -> absl::Status {
      auto all = Everybody(Bytes(send, type, count * ranks_), executor);
      return all.ok() ? ReduceAs(type, kind, *all, rank_ * count, count, recv.opaque()) : all.status();
    });
  }

  xla::Future<> AllGather(Memory send, Memory recv, xla::PrimitiveType type, size_t count,
                          const Executor& executor) override {
    return Done([&]() -> absl::Status {
      auto all = Everybody(Bytes(send, type, count), executor);
      if (!all.ok()) return all.status();
      char* to = static_cast<char*>(recv.opaque());
      for (const std::string& part : *all) to = std::copy(part.begin(), part.end(), to);
      return absl::OkStatus();
    });
  }

  xla::Future<> CollectivePermute(Memory send, Memory recv, xla::PrimitiveType type, size_t count,
                                  std::optional<xla::RankId> source, absl::Span<const xla::RankId> targets,
                                  const Executor& executor) override {
    return Done([&]() -> absl::Status {
      absl::string_view own = Bytes(send, type, count);
      std::string folder = Folder(executor);
      if (!targets.empty()) {
        absl::Status put = store_->Put(absl::StrCat(folder, rank_), own.data(), own.size());
        if (!put.ok()) return put;
      }
      if (!source) {
        std::memset(recv.opaque(), 0, own.size());
        return absl::OkStatus();
      }
      auto got = store_->Get(absl::StrCat(folder, source->value()), kPatience);
      if (!got.ok()) return got.status();
      std::memcpy(recv.opaque(), got->data(), got->size());
      return absl::OkStatus();
    });
  }

  xla::Future<> AllToAll(absl::InlinedVector<Memory, 4> send, absl::InlinedVector<Memory, 4> recv,
                         xla::PrimitiveType type, size_t count, const Executor& executor) override {
    return Done([&]() -> absl::Status {
      std::string own;
      for (Memory& part : send) own.append(Bytes(part, type, count));
      size_t size = own.size() / send.size();
      auto all = Everybody(own, executor);
      if (!all.ok()) return all.status();
      for (size_t i = 0; i < recv.size(); ++i) std::memcpy(recv[i].opaque(), (*all)[i].data() + rank_ * size, size);
      return absl::OkStatus();
    });
  }

  xla::Future<> Broadcast(Memory, Memory, xla::PrimitiveType, size_t, xla::RankId, const Executor&) override {
    return Missing("Broadcast");
  }
  xla::Future<> Send(Memory, xla::PrimitiveType, size_t, xla::RankId, const Executor&) override {
    return Missing("Send");
  }
  xla::Future<> Recv(Memory, xla::PrimitiveType, size_t, xla::RankId, const Executor&) override {
    return Missing("Recv");
  }

  absl::StatusOr<size_t> NumRanks() const override { return ranks_; }
  std::string ToString() const override { return absl::StrCat("StoreCommunicator ", rank_, " of ", ranks_); }

 private:
  // How long others may take, in milliseconds; a process that died is known sooner.
  static constexpr int kPatience = 300000;

  static xla::Future<> Done(const std::function<absl::Status()>& run) { return xla::Future<>(run()); }
  static xla::Future<> Missing(const char* name) {
    return xla::Future<>(absl::UnimplementedError(absl::StrCat(name, " between processes")));
  }
  static absl::string_view Bytes(const Memory& memory, xla::PrimitiveType type, size_t count) {
    return {static_cast<const char*>(memory.opaque()), count * xla::primitive_util::ByteWidth(type)};
  }

  // The folder of an operation: the same for the same run of it on every device. Without a channel the operation's
  // number is that of a module in its process.
  std::string Folder(const Executor& executor) {
    const auto& key = static_cast<const xla::cpu::CpuCollectives::Executor&>(executor).rendezvous_key();
    bool channel = key.collective_op_kind == xla::RendezvousKey::kCrossModule;
    std::string name = absl::StrCat(clique_, "/", channel ? absl::StrCat(key.op_id) : "replicas");
    std::lock_guard<std::mutex> lock(mutex_);
    return absl::StrCat(name, "/", runs_[name]++, "/");
  }

  // What each device brings, in order of ranks.
  absl::StatusOr<std::vector<std::string>> Everybody(absl::string_view own, const Executor& executor) {
    std::string folder = Folder(executor);
    absl::Status put = store_->Put(absl::StrCat(folder, rank_), own.data(), own.size());
    if (!put.ok()) return put;
    std::vector<std::string> all;
    for (size_t i = 0; i < ranks_; ++i) {
      if (i == rank_) {
        all.emplace_back(own);
        continue;
      }
      auto got = store_->Get(absl::StrCat(folder, i), kPatience);
      if (!got.ok()) return got.status();
      all.push_back(*std::move(got));
    }
    return all;
  }

  std::shared_ptr<const Store> store_;
  std::string clique_;
  size_t rank_, ranks_;
  std::mutex mutex_;
  std::map<std::string, int64_t> runs_;
};

// Collectives between the devices of several processes; those of one process meet in its memory.
class StoreCollectives : public xla::cpu::CpuCollectives {
 public:
  StoreCollectives(std::shared_ptr<const Store> store, int process) : store_(std::move(store)), process_(process) {}

  absl::StatusOr<std::vector<std::unique_ptr<xla::Communicator>>> CreateCommunicators(
      const xla::CliqueKey& key, const std::optional<xla::CliqueIds>& ids, absl::Span<const DeviceRank> ranks,
      const Config& config) final {
    auto own = [&](xla::GlobalDeviceId d) {
      return xla::UnpackCpuProcessIndex(xla::PjRtGlobalDeviceId(d.value())) == process_;
    };
    if (std::all_of(key.devices().begin(), key.devices().end(), own))
      return within_.CreateCommunicators(key, ids, ranks, config);
    auto number = [](std::string* out, xla::GlobalDeviceId d) { absl::StrAppend(out, d.value()); };
    std::string name = absl::StrCat("xla_cpu/", absl::StrJoin(key.devices(), "-", number));
    std::vector<std::unique_ptr<xla::Communicator>> made;
    for (const DeviceRank& r : ranks)
      made.push_back(std::make_unique<StoreCommunicator>(store_, name, r.rank.value(), key.num_devices()));
    return made;
  }

 private:
  std::shared_ptr<const Store> store_;
  int process_;
  xla::cpu::InProcessCollectives within_;
};

// Makes a client with the devices of all processes, as many in each.
inline absl::StatusOr<std::unique_ptr<xla::PjRtClient>> Client(xla::CpuClientOptions o, int process, int count,
                                                               const PJRT_Client_Create_Args* args) {
  auto store = std::make_shared<const Store>(args);
  if (!store->there()) return absl::InvalidArgumentError("several processes need a key-value store");
  auto alone = xla::GetXlaPjrtCpuClient(o);
  if (!alone.ok()) return alone.status();
  auto found = (*alone)->GetTopologyDescription();
  if (!found.ok()) return found.status();
  const auto& known = static_cast<const xla::CpuTopologyDescription&>(**found);
  std::vector<xla::CpuTopology::CpuDevice> devices;
  for (int p = 0; p < count; ++p)
    for (int i = 0; i < known.cpu_topology().number_of_devices(); ++i) devices.push_back({p, i});
  xla::CpuTopologyDescription topology(known.platform_id(), known.platform_name(), known.platform_version(), devices,
                                       known.cpu_topology().machine_attributes());
  o.cpu_device_count = static_cast<int>(devices.size());
  o.process_id = process;
  o.collectives = std::make_shared<StoreCollectives>(store, process);
  o.topology = &topology;
  return xla::GetXlaPjrtCpuClient(std::move(o));
}

}  // namespace processes

// ManagerLink: the node's session with the manager. Registers, sends heartbeats, carries out
// orders, and reconnects when the stream breaks. Meanwhile the node serves clients whose
// capabilities it can verify.
//
// Has two threads: one reads orders, one sends heartbeats. Call Start and Stop from one thread.
#ifndef MOSA_STORAGE_NODE_SERVICE_MANAGER_LINK_H_
#define MOSA_STORAGE_NODE_SERVICE_MANAGER_LINK_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/rare_log.h"
#include "common/base/status.h"
#include "common/model/residence.h"
#include "common/model/storage.h"
#include "mosa/v1/node.grpc.pb.h"
#include "proto/convert/credentials.h"
#include "storage-node/engine/access_gate.h"
#include "storage-node/engine/object_engine.h"
#include "storage-node/service/copier.h"

namespace mosa::node {

struct ManagerLinkOptions {
  std::string manager_address;
  std::optional<ClusterSecret> secret;
  // The constant part of each registration: name, address, socket, host, limit.
  NodeRegistration registration;
};

class ManagerLink {
 public:
  // The references must outlive the link. `on_shutdown` is called once, on the link's thread, when
  // the manager will never accept the node again.
  ManagerLink(ManagerLinkOptions options, ObjectEngine& engine, AccessGate& gate, Copier& copier,
              std::function<void(Status)> on_shutdown);
  ~ManagerLink();

  // Starts and waits for the first registration. Unavailable if there is none within `wait`; the
  // manager's refusal; FailedPrecondition if the objects belong to another cluster; Aborted if
  // `give_up`, polled a few times a second, returns true.
  Status Start(Duration wait, const std::function<bool()>& give_up);
  void Stop();
  // Reports progress of an order. Dropped without a session: the manager then orders again.
  // Thread-safe.
  void Send(const CopyReport& report);

 private:
  using Stream = grpc::ClientReaderWriter<v1::NodeMessage, v1::ManagerToNode>;

  void RunSession();
  void RunHeartbeats();
  ResidenceSnapshot Answer(const ResidenceQuery& query);
  // Runs one stream until it ends. Returns why it ended.
  Status RunStream(bool& was_registered);
  Status Register(Stream& stream);
  Status Carry(const v1::ManagerToNode& wire);
  void Obey(NodeOrder order);
  Status Adopt(const NodeRegistered& registered);
  void Beat();
  void TellAside();  // Reports everything that is put aside.
  // Sends what `content` returns if there is a session, and records the time under `kind`.
  template <typename Content>
  void Tell(DurationTable::ClassId kind, const Content& content);
  // Waits until the channel is connected, the link stops, or an attempt would report why it is not.
  void AwaitManager();
  bool BackOff(Duration delay);

  // Constant.
  const ManagerLinkOptions options_;
  ObjectEngine& engine_;
  AccessGate& gate_;
  Copier& copier_;
  const std::function<void(Status)> on_shutdown_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::NodeSessionService::Stub> stub_;

  SystemMutex write_mutex_;                                 // Acquired before mutex_.
  Stream* stream_ ABSL_GUARDED_BY(write_mutex_) = nullptr;  // Null while not registered.

  RareLog drops_{20};
  SystemMutex mutex_;
  SystemCondVar changed_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<Status> started_ ABSL_GUARDED_BY(mutex_);  // Result of Start.
  bool beat_now_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread session_thread_;
  std::thread heartbeat_thread_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_MANAGER_LINK_H_

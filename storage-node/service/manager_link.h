// ManagerLink: the node's conversation with the manager. Registers, beats, carries out orders, and
// comes back when the stream breaks; meanwhile the node goes on serving clients whose capabilities
// it can check.
//
// Two threads of its own: one reads orders, one beats. Start and Stop from one thread.
#ifndef MOSA_STORAGE_NODE_SERVICE_MANAGER_LINK_H_
#define MOSA_STORAGE_NODE_SERVICE_MANAGER_LINK_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/base/status.h"
#include "common/model/residence.h"
#include "common/model/storage.h"
#include "mosa/v1/node.grpc.pb.h"
#include "proto/convert/credentials.h"
#include "storage-node/service/access_gate.h"
#include "storage-node/service/copier.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {

struct ManagerLinkOptions {
  std::string manager_address;
  std::optional<ClusterSecret> secret;
  // What does not change from one registration to the next: name, address, socket, host, limit.
  NodeRegistration registration;
};

class ManagerLink {
 public:
  // The references must outlive it. `on_shutdown` is called, once, on the link's thread, when
  // the manager will never take the node back.
  ManagerLink(ManagerLinkOptions options, ObjectEngine& engine, AccessGate& gate, Copier& copier,
              std::function<void(Status)> on_shutdown);
  ~ManagerLink();

  // Begins, and waits for the first registration: Unavailable if none within `wait`; the manager's
  // refusal, or FailedPrecondition if the objects are another cluster's; Aborted if `give_up`,
  // asked a few times a second, says so.
  Status Start(Duration wait, const std::function<bool()>& give_up);
  void Stop();
  // Reports how an order is getting on. Without a session it is not sent: the manager orders anew.
  // Safe from any thread.
  void Send(const CopyReport& report);

 private:
  using Stream = grpc::ClientReaderWriter<v1::NodeMessage, v1::ManagerToNode>;

  void RunSession();
  void RunHeartbeats();
  ResidenceSnapshot Answer(const ResidenceQuery& query);
  // One stream from beginning to end; why it ended.
  Status RunStream(bool& was_registered);
  Status Register(Stream& stream);
  Status Carry(const v1::ManagerToNode& wire);
  void Obey(NodeOrder order);
  Status Adopt(const NodeRegistered& registered);
  void Beat();
  void TellAside();  // All that is put aside.
  // Sends what `content` gives, if there is a session to hear it; counted as `kind`, a part.
  template <typename Content>
  void Tell(DurationTable::ClassId kind, const Content& content);
  // Until the channel is connected, the end comes, or an attempt would say why it is not.
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

  std::mutex write_mutex_;    // Before mutex_.
  Stream* stream_ = nullptr;  // Guarded by write_mutex_; null while not registered.

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  grpc::ClientContext* context_ = nullptr;
  std::optional<Status> started_;  // The outcome of Start.
  bool beat_now_ = false;
  bool stopping_ = false;

  std::thread session_thread_;
  std::thread heartbeat_thread_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_MANAGER_LINK_H_

// Settings of gRPC that hold for a whole process.
#ifndef MOSA_PROTO_CONVERT_GRPC_PROCESS_H_
#define MOSA_PROTO_CONVERT_GRPC_PROCESS_H_

namespace mosa {

// Call it once, at the beginning of a daemon's main, before any thread is started.
void PrepareGrpcProcess();

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_GRPC_PROCESS_H_

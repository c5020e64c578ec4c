// Plays a task whose operations are known: which file it reads, writes or removes, and how long it
// computes in between.
//
// Each file is opened once, by the task's first operation on it, and closed by its last. What the
// task has written it reads back through the same open. A last read up to the end of a stream
// waits until the stream has ended.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_OPERATIONS_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_OPERATIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "predictor/des/activity.h"
#include "predictor/des/waiting.h"
#include "predictor/run/machines.h"
#include "predictor/run/prediction.h"
#include "predictor/run/simulated_client.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Files that a host reads ahead now, by path: a task that opens one meanwhile reads it at the same
// pace.
using BeingRead = std::map<std::string, std::unique_ptr<des::Signal>>;

// Computes what takes so long on so many cores, on at most `threads` of them at a time.
des::Activity<void> Compute(des::EventLoop& loop, Machines& machines, MachineIndex machine,
                            Duration duration, uint32_t cores, uint32_t threads);

// For one task. All constructor arguments must outlive it.
class SimulatedOperations {
 public:
  SimulatedOperations(des::EventLoop& loop, const Workflow& workflow, TaskIndex task,
                      const std::string& name, const std::vector<TaskOperation>& operations,
                      Machines& machines, SimulatedClient& client, const BeingRead& being_read,
                      uint32_t slots, PredictedTask& predicted)
      : loop_(loop),
        workflow_(workflow),
        task_(workflow.at(task)),
        name_(name),
        operations_(operations),
        machines_(machines),
        client_(client),
        being_read_(being_read),
        slots_(slots),
        predicted_(predicted) {}

  // Adds times and bytes to the predicted task. On failure it stops and closes the open files.
  des::Activity<sai::Outcome<sai::Done>> Play();

 private:
  using Done = sai::Outcome<sai::Done>;
  struct Used {
    size_t left = 0;  // Operations still to come.
    bool was_written = false;
    std::shared_ptr<SimulatedClient::Reading> reading;
    std::shared_ptr<SimulatedClient::Writing> writing;
    Time reading_since, writing_since;
  };

  des::Activity<Done> Read(Used& used, const TaskOperation& operation);
  des::Activity<Done> Write(Used& used, const TaskOperation& operation);
  des::Activity<Done> OpenToWrite(Used& used, PathIndex path);
  des::Activity<void> CloseRead(Used& used);
  des::Activity<Done> Close(Used& used);
  // Ends a failed task. Open files must be closed, since transfers in flight refer to them.
  des::Activity<void> Abandon();
  // Writes outputs for which no write is known: they exist after the task all the same.
  des::Activity<Done> WriteTheRest();
  Duration Lap() { return loop_.now() - std::exchange(last_, loop_.now()); }

  des::EventLoop& loop_;
  const Workflow& workflow_;
  const Task& task_;
  const std::string& name_;  // As the store knows it.
  const std::vector<TaskOperation>& operations_;
  Machines& machines_;
  SimulatedClient& client_;
  const BeingRead& being_read_;
  const uint32_t slots_;  // The host's.
  PredictedTask& predicted_;
  std::map<PathIndex, Used> files_;
  Time last_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_OPERATIONS_H_

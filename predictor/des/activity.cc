#include "predictor/des/activity.h"

namespace mosa::des {

void Spawn([[maybe_unused]] EventLoop& loop, Activity<void> activity) { co_await activity; }

}  // namespace mosa::des

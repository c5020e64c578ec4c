#include "proto/convert/residence.h"

#include "proto/convert/fields.h"

namespace mosa {

namespace {

constexpr size_t kAmountsMax = 1000;

void Write(const ResidenceRow& value, wire::ResidenceRow* out) {
  out->set_name(value.name);
  out->set_peer(value.peer);
  out->set_sum_ns(value.times.sum_ns);
  out->set_max_ns(value.times.max_ns);
  for (size_t bucket = 0; bucket < kDurationBuckets; ++bucket) {
    if (value.times.counts[bucket] == 0) continue;
    out->add_buckets(static_cast<uint32_t>(bucket));
    out->add_counts(value.times.counts[bucket]);
  }
}

ResidenceRow Read(const wire::ResidenceRow& in, FieldChecker& check) {
  ResidenceRow row{.name = check.Name("rows.name", in.name()),
                   .peer = check.Name("rows.peer", in.peer()),
                   .times = {}};
  row.times.sum_ns = check.Number("rows.sum_ns", in.sum_ns());
  row.times.max_ns = check.Number("rows.max_ns", in.max_ns());
  if (in.buckets_size() != in.counts_size())
    check.Wrong("rows.counts", "must have one entry per bucket");
  for (int i = 0; i < in.buckets_size() && check.ok(); ++i) {
    if (in.buckets(i) >= kDurationBuckets || (i > 0 && in.buckets(i) <= in.buckets(i - 1))) {
      check.Wrong("rows.buckets", "must be known and ascending");
    } else {
      row.times.counts[in.buckets(i)] = check.Number("rows.counts", in.counts(i));
    }
  }
  return row;
}

void Write(const ResidenceAmount& value, wire::ResidenceAmount* out) {
  out->set_name(value.name);
  out->set_value(value.value);
  out->set_is_total(value.is_total);
}

ResidenceAmount Read(const wire::ResidenceAmount& in, FieldChecker& check) {
  return {.name = check.Name("amounts.name", in.name()),
          .value = in.value(),
          .is_total = in.is_total()};
}

}  // namespace

namespace {

void Write(const RequestLogState& value, wire::RequestLogState* out) {
  out->set_is_on(value.is_on);
  out->set_is_busy(value.is_busy);
  out->set_path(value.path);
  out->set_fault(value.fault);
  out->set_records(value.records);
  out->set_dropped(value.dropped);
}

RequestLogState Read(const wire::RequestLogState& in, FieldChecker& check) {
  return {.is_on = in.is_on(),
          .is_busy = in.is_busy(),
          .path = check.Bytes("log.path", in.path(), 8192),
          .fault = check.Bytes("log.fault", in.fault(), 8192),
          .records = in.records(),
          .dropped = in.dropped()};
}

}  // namespace

void AppendRows(const DurationTable& table, ResidenceSnapshot& snapshot) {
  table.Visit(
      [&snapshot](const std::string& name, const std::string& peer, const DurationCounts& times) {
        snapshot.is_truncated = snapshot.rows.size() >= kResidenceRowsMax;
        if (!snapshot.is_truncated) snapshot.rows.push_back({name, peer, times});
      });
}

void AppendProcessorUse(const ProcessorUse& use, ResidenceSnapshot& snapshot) {
  const auto add = [&snapshot](const char* name, uint64_t value, bool is_total) {
    snapshot.amounts.push_back({name, value, is_total});
  };
  add("processor_ns", use.own_ns, true);
  if (use.machine == 0) return;
  add("machine_id", use.machine, false);
  add("machine_processors", use.processors, false);
  add("machine_busy_ns", use.busy_ns, true);
  add("machine_stolen_ns", use.stolen_ns, true);
  if (use.waited_ns > 0) add("machine_waited_ns", use.waited_ns, true);
}

void ToProto(const ResidenceSnapshot& snapshot, v1::ResidenceSnapshot* out) {
  out->set_component(snapshot.component);
  out->set_started_ns(snapshot.started.ns);
  out->set_taken_ns(snapshot.taken.ns);
  for (const ResidenceRow& row : snapshot.rows) Write(row, out->add_rows());
  for (const ResidenceAmount& amount : snapshot.amounts) Write(amount, out->add_amounts());
  out->set_is_truncated(snapshot.is_truncated);
  if (snapshot.log != RequestLogState()) Write(snapshot.log, out->mutable_log());
}

Result<ResidenceSnapshot> FromProto(const v1::ResidenceSnapshot& message) {
  FieldChecker check;
  ResidenceSnapshot snapshot{.component = check.Name("component", message.component()),
                             .started = {message.started_ns()},
                             .taken = {message.taken_ns()},
                             .rows = {},
                             .amounts = {},
                             .is_truncated = message.is_truncated(),
                             .log = Read(message.log(), check)};
  if (check.Count("rows", message.rows_size(), kResidenceRowsMax))
    for (const wire::ResidenceRow& row : message.rows()) snapshot.rows.push_back(Read(row, check));
  if (check.Count("amounts", message.amounts_size(), kAmountsMax))
    for (const wire::ResidenceAmount& amount : message.amounts())
      snapshot.amounts.push_back(Read(amount, check));
  if (!check.ok()) return check.status();
  return snapshot;
}

void ToProto(const ResidenceSource& source, v1::GetResidenceRequest* out) {
  if (const auto* const node = std::get_if<NodeId>(&source)) out->set_node_id(node->value);
  if (const auto* const client = std::get_if<ClientId>(&source)) out->set_client_id(client->value);
}

ResidenceSource FromProto(const v1::GetResidenceRequest& message) {
  switch (message.source_case()) {
    case v1::GetResidenceRequest::kNodeId:
      return NodeId{message.node_id()};
    case v1::GetResidenceRequest::kClientId:
      return ClientId{message.client_id()};
    case v1::GetResidenceRequest::SOURCE_NOT_SET:
      break;
  }
  return std::monostate();
}

void ToProto(const ResidenceQuery& query, v1::GetResidenceRequest* out) {
  out->set_log_order(ToProto(query.log_order));
  out->set_log_directory(query.log_directory);
}

Result<ResidenceQuery> QueryOf(const v1::GetResidenceRequest& message) {
  ResidenceQuery query{.query = 0, .log_order = OrderOf(message.log_order()), .log_directory = {}};
  if (query.log_order != RequestLogOrder::kBegin) return query;
  MOSA_RETURN_IF_ERROR(RequestLog::CheckDirectory(message.log_directory()));
  query.log_directory = message.log_directory();
  return query;
}

void ObeyQuery(const ResidenceQuery& query, const std::string& host, RequestLog& log,
               ResidenceSnapshot& snapshot) {
  Status done = OkStatus();
  if (query.log_order == RequestLogOrder::kBegin)
    done = log.Start(
        {.directory = query.log_directory, .component = snapshot.component, .host = host});
  if (query.log_order == RequestLogOrder::kEnd) log.Stop();
  const RequestLog::State state = log.state();
  snapshot.log = {.is_on = state.is_on,
                  .is_busy = state.is_busy,
                  .path = state.path,
                  .fault = done.ok() ? state.fault : MessageOf(done),
                  .records = state.records,
                  .dropped = state.dropped};
}

ResidenceReport ReportOf(const ResidenceQuery& query, const ResidenceSnapshot& snapshot) {
  v1::ResidenceSnapshot message;
  ToProto(snapshot, &message);
  while (message.ByteSizeLong() > kResidenceBytesMax) {
    message.mutable_rows()->DeleteSubrange(message.rows_size() / 2,
                                           message.rows_size() - message.rows_size() / 2);
    message.set_is_truncated(true);
  }
  return {.query = query.query, .snapshot = message.SerializeAsString()};
}

}  // namespace mosa

#include "tools/cluster/secret.h"

#include <fmt/format.h>

#include <memory>

#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

Status Create(const std::string& path, const CommandLine& line) {
  MOSA_RETURN_IF_ERROR(cluster::CreateSecretFile(path));
  if (line.json) PrintJson({{"secret", path}});
  fmt::print(stderr, "Wrote {}: copy it to every machine of the cluster, readable by Mosa alone.\n",
             path);
  return OkStatus();
}

}  // namespace

void AddSecret(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand("secret", "The file that admits a machine to a cluster");
  noun->require_subcommand(1);
  noun->fallthrough();
  auto path = std::make_shared<std::string>();
  CLI::App* command =
      noun->add_subcommand("create",
                           "Make a new cluster secret: a certificate and its key, mode 0600\n\n"
                           "  mosa secret create /etc/mosa/secret.pem\n"
                           "  scp -p /etc/mosa/secret.pem node2:/etc/mosa/");
  command->add_option("file", *path, "Where to write it")->required();
  command->callback([path, &line] { line.action = [path, &line] { return Create(*path, line); }; });
}

}  // namespace mosa::cli

#include "tools/cluster/secret.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/convert/certificates.h"
#include "tools/console/output.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

Status Create(const std::string& directory, const CommandLine& line) {
  MOSA_RETURN_IF_ERROR(cluster::CreateSecrets(directory));
  if (line.json) PrintJson({{"directory", directory}});
  fmt::print(stderr,
             "Wrote {0}: manager.pem, node.pem, mount.pem and admin.pem go to the machines that "
             "need them; keep {0}/ca.pem, which issues secrets, elsewhere.\n",
             directory);
  return OkStatus();
}

struct Issue {
  std::string directory, path, role = "user", node;
  std::optional<uint32_t> uid;
  int days = 0;
};

Status IssueSecret(const Issue& issue, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const Role role, ParseRole(issue.role));
  const Identity identity{.role = role, .node = issue.node, .uid = issue.uid};
  if (role == Role::kUser && !issue.uid)
    return InvalidArgumentError("a user's secret is for one uid: give --uid N");
  MOSA_RETURN_IF_ERROR(cluster::IssueSecretFile({.directory = issue.directory,
                                                 .path = issue.path,
                                                 .identity = identity,
                                                 .days = issue.days}));
  if (line.json) PrintJson({{"secret", issue.path}, {"role", issue.role}});
  fmt::print(stderr, "Wrote {}, for the role {}.\n", issue.path, Describe(identity));
  return OkStatus();
}

Status ShowSecret(const std::string& path, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const ClusterSecret secret, LoadSecret(path));
  const SecretFacts facts = FactsOf(secret);
  if (line.json) {
    PrintJson({{"role", NameOf(secret.identity.role)},
               {"for", Describe(secret.identity)},
               {"expires", facts.expires},
               {"issuer", facts.issuer},
               {"trusts", facts.trusted}});
    return OkStatus();
  }
  fmt::print("role     {}\nexpires  {}\nissuer   {}\n", Describe(secret.identity), facts.expires,
             facts.issuer);
  for (const std::string& each : facts.trusted) fmt::print("trusts   {}\n", each);
  return OkStatus();
}

Status Rotate(const std::string& step, const std::string& directory, const CommandLine& line) {
  const std::map<std::string, cluster::Rotation> steps = {{"begin", cluster::Rotation::kBegin},
                                                          {"switch", cluster::Rotation::kSwitch},
                                                          {"end", cluster::Rotation::kEnd}};
  const auto found = steps.find(step);
  if (found == steps.end())
    return InvalidArgumentError(fmt::format("unknown step '{}': use begin, switch or end", step));
  MOSA_ASSIGN_OR_RETURN(const cluster::Rotated rotated, cluster::Rotate(directory, found->second));
  if (line.json)
    PrintJson({{"step", step}, {"files", rotated.written}, {"expired", rotated.expired}});
  std::string names;
  for (const std::string& file : rotated.written)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", file);
  for (const std::string& file : rotated.expired)
    fmt::print(stderr, "Left {} unchanged: it has expired. Issue a new one, or remove it.\n", file);
  fmt::print(stderr, "Wrote {}. Copy each to where it is used, as a whole (cp, then mv)", names);
  fmt::print(stderr, "{}\n",
             step == "end" ? "; then nothing trusts the old authority any more."
                           : ", and wait 10 s before the next step.");
  return OkStatus();
}

void AddIssue(CLI::App& noun, CommandLine& line) {
  auto issue = std::make_shared<Issue>();
  CLI::App* command =
      noun.add_subcommand("issue",
                          "Issue a secret for one role\n\n"
                          "  mosa secret issue ~/mosa-secrets alice.pem --uid 1000\n"
                          "  mosa secret issue ~/mosa-secrets n1.pem --role node --node n1");
  command->add_option("directory", issue->directory, "Directory that holds ca.pem")->required();
  command->add_option("file", issue->path, "Secret file to write")->required();
  command->add_option("--role", issue->role, "Role: user, node, mount, admin or manager")
      ->capture_default_str();
  command->add_option("--uid", issue->uid,
                      "User id that a secret of the role user acts for; required with that role");
  command->add_option("--node", issue->node,
                      "Only name under which a node may register; default: any");
  command->add_option("--days", issue->days,
                      "Validity in days; default: 366 for the role user, 3650 for others");
  command->callback(
      [issue, &line] { line.action = [issue, &line] { return IssueSecret(*issue, line); }; });
}

void AddRotate(CLI::App& noun, CommandLine& line) {
  struct Rotation {
    std::string step, directory;
  };
  auto rotation = std::make_shared<Rotation>();
  CLI::App* command = noun.add_subcommand(
      "rotate",
      "Replace the authority and all keys of a running cluster, in three steps\n\n"
      "  mosa secret rotate begin ~/mosa-secrets    # every secret trusts both authorities\n"
      "  mosa secret rotate switch ~/mosa-secrets   # the new authority reissues every secret\n"
      "  mosa secret rotate end ~/mosa-secrets      # no secret trusts the old authority\n\n"
      "After each step, copy the files to the machines and wait 10 s: daemons reload them by\n"
      "themselves.");
  command->add_option("step", rotation->step, "Step: begin, switch or end")->required();
  command->add_option("directory", rotation->directory, "Directory that holds ca.pem")->required();
  command->callback([rotation, &line] {
    line.action = [rotation, &line] { return Rotate(rotation->step, rotation->directory, line); };
  });
}

}  // namespace

void AddSecret(CLI::App& app, CommandLine& line) {
  CLI::App* noun =
      app.add_subcommand("secret", "Manage the secrets that admit daemons and users to a cluster");
  noun->require_subcommand(1);
  noun->fallthrough();
  auto path = std::make_shared<std::string>();
  CLI::App* create = noun->add_subcommand(
      "create",
      "Create a cluster's certificate authority, and a secret for each role except user\n\n"
      "  mosa secret create ~/mosa-secrets\n"
      "  scp ~/mosa-secrets/{node,mount}.pem node2:/etc/mosa/");
  create->add_option("directory", *path, "Directory to create; must not exist")->required();
  create->callback([path, &line] { line.action = [path, &line] { return Create(*path, line); }; });
  AddIssue(*noun, line);
  AddRotate(*noun, line);
  CLI::App* show = noun->add_subcommand(
      "show",
      "Show the role and validity of a secret, and the authorities it trusts\n\n"
      "  mosa secret show FILE");
  show->add_option("file", *path, "Secret file")->required();
  show->callback(
      [path, &line] { line.action = [path, &line] { return ShowSecret(*path, line); }; });
}

}  // namespace mosa::cli

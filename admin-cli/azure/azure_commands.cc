// Gives advice for what Azure itself is to be told. No server is asked.
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "admin-cli/azure/model_plan.h"
#include "admin-cli/session.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxNicBytes = size_t{4} << 20U;
constexpr size_t kMaxNicDepth = 64;

// Tells whether a value is too deep: nlohmann::json prints by recursion, so what is read must not
// be deeper than anybody writes.
bool IsTooDeep(const Json& value, size_t depth) {  // NOLINT(misc-no-recursion): bounded by itself.
  if (depth > kMaxNicDepth) return true;
  if (!value.is_structured()) return false;
  for (const Json& item : value) {
    if (IsTooDeep(item, depth + 1)) return true;
  }
  return false;
}

absl::StatusOr<Json> ReadNic(const std::string& path, Console& console) {
  auto text = path == "-" ? console.ReadInput(kMaxNicBytes) : os::ReadFile(path, kMaxNicBytes);
  if (!text.ok()) return base::Annotate(text.status(), "--nic");
  Json nic = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (nic.is_discarded() || !nic.is_object() || IsTooDeep(nic, 0)) {
    return absl::InvalidArgumentError(fmt::format("--nic: {} is no JSON object", path));
  }
  return nic;
}

absl::StatusOr<ModelInput> InputOf(const Session& session) {
  const Arguments& arguments = session.arguments;
  ModelInput input;
  input.nodes = arguments.Count("nodes");
  input.pods_per_node = arguments.Count("pods-per-node");
  input.batch = arguments.Count("batch");
  if (!absl::SimpleAtoi(arguments.Text("spare"), &input.spare) || input.spare > 1000000) {
    return absl::InvalidArgumentError(
        fmt::format("--spare: \"{}\" is no number from 0 to 1000000", arguments.Text("spare")));
  }
  input.blocks = arguments.Has("blocks");
  input.subnet_id = arguments.Text("subnet-id");
  input.name_prefix = arguments.Text("name-prefix");
  if (arguments.Has("subnet-prefix")) {
    const auto subnet = ip::Prefix::Parse(arguments.Text("subnet-prefix"));
    if (!subnet.ok()) return base::Annotate(subnet.status(), "--subnet-prefix");
    input.subnet = *subnet;
  }
  if (arguments.Has("nic")) {
    ASSIGN_OR_RETURN(input.nic, ReadNic(arguments.Text("nic"), session.world.console));
  }
  return input;
}

Json ToJson(const ModelInput& input, const ModelPlan& plan) {
  return {
      {"nodes", input.nodes},
      {"pods_per_node", input.pods_per_node},
      {"spare", input.spare},
      {"blocks", input.blocks},
      {"addresses_per_node", plan.addresses_per_node},
      {"configurations_ours", plan.ours},
      {"configurations_already", plan.ours_already},
      {"configurations_others", plan.others},
      {"subnet_addresses", plan.subnet_addresses},
      {"subnet_size", input.subnet ? input.subnet->size() : 0},
      {"subnet_prefix_length", plan.prefix_length},
      {"nodes_that_fit", plan.nodes_that_fit},
      {"vnet_addresses", plan.in_vnet},
      {"vnets", plan.vnets},
      {"scale_sets", plan.scale_sets},
      {"pods_without_calls", plan.pods_without_calls},
      {"calls_avoided", input.nodes},
      {"seconds_avoided", absl::ToInt64Seconds(plan.start_without)},
      {"ip_configurations", plan.configurations.is_null() ? Json::array() : plan.configurations}};
}

std::vector<Row> RowsOf(const ModelInput& input, const ModelPlan& plan) {
  const std::string unit = input.blocks ? "/28 blocks" : "single addresses";
  std::string smallest = "no subnet of Azure holds so many";
  if (plan.prefix_length != 0) smallest = fmt::format("a /{} is enough", plan.prefix_length);
  std::string subnet = smallest;
  if (input.subnet) {
    subnet = fmt::format("of the {} in {}, which holds {} such nodes", input.subnet->size(),
                         input.subnet->ToString(), plan.nodes_that_fit);
  }
  const Tone vnet_tone = plan.vnets > 1 ? Tone::kWarning : Tone::kPlain;
  const auto row = [](std::string what, uint64_t value, std::string why, Tone tone = Tone::kPlain) {
    return Row{{std::move(what)}, {std::to_string(value), tone}, {std::move(why)}};
  };
  return {
      row("Addresses a node", plan.addresses_per_node,
          fmt::format("for {} pods and {} spare, in batches of {}", input.pods_per_node,
                      input.spare, input.batch)),
      row("IP configurations a node", plan.ours,
          fmt::format("{}; {} of them are in the model already", unit, plan.ours_already)),
      row("All on its NIC", plan.ours + plan.others,
          fmt::format("with {} of others, the primary one among them; Azure allows {}", plan.others,
                      kMaxOnNic)),
      row("Addresses of the subnet", plan.subnet_addresses, subnet),
      row("Private addresses in VNets", plan.in_vnet,
          fmt::format("{}: Azure allows {} in each",
                      plan.vnets > 1 ? fmt::format("at least {} VNets", plan.vnets) : "one VNet",
                      kMaxInVnet),
          vnet_tone),
      row("Scale sets", plan.scale_sets,
          fmt::format("at least: each has {} machines at most", kMaxInScaleSet)),
      row("Calls to Azure while running", 0,
          fmt::format(
              "as long as no node has more than {} pods, those that ended just now included",
              plan.pods_without_calls),
          Tone::kGood),
      row("node_addresses.min", plan.addresses_per_node,
          "in the server's configuration, or it gives back what stands idle, with more calls"),
      row("Calls without this model", input.nodes,
          plan.start_without == absl::ZeroDuration()
              ? "at least: one a node as it starts, which Azure takes at once"
              : fmt::format("at least: one a node as it starts, for which Azure takes {} if all "
                            "start at once",
                            absl::FormatDuration(plan.start_without)))};
}

absl::StatusOr<int> PlanModelVerb(Session& session) {
  ASSIGN_OR_RETURN(const ModelInput input, InputOf(session));
  ASSIGN_OR_RETURN(const ModelPlan plan, PlanModel(input));
  const bool fragment = session.arguments.Has("fragment");
  const bool known = !plan.configurations.is_null();
  if (fragment && !known) {
    return absl::InvalidArgumentError(
        "--fragment: give --subnet-id, or --nic with a NIC that names its subnet");
  }
  if (fragment) {
    session.Out(session.format == Format::kYaml ? FormatYaml(plan.configurations)
                                                : FormatJson(plan.configurations));
    return 0;
  }
  if (!session.is_table()) {
    return Done(session.PrintValue(ToJson(input, plan)));
  }
  session.Out(FormatTable({"WHAT", "NUMBER", "WHY"}, RowsOf(input, plan),
                          {.colours = session.colours, .header = session.header}));
  session.Note(known ? "--fragment prints what goes into ipConfigurations of the model"
                     : "with --subnet-id or --nic, --fragment prints what goes into "
                       "ipConfigurations of the model");
  return 0;
}

std::vector<Parameter> PlanOptions() {
  return {{.name = "nodes",
           .value = "NUMBER",
           .help = "How many nodes",
           .values = Values::kCount,
           .required = true},
          {.name = "pods-per-node",
           .value = "NUMBER",
           .help = "How many pods on each",
           .values = Values::kCount,
           .required = true},
          {.name = "spare",
           .value = "NUMBER",
           .help = "Addresses a node keeps free beyond its pods: the server's spare times batch",
           .fallback = "8"},
          {.name = "batch",
           .value = "NUMBER",
           .help = "What a node holds is a multiple of it, as in the server's configuration",
           .values = Values::kCount,
           .fallback = "16"},
          {.name = "blocks", .help = "Plan with /28 blocks instead of single addresses"},
          {.name = "subnet-prefix",
           .value = "CIDR",
           .help = "The subnet's block, to see whether all fit"},
          {.name = "subnet-id", .value = "ID", .help = "The subnet's resource id, for --fragment"},
          {.name = "nic",
           .value = "FILE",
           .help = "What the model has now: the scale set, or one of its "
                   "networkInterfaceConfigurations, as JSON of Azure's REST API; - is standard "
                   "input",
           .values = Values::kFile},
          {.name = "name-prefix",
           .value = "TEXT",
           .help = "What the names of our IP configurations begin with",
           .fallback = "spoke-"},
          {.name = "fragment",
           .help = "Print only the list for ipConfigurations, with all that --nic has"}};
}

}  // namespace

Command AzureCommand() {
  Command plan = {
      .name = "plan-model",
      .summary = "Plan which IP configurations to put into a scale set's model",
      .description =
          "Machines that start with their addresses need no calls to Azure, which takes only so "
          "many: 500 updates a minute of all machines of a subscription and region. This counts "
          "what each NIC is to hold, and what the subnet, its VNet and the NIC must have room "
          "for; it asks no server, and changes nothing.\n\n"
          "--fragment prints the list for ipConfigurations of one of the scale set's "
          "networkInterfaceConfigurations (in its virtualMachineProfile, networkProfile). With "
          "--nic it begins with what is there, and may replace it whole. Azure takes /28 blocks in "
          "a model since API version 2026-07-02.",
      .examples = {"spokectl azure plan-model --pods-per-node 110 --nodes 500",
                   "spokectl azure plan-model --pods-per-node 24 --nodes 7000 --blocks "
                   "--subnet-prefix 10.0.0.0/14",
                   "spokectl azure plan-model --pods-per-node 110 --nodes 500 --nic set.json "
                   "--fragment > ipconfigurations.json"},
      .options = PlanOptions(),
      .run = PlanModelVerb,
      .exit_codes = "5 when they do not fit into a NIC, the subnet or its VNet."};
  return {.name = "azure",
          .summary = "Advice for scale sets and subnets of Azure",
          .description = "These verbs compute; they ask neither the server nor Azure.",
          .commands = {std::move(plan)},
          .group = kGroupCare};
}

}  // namespace spoke::ctl

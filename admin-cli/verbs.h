// The verbs, by noun: each function gives commands with their help, and with what they do. The tree
// of all of them is CommandTree().
#pragma once

#include <vector>

#include "admin-cli/command.h"

namespace spoke::ctl {

std::vector<Command> StatusCommands();  // status, top, unfreeze, version.
Command PoolCommand();                  // pool list|show|create|resize|delete.
Command NodeCommand();                  // node list|show|drain|undrain|freeze|unfreeze|...
Command RevokeCommand();                // node revoke.
Command UnrevokeCommand();              // node unrevoke.
Command RevokedCommand();               // node revoked.
Command WaitCommand();                  // node wait.
Command IpCommand();                    // ip list|show|history|release|quarantine.
Command ReserveCommand();               // reserve create|hosts|list|release.
// reserve hosts; `reservation` is its positional argument.
Command HostsCommand(const Parameter& reservation);
std::vector<Command> ObjectCommands();   // apply, diff, get, delete.
Command RolloutCommand();                // rollout status|resume|undo.
Command PolicyCommand();                 // policy verify|history.
Command AuditCommand();                  // audit.
std::vector<Command> ExplainCommands();  // explain, whatif.
Command AuthorityCommand();              // authority list|rotate.
Command AzureCommand();                  // azure plan-model.
Command BudgetCommand();                 // budget list|show|explain.
Command CheckCommand();                  // check.
Command ConnectivityCommand();           // connectivity test.
Command DashboardCommand();              // dashboard.
Command DoctorCommand();                 // doctor.
Command LogsCommand();                   // logs node.
Command NodeStateCommand();              // node state.
Command MaintenanceCommand();            // maintenance list|start.
Command ReachabilityCommand();           // reachability show|node|matrix.
Command AuditLogCommand();               // audit-log.
Command PolicyHistoryVerb();             // policy history.
Command EventsCommand();                 // events.
Command BackupCommand();                 // backup.
Command RecoveryCommand();               // recovery show|confirm.
Command StoreCommand();                  // store migrate.
Command SupportBundleCommand();          // support-bundle.
Command LoginCommand();                  // login.
Command ContextCommand();                // context list|use|set|delete.
std::vector<Command> ShellCommands();    // completion, man, and the hidden __complete.

// Returns everything, under a root named "spokectl" with the options of every command.
Command CommandTree();

// Returns the headings of the first screen.
inline constexpr const char* kGroupLook = "See how things are";
inline constexpr const char* kGroupNouns = "Pools, nodes and addresses";
inline constexpr const char* kGroupPolicy = "Policy objects";
inline constexpr const char* kGroupCare = "Care";
inline constexpr const char* kGroupSelf = "spokectl itself";

}  // namespace spoke::ctl

#include "admin-cli/output/console.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/server/saved_output.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"
#include "lib/units/text.h"

namespace spoke::ctl {
namespace {

using units::ByteCount;
using units::Rounded;

absl::StatusOr<int> Backup(Session& session) {
  const std::string& path = session.arguments.Text("file");
  SavedOutput file(path, session.world.console);
  RETURN_IF_ERROR(file.Open());
  uint64_t total = 0;
  {
    Progress progress(session.world.console, "backup");
    RETURN_IF_ERROR(session.client.Read(kBackup, {}, [&](const v1::BackupResponse& piece) {
      if (piece.offset() != file.size()) {
        return absl::DataLossError(
            fmt::format("the server sent byte {} where byte {} was due; try again", piece.offset(),
                        file.size()));
      }
      total = piece.total();
      const absl::Status appended = file.Append(piece.data());
      progress.Show(
          file.size(), total,
          fmt::format("{} of {}", Rounded(ByteCount(file.size())), Rounded(ByteCount(total))));
      return appended;
    }));
  }
  if (file.size() != total || total == 0) {
    return absl::DataLossError(fmt::format(
        "the backup ended after {} of {} bytes; {}", file.size(), total,
        file.is_standard_output() ? "what was written is of no use" : path + " was not made"));
  }
  RETURN_IF_ERROR(base::Annotate(file.Finish(), "backup"));
  if (file.is_standard_output()) {
    session.Note(fmt::format("standard output: {}, complete", Rounded(ByteCount(total))));
  } else if (session.is_table()) {
    session.Out(fmt::format("{}: {}, complete and on the disk\n", Printable(path),
                            Rounded(ByteCount(total))));
  } else {
    RETURN_IF_ERROR(session.PrintValue({{"file", path}, {"bytes", total}}));
  }
  return 0;
}

}  // namespace

Command BackupCommand() {
  return {.name = "backup",
          .summary = "Save a verified copy of the server's store",
          .description =
              "The server goes on meanwhile. The copy grows as FILE.partial and gets its "
              "name once it is whole, read back and on the disk; a file that exists is "
              "never overwritten. It is readable for its owner only: it names all pods "
              "of now and of the last weeks. To restore: stop the server, put the copy "
              "in the place of its store, start the server. With - the copy goes to "
              "standard output as it comes; it is whole only if the exit code is 0.",
          .examples = {"spokectl backup /var/backups/ipam-$(date +%F).db",
                       "kubectl -n spoke-system exec spoke-ipam-server-0 -- spokectl backup - "
                       ">ipam.db"},
          .positionals = {{.name = "file",
                           .value = "FILE",
                           .help = "A file that is not there yet; - is standard output",
                           .values = Values::kFile,
                           .required = true}},
          .run = Backup,
          .group = kGroupCare};
}

}  // namespace spoke::ctl

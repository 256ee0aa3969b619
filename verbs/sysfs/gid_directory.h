// The three directories that show a port's GID table: gids, gid_attrs/types, gid_attrs/ndevs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/address.h"
#include "verbs/sysfs/private_tree.h"

namespace urxe::verbs {

// One of them: a file for each entry of the table, made when somebody asks for it, or all of them
// when somebody lists the directory. Most entries are unused; those are links to one file.
class GidDirectory {
 public:
  using Gids = std::function<std::vector<wire::IpAddress>()>;
  using Format = std::function<std::string(const wire::IpAddress&)>;

  // `format` makes a used entry's text; `unused` is that of the others. Tree and directory are
  // destroyed together.
  static void add(PrivateTree& tree, std::string path, Gids gids, Format format,
                  std::string unused);

 private:
  GidDirectory(PrivateTree& tree, std::string path, Gids gids, Format format,
               const std::string& unused);

  void update(std::string_view wanted);
  void show(std::size_t index, const wire::IpAddress& gid);

  PrivateTree& tree_;
  const std::string path_;
  const std::string unused_path_;
  const Gids gids_;
  const Format format_;
  std::vector<std::optional<wire::IpAddress>> shown_;  // by index, what the file says if it exists
};

// A GID as the kernel prints it: fe80:0000:0000:0000:5054:00ff:fe88:0002
[[nodiscard]] std::string gid_text(const wire::IpAddress& gid);

}  // namespace urxe::verbs

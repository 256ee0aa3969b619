#include "verbs/sysfs/gid_directory.h"

#include <memory>
#include <utility>

#include "verbs/config/device_config.h"

namespace urxe::verbs {

void GidDirectory::add(PrivateTree& tree, std::string path, Gids gids, Format format,
                       std::string unused) {
  tree.add_directory(path);
  const std::shared_ptr<GidDirectory> directory(
      new GidDirectory(tree, path, std::move(gids), std::move(format), std::move(unused)));
  tree.on_use(path, [directory] { directory->update(); });
}

GidDirectory::GidDirectory(PrivateTree& tree, std::string path, Gids gids, Format format,
                           std::string unused)
    : tree_(tree),
      path_(std::move(path)),
      unused_path_("/unused" + path_),
      gids_(std::move(gids)),
      format_(std::move(format)),
      unused_(std::move(unused)) {}

void GidDirectory::update() {
  std::vector<wire::IpAddress> gids = gids_();
  gids.resize(kGidTableSize);
  if (gids == shown_) return;
  const bool first = shown_.empty();
  // The directory's action keeps this object alive; the entries' actions need not.
  const auto action = [this] { update(); };
  if (first) {
    tree_.add_file(unused_path_, unused_);
    tree_.on_use(unused_path_, action);
  }
  for (std::size_t i = 0; i < gids.size(); ++i) {
    if (!first && gids[i] == shown_[i]) continue;
    if (!first) tree_.remove(path_ + '/' + std::to_string(i));
    show(i, gids[i], action);
  }
  shown_ = std::move(gids);
}

void GidDirectory::show(std::size_t index, const wire::IpAddress& gid,
                        const std::function<void()>& action) {
  const std::string entry = path_ + '/' + std::to_string(index);
  if (gid.is_unspecified()) return tree_.add_alias(entry, unused_path_);
  tree_.add_file(entry, format_(gid));
  tree_.on_use(entry, action);
}

std::string gid_text(const wire::IpAddress& gid) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < wire::IpAddress::kSize; ++i) {
    if (i != 0 && i % 2 == 0) text += ':';
    text += kDigits[gid.bytes()[i] >> 4];
    text += kDigits[gid.bytes()[i] & 15];
  }
  return text;
}

}  // namespace urxe::verbs

#include "verbs/sysfs/gid_directory.h"

#include <charconv>
#include <memory>
#include <utility>

#include "verbs/config/device_config.h"

namespace urxe::verbs {
namespace {

// Beyond the table if `name` is no number.
std::size_t index_of(std::string_view name) {
  std::size_t index = kGidTableSize;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  return is_number ? index : kGidTableSize;
}

}  // namespace

void GidDirectory::add(PrivateTree& tree, std::string path, Gids gids, Format format,
                       std::string unused) {
  const std::shared_ptr<GidDirectory> directory(
      new GidDirectory(tree, path, std::move(gids), std::move(format), unused));
  tree.add_lazy_directory(path,
                          [directory](std::string_view wanted) { directory->update(wanted); });
}

GidDirectory::GidDirectory(PrivateTree& tree, std::string path, Gids gids, Format format,
                           const std::string& unused)
    : tree_(tree),
      path_(std::move(path)),
      unused_path_("/unused" + path_),
      gids_(std::move(gids)),
      format_(std::move(format)),
      shown_(kGidTableSize) {
  tree_.add_file(unused_path_, unused);
  tree_.on_use(unused_path_, [this](auto) { update("none"); });
}

// Brings the files that exist up to date, and adds the one that is wanted, or all.
void GidDirectory::update(std::string_view wanted) {
  std::vector<wire::IpAddress> gids = gids_();
  gids.resize(kGidTableSize);
  const std::size_t index = index_of(wanted);
  for (std::size_t i = 0; i < gids.size(); ++i) {
    const bool exists = shown_[i].has_value();
    const bool add = wanted.empty() || index == i;
    if (exists ? *shown_[i] == gids[i] : !add) continue;
    if (exists) tree_.remove(path_ + '/' + std::to_string(i));
    show(i, gids[i]);
  }
}

void GidDirectory::show(std::size_t index, const wire::IpAddress& gid) {
  const std::string entry = path_ + '/' + std::to_string(index);
  shown_[index] = gid;
  if (gid.is_unspecified()) return tree_.add_alias(entry, unused_path_);
  tree_.add_file(entry, format_(gid));
  // The directory's action keeps this object alive.
  tree_.on_use(entry, [this](auto) { update("none"); });
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

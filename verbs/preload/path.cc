#include "verbs/preload/path.h"

namespace urxe::verbs {

std::string tidy_path(std::string_view path) {
  std::string tidy;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = path.find('/', at);
    const std::size_t end = slash == std::string_view::npos ? path.size() : slash;
    const std::string_view component = path.substr(at, end - at);
    if (!component.empty() && component != ".") (tidy += '/') += component;
    at = end + 1;
  }
  if (tidy.empty() || path.ends_with('/') || path.ends_with("/.")) tidy += '/';
  return tidy;
}

std::optional<std::size_t> find_dot_dot(std::string_view path) {
  for (std::size_t at = path.find("/.."); at != std::string_view::npos;
       at = path.find("/..", at + 1)) {
    if (at + 3 == path.size() || path[at + 3] == '/') return at;
  }
  return std::nullopt;
}

std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

}  // namespace urxe::verbs

#include "verbs/runtime/log.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

std::atomic<LogLevel> threshold{LogLevel::error};
// A file is opened for each line: a descriptor that stays would not be there in a program that
// closes all it does not know.
std::string* file = nullptr;

std::optional<LogLevel> level_of(std::string_view name) {
  if (name == "off") return LogLevel::off;
  if (name == "error") return LogLevel::error;
  if (name == "info") return LogLevel::info;
  return std::nullopt;
}

}  // namespace

tl::expected<void, std::string> set_up_log(std::string_view value) {
  const std::size_t colon = value.find(':');
  const auto level = level_of(value.substr(0, colon));
  if (!level) {
    return tl::unexpected(fmt::format(
        "URXE_LOG is \"{}\": expected off, error or info, perhaps followed by :FILE", value));
  }
  threshold = *level;
  if (colon != std::string_view::npos) file = new std::string(value.substr(colon + 1));
  return {};
}

bool logs(LogLevel level) { return level <= threshold.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view sentence) {
  if (!logs(level)) return;
  const int saved = errno;
  const std::string line = fmt::format("urxe[{}]: {}\n", getpid(), sentence);
  const int fd = file != nullptr
                     ? open(file->c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)
                     : STDERR_FILENO;
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
  if (file != nullptr && fd >= 0) close(fd);
  errno = saved;
}

}  // namespace urxe::verbs

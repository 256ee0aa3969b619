// What stands behind a descriptor that the program got by opening one of our device nodes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace urxe::verbs {

// A character device that exists only in this process. The preload layer finds it by descriptor and
// forwards system calls; all of dup'ed descriptors lead to one object, and it dies with the last.
//
// Results are as a system call's in the kernel: a negative errno on failure. Called from any
// thread, also concurrently and while the last descriptor is being closed; never throws. errno may
// be left as it comes. In a forked child it is not called any more, and not destroyed.
//
// A thread that the program cancels unwinds from any cancellation point (poll, sendmsg, write…)
// that is called in here: NotCancelled (verbs/preload/quiet.h) where that would do harm. It is not
// done for every call, because it costs as much as all the rest of a doorbell's way to here.
class EmulatedFile {
 public:
  virtual ~EmulatedFile() = default;

  // The st_rdev that fstat shows.
  [[nodiscard]] virtual dev_t device_number() const = 0;
  virtual ssize_t write(const void* data, std::size_t size) = 0;
  virtual int ioctl(unsigned long request, void* argument) = 0;
  // Moves packets of the file's device once, without blocking. What a polling program calls while
  // it finds nothing.
  virtual void drive() {}
};

}  // namespace urxe::verbs

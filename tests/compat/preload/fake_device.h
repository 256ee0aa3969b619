// What the tests' device answers: the commands of fake_machine.cc.
#pragma once

#include <cstdlib>

#include <fcntl.h>

namespace urxe::test {

// Two devices on lo. The library reads it when the program first looks for devices.
inline const bool kConfigured =
    setenv("URXE_DEVICES", "rxe0=lo/127.0.0.1,rxe1=lo/127.0.0.2", 1) == 0;

// The ioctl requests of the fake device.
inline constexpr unsigned long kAnswer = 0x1B00;  // returns 42
inline constexpr unsigned long kAlive = 0x1B01;   // returns how many files of its kind are alive
// The argument is an array of two descriptors: writes a byte to the second, reads one from the
// first, returns 43.
inline constexpr unsigned long kBlock = 0x1B02;
inline constexpr unsigned long kNonblocking = 0x1B03;  // returns whether O_NONBLOCK is set

// Flags with which opening the fake device throws an exception, or fails with EBUSY.
inline constexpr int kThrow = O_APPEND;
inline constexpr int kRefuse = O_SYNC;

// A write that begins with this byte is taken; others are EINVAL.
inline constexpr char kGood = 'w';

}  // namespace urxe::test

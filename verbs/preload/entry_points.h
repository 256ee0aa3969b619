// The functions of the C library that we stand in for, and one of libibverbs. Our own names differ
// from those that the program links with, so that neither the headers' declarations nor the
// compiler's knowledge of the C library get in the way. The list of exported symbols is made from
// this file (tools/cmake/exports.cmake).
//
// Rules for all of them: a call that does not concern us is a compare and a jump to the next
// definition, without a lock, an allocation, a change of errno, or a frame that a cancellation or
// an exception of the program's would have to run code in.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdio>

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/types.h>

#define URXE_EXPORT_AS(symbol) __asm__(symbol) __attribute__((visibility("default")))

extern "C" {

using ScanFilter = int (*)(const dirent*);
using ScanOrder = int (*)(const dirent**, const dirent**);
using ScanFilter64 = int (*)(const dirent64*);
using ScanOrder64 = int (*)(const dirent64**, const dirent64**);
using GlobError = int (*)(const char*, int);
using SignalHandler = void (*)(int);

// entry_open.cc
int on_open(const char* path, int flags, mode_t mode) URXE_EXPORT_AS("open");
int on_open64(const char* path, int flags, mode_t mode) URXE_EXPORT_AS("open64");
int on_openat(int dir, const char* path, int flags, mode_t mode) URXE_EXPORT_AS("openat");
int on_openat64(int dir, const char* path, int flags, mode_t mode) URXE_EXPORT_AS("openat64");
int on_open_2(const char* path, int flags) URXE_EXPORT_AS("__open_2");
int on_open64_2(const char* path, int flags) URXE_EXPORT_AS("__open64_2");
int on_openat_2(int dir, const char* path, int flags) URXE_EXPORT_AS("__openat_2");
int on_openat64_2(int dir, const char* path, int flags) URXE_EXPORT_AS("__openat64_2");
FILE* on_fopen(const char* path, const char* mode) URXE_EXPORT_AS("fopen");
FILE* on_fopen64(const char* path, const char* mode) URXE_EXPORT_AS("fopen64");
FILE* on_freopen(const char* path, const char* mode, FILE* file) URXE_EXPORT_AS("freopen");
FILE* on_freopen64(const char* path, const char* mode, FILE* file) URXE_EXPORT_AS("freopen64");
DIR* on_opendir(const char* path) URXE_EXPORT_AS("opendir");
int on_scandir(const char* path, dirent*** list, ScanFilter filter, ScanOrder order)
    URXE_EXPORT_AS("scandir");
int on_scandir64(const char* path, dirent64*** list, ScanFilter64 filter, ScanOrder64 order)
    URXE_EXPORT_AS("scandir64");
int on_glob(const char* pattern, int flags, GlobError error, glob_t* found) URXE_EXPORT_AS("glob");
int on_glob64(const char* pattern, int flags, GlobError error, glob64_t* found)
    URXE_EXPORT_AS("glob64");

// entry_stat.cc
int on_stat(const char* path, struct stat* status) URXE_EXPORT_AS("stat");
int on_stat64(const char* path, struct stat64* status) URXE_EXPORT_AS("stat64");
int on_lstat(const char* path, struct stat* status) URXE_EXPORT_AS("lstat");
int on_lstat64(const char* path, struct stat64* status) URXE_EXPORT_AS("lstat64");
int on_fstat(int fd, struct stat* status) URXE_EXPORT_AS("fstat");
int on_fstat64(int fd, struct stat64* status) URXE_EXPORT_AS("fstat64");
int on_fstatat(int dir, const char* path, struct stat* status, int flags) URXE_EXPORT_AS("fstatat");
int on_fstatat64(int dir, const char* path, struct stat64* status, int flags)
    URXE_EXPORT_AS("fstatat64");
int on_xstat(int version, const char* path, struct stat* status) URXE_EXPORT_AS("__xstat");
int on_xstat64(int version, const char* path, struct stat64* status) URXE_EXPORT_AS("__xstat64");
int on_lxstat(int version, const char* path, struct stat* status) URXE_EXPORT_AS("__lxstat");
int on_lxstat64(int version, const char* path, struct stat64* status) URXE_EXPORT_AS("__lxstat64");
int on_fxstat(int version, int fd, struct stat* status) URXE_EXPORT_AS("__fxstat");
int on_fxstat64(int version, int fd, struct stat64* status) URXE_EXPORT_AS("__fxstat64");
int on_fxstatat(int version, int dir, const char* path, struct stat* status, int flags)
    URXE_EXPORT_AS("__fxstatat");
int on_fxstatat64(int version, int dir, const char* path, struct stat64* status, int flags)
    URXE_EXPORT_AS("__fxstatat64");
int on_statx(int dir, const char* path, int flags, unsigned mask, struct statx* status)
    URXE_EXPORT_AS("statx");

// entry_name.cc
int on_access(const char* path, int mode) URXE_EXPORT_AS("access");
int on_eaccess(const char* path, int mode) URXE_EXPORT_AS("eaccess");
int on_euidaccess(const char* path, int mode) URXE_EXPORT_AS("euidaccess");
int on_faccessat(int dir, const char* path, int mode, int flags) URXE_EXPORT_AS("faccessat");
ssize_t on_getxattr(const char* path, const char* name, void* value, std::size_t size)
    URXE_EXPORT_AS("getxattr");
ssize_t on_lgetxattr(const char* path, const char* name, void* value, std::size_t size)
    URXE_EXPORT_AS("lgetxattr");
ssize_t on_listxattr(const char* path, char* list, std::size_t size) URXE_EXPORT_AS("listxattr");
ssize_t on_llistxattr(const char* path, char* list, std::size_t size) URXE_EXPORT_AS("llistxattr");
ssize_t on_readlink(const char* path, char* target, std::size_t size) URXE_EXPORT_AS("readlink");
ssize_t on_readlinkat(int dir, const char* path, char* target, std::size_t size)
    URXE_EXPORT_AS("readlinkat");
ssize_t on_readlink_chk(const char* path, char* target, std::size_t size, std::size_t room)
    URXE_EXPORT_AS("__readlink_chk");
ssize_t on_readlinkat_chk(int dir, const char* path, char* target, std::size_t size,
                          std::size_t room) URXE_EXPORT_AS("__readlinkat_chk");
char* on_realpath(const char* path, char* resolved) URXE_EXPORT_AS("realpath");
char* on_realpath_chk(const char* path, char* resolved, std::size_t room)
    URXE_EXPORT_AS("__realpath_chk");
char* on_canonicalize_file_name(const char* path) URXE_EXPORT_AS("canonicalize_file_name");
int on_chdir(const char* path) URXE_EXPORT_AS("chdir");
char* on_getcwd(char* buffer, std::size_t size) URXE_EXPORT_AS("getcwd");
char* on_getcwd_chk(char* buffer, std::size_t size, std::size_t room)
    URXE_EXPORT_AS("__getcwd_chk");
char* on_get_current_dir_name() URXE_EXPORT_AS("get_current_dir_name");

// entry_descriptor.cc
ssize_t on_write(int fd, const void* data, std::size_t size) URXE_EXPORT_AS("write");
int on_ioctl(int fd, unsigned long request, void* argument) URXE_EXPORT_AS("ioctl");
int on_close(int fd) URXE_EXPORT_AS("close");
int on_close_range(unsigned first, unsigned last, int flags) URXE_EXPORT_AS("close_range");
void on_closefrom(int first) URXE_EXPORT_AS("closefrom");
int on_dup(int fd) URXE_EXPORT_AS("dup");
int on_dup2(int from, int to) URXE_EXPORT_AS("dup2");
int on_dup3(int from, int to, int flags) URXE_EXPORT_AS("dup3");
int on_fcntl(int fd, int command, void* argument) URXE_EXPORT_AS("fcntl");
int on_fcntl64(int fd, int command, void* argument) URXE_EXPORT_AS("fcntl64");
int on_socket(int domain, int type, int protocol) URXE_EXPORT_AS("socket");

// entry_signal.cc
int on_sigaction(int signal, const struct sigaction* wanted, struct sigaction* previous)
    URXE_EXPORT_AS("sigaction");
SignalHandler on_signal(int signal, SignalHandler handler) URXE_EXPORT_AS("signal");
SignalHandler on_sysv_signal(int signal, SignalHandler handler) URXE_EXPORT_AS("__sysv_signal");

// entry_verbs.cc
struct ibv_context* on_ibv_open_device(struct ibv_device* device) URXE_EXPORT_AS("ibv_open_device");

}  // extern "C"

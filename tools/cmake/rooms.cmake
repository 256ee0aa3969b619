# One static library per room, which names what it uses (docs/architecture.md has the table of
# rooms). tests/tidy holds them to it, by their includes and by the symbols that they need.

add_library(urxe_flags INTERFACE)
target_compile_options(urxe_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Wcast-align -Wformat=2 -Wimplicit-fallthrough -Wmissing-declarations -Werror
  -fno-strict-aliasing
  -Wno-missing-field-initializers  # what a designated initialiser leaves out has its default
  # What gcc 12 says of std::string and of fmt once they are inlined, and what is not so.
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-maybe-uninitialized>")
target_include_directories(urxe_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(URXE_SANITIZE)
  target_compile_options(urxe_flags INTERFACE
    -fsanitize=${URXE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # said of a sanitizer's own code
  if(URXE_SANITIZE STREQUAL thread)
    # A fence orders what programs poll on; that ThreadSanitizer does not see it is no defect here.
    target_compile_options(urxe_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
  target_link_options(urxe_flags INTERFACE -fsanitize=${URXE_SANITIZE})
endif()

# A release of the library is optimised as a whole: rooms are many small functions in libraries of
# their own, and calls between them are a fifth of what a small packet costs. Not what else links
# the rooms, which would take as long to link again and again.
option(URXE_LTO "Optimise the library across rooms in a release build" ON)
if(URXE_LTO AND CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
   AND NOT URXE_SANITIZE)
  set(URXE_LTO_OPTIONS -flto=auto -ffat-lto-objects)  # for rooms and what links them for users
  # The second: what gcc 12 says of fmt once it is inlined, and what is not so.
  target_link_options(urxe_flags INTERFACE
    $<IF:$<BOOL:$<TARGET_PROPERTY:URXE_LTO>>,-flto=auto;-Wno-stringop-overflow,-fno-lto>)
endif()

# Tuned for every x86-64, a compiler clears the 136 bytes of a parsed packet with "rep stos", which
# takes as long as the parsing. This changes what is preferred, not which instructions are used.
set(URXE_TUNING "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(URXE_TUNING -mtune=skylake)
endif()

# What all test programs are compiled with, most of which is checks that are gone through once:
# optimised, they take twice as long to compile, and with a sanitizer three times.
set(URXE_TEST_OPTIONS -O0)

# urxe_room(NAME SOURCES file... [USES room-or-library...])
function(urxe_room name)
  cmake_parse_arguments(room "" "" "SOURCES;USES" ${ARGN})
  add_library(urxe_${name} STATIC ${room_SOURCES})
  target_link_libraries(urxe_${name} PUBLIC urxe_flags ${room_USES})
  target_compile_options(urxe_${name} PRIVATE ${URXE_TUNING} ${URXE_LTO_OPTIONS})
endfunction()

# fmt's headers come from Debian; see tools/cmake/fmt.cc. Include <fmt/core.h> where that is enough.
add_library(urxe_fmt STATIC ${PROJECT_SOURCE_DIR}/tools/cmake/fmt.cc)

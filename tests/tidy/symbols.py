"""What a sans-IO room asks of the world, by its symbols.

  symbols.py CXX ARCHIVE... [-lLIBRARY...]

Links all of the archives' objects into a shared object with these libraries and no undefined symbol
left, so a call into another room fails; then every symbol that comes from outside must be on the
list of harmless ones.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# The C names that are allowed. `stderr` and `fprintf` are an assertion's last words; `stdout` comes
# with fmt, whose print nobody calls (tidy.py sees to that).
HARMLESS_C = re.compile(
    r"(mem(cpy|move|set|cmp|chr)|bcmp|str(len|n?cmp|chr|error)|v?snprintf|f(printf|puts|write|putc)"
    r"|std(err|out)|abort|inet_(pton|ntop)|crc32_gzip_refl|_Unwind_\w+|__cxa_\w+"
    r"|__gxx_personality_v0|__dynamic_cast|__stack_chk_fail|__\w+_chk|__errno_location"
    r"|__tls_get_addr|__gmon_start__|_ITM_\w+|__\w+[dt]i[34])$")
# Of libstdc++ all is allowed but this.
STANDARD = re.compile(r"std::|operator (new|delete)|(vtable|typeinfo) for __cxxabiv1")
BANNED = re.compile(r"clock::now|random_device|std::j?thread|mutex|condition_variable|this_thread"
                    r"|std::(cout|cerr|clog|cin)|basic_(ios|[io]?stream|filebuf|[io]?fstream)"
                    r"|ios_base|__future|async")


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


def link(cxx, archives, libraries, output):
    """Links; returns what the linker complains about."""
    command = [cxx, "-shared", "-o", str(output), "-Wl,--whole-archive", *archives,
               "-Wl,--no-whole-archive", "-Wl,-z,defs", *libraries]
    code, _, errors = run(command)
    undefined = sorted(set(re.findall(r"undefined reference to `([^']+)'", errors)))
    if code != 0 and not undefined:
        return [errors]
    return [f"undefined: {symbol}" for symbol in undefined]


def is_harmless(symbol):
    symbol = symbol.split("@")[0]
    if HARMLESS_C.match(symbol):
        return True
    return bool(STANDARD.search(symbol)) and not BANNED.search(symbol)


def harmful_symbols(shared_object):
    code, output, errors = run(["nm", "-D", "-C", "--undefined-only", str(shared_object)])
    if code != 0:
        return [errors]
    symbols = [line.split(None, 1)[1] for line in output.splitlines()]
    return [f"harmful: {symbol}" for symbol in symbols if not is_harmless(symbol)]


def check(cxx, archives, libraries):
    """Sentences about what is wrong; none if all is well."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "room.so"
        return link(cxx, archives, libraries, output) or harmful_symbols(output)


def main():
    cxx, *rest = sys.argv[1:]
    archives = [argument for argument in rest if not argument.startswith("-l")]
    problems = check(cxx, archives, [argument for argument in rest if argument.startswith("-l")])
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

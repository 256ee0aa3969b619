# Writes the linker's version script that exports what a header marks with URXE_EXPORT_AS("name"),
# and nothing else: cmake -DHEADER=… -DOUTPUT=… -P exports.cmake
file(READ ${HEADER} text)
string(REGEX MATCHALL "URXE_EXPORT_AS\\(\"[a-z0-9_]+\"\\)" marks "${text}")
set(script "{\n  global:\n")
foreach(mark ${marks})
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" symbol ${mark})
  string(APPEND script "    ${symbol};\n")
endforeach()
string(APPEND script "  local: *;\n};\n")
file(WRITE ${OUTPUT} "${script}")

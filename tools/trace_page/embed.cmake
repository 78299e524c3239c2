# cmake -DDIR=... -DOUT=... -P embed.cmake: the page of `iwarp trace --html` as a string of C++. @DATA@ stays, for the program.
file(READ ${DIR}/page.html page)
foreach(part IN ITEMS CSS JS)
  string(TOLOWER ${part} name)
  file(READ ${DIR}/page.${name} text)
  string(REPLACE "@${part}@" "${text}" page "${page}")
endforeach()
file(WRITE ${OUT} "// Made by tools/trace_page/embed.cmake.\n#include \"tools/trace_html.h\"\n
namespace iwarp::tools {\nconst char* const kTracePage = R\"~page(${page})~page\";\n}  // namespace iwarp::tools\n")

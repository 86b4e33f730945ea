/* Names of functions for people, from the symbols that C++ compilers make (Itanium ABI):
 * namespaces, classes and the function, no parameters, template arguments as "<...>", at most about
 * a hundred characters.
 *
 *     _ZN2at6native10empty_cudaEN3c108ArrayRefIlEE…  →  at::native::empty_cuda
 *
 * No library is needed and nothing is allocated, so that it also runs inside the traced program.
 * Thread-safe. */
#ifndef MT_BASE_CXX_NAME_H
#define MT_BASE_CXX_NAME_H

#include <stddef.h>

#define CXX_NAME_BYTES 128 /* room for any name, with its zero */

/* Writes the name, zero-terminated; what is too long is cut in its middle ("at::...::operator()").
 * A symbol that is not C++'s is copied without a compiler's suffix (".part.0"), and so is one that
 * cannot be read. Any bytes may come: what is printed for people must still be escaped. */
void cxx_name(char name[CXX_NAME_BYTES], const char *symbol);

#endif

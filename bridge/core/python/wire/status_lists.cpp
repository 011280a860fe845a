// SPDX-License-Identifier: Apache-2.0
// Python binding of read_status_lists.
//
// A server with ten thousand jobs states half a million attributes. They are read here, because a
// foreign-function interface makes several objects for each.
#include "python/module.hpp"

#include <cstdint>
#include <cstring>

#include "common/columns.hpp"

namespace bridge {
namespace {

// An attribute, of one resource perhaps, and the next one.
struct Attribute {
    const Attribute *next;
    const char *name;
    const char *resource; // null or empty: none
    const char *value;
    int comparison;
};

// An object, its attributes, and the next object.
struct Status {
    const Status *next;
    const char *name;
    const Attribute *attributes;
    const char *text;
};

nb::object stolen(PyObject *made) {
    if (made == nullptr) {
        throw nb::python_error();
    }
    return nb::steal(made);
}

nb::object text_of(const char *bytes) {
    const auto length = bytes == nullptr ? 0 : static_cast<Py_ssize_t>(std::strlen(bytes));
    return stolen(PyUnicode_DecodeUTF8(bytes == nullptr ? "" : bytes, length, "replace"));
}

// Names recur in every object: all refer to the same text.
nb::object name_of(const char *bytes) {
    PyObject *made = text_of(bytes).release().ptr();
    PyUnicode_InternInPlace(&made);
    return nb::steal(made);
}

void set(nb::handle dict, nb::handle key, nb::handle value) {
    if (PyDict_SetItem(dict.ptr(), key.ptr(), value.ptr()) != 0) {
        throw nb::python_error();
    }
}

void add(nb::handle found, const Attribute &each) {
    const nb::object name = name_of(each.name);
    nb::object value = text_of(each.value);
    PyObject *known = PyDict_GetItemWithError(found.ptr(), name.ptr());
    if (known == nullptr && PyErr_Occurred() != nullptr) {
        throw nb::python_error();
    }
    if (each.resource != nullptr && *each.resource != '\0') {
        if (known != nullptr && PyDict_Check(known)) {
            set(known, name_of(each.resource), value);
            return;
        }
        const nb::object values = stolen(PyDict_New());
        set(values, name_of(each.resource), value);
        set(found, name, values);
        return;
    }
    if (known != nullptr && PyUnicode_Check(known)) {
        value = stolen(PyUnicode_FromFormat("%U,%U", known, value.ptr()));
    }
    set(found, name, value);
}

nb::object read_status_lists(uintptr_t address) {
    const nb::object objects = stolen(PyDict_New());
    for (auto *at = reinterpret_cast<const Status *>(address); at != nullptr; at = at->next) {
        const nb::object attributes = stolen(PyDict_New());
        for (auto *each = at->attributes; each != nullptr; each = each->next) {
            add(attributes, *each);
        }
        set(objects, text_of(at->name), attributes);
    }
    return objects;
}

} // namespace

void define_status_lists(nb::module_ &m) {
    using namespace nb::literals;
    m.def("read_status_lists", &read_status_lists, "address"_a,
          nb::sig("def read_status_lists(address: int) -> "
                  "dict[str, dict[str, str | dict[str, str]]]"),
          R"(Read a C library's linked list of objects with attributes. O(attributes).

An object is ``{next, name, attributes, text}``, an attribute ``{next, name, resource, value,
int}``: pointers, and texts that end with a zero byte. Bytes that are no UTF-8 are replaced.

Args:
    address: of the first object; 0: there is none. Memory at any other address ends the
        process, so it must come from the library at once.

Returns:
    By object and attribute: its values by resource, or its only value. Values without a
    resource that are stated repeatedly are joined by commas.)");
}

} // namespace bridge

// SPDX-License-Identifier: Apache-2.0
// A large array of zeros that costs nothing until it is written to: plans can hold 10**8 nodes.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace bridge {

template <typename T> class Buffer {
  public:
    explicit Buffer(size_t n = 0)
        : values_(static_cast<T *>(std::calloc(n > 0 ? n : 1, sizeof(T)))), n_(n) {
        if (!values_) {
            throw std::bad_alloc();
        }
    }
    T *data() { return values_.get(); }
    const T *data() const { return values_.get(); }
    size_t size() const { return n_; }
    T &operator[](size_t i) { return values_.get()[i]; }
    // The memory, for std::free.
    T *release() { return values_.release(); }

  private:
    struct Free {
        void operator()(T *values) const { std::free(values); }
    };
    std::unique_ptr<T, Free> values_;
    size_t n_;
};

} // namespace bridge

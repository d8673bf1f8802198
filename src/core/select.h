// The best of a list, with the same choice among equal entries on every platform. It is the choice
// of libstdc++'s std::nth_element and std::sort, which the tops of PyTorch on CPUs also come from.
#pragma once

#include <cstddef>
#include <utility>

namespace nmrf {
namespace select_detail {

template <class T, class Before>
void insertion_sort(T* begin, T* end, const Before& before) {
  for (T* next = begin; next != end; ++next) {
    T value = std::move(*next);
    T* at = next;
    for (; at != begin && before(value, at[-1]); --at) *at = std::move(at[-1]);
    *at = std::move(value);
  }
}

// Puts the median of three entries first.
template <class T, class Before>
void place_pivot(T& first, T& a, T& b, T& c, const Before& before) {
  T* low = &a;
  T* high = &b;
  if (!before(a, b)) std::swap(low, high);
  T* median = before(*high, c) ? high : before(*low, c) ? &c : low;
  std::swap(first, *median);
}

// Entries before the pivot, which stands first, come to the left of the returned place.
template <class T, class Before>
T* partition(T* begin, T* end, const Before& before) {
  const T& pivot = *begin;
  T* left = begin + 1;
  T* right = end;
  for (;; ++left) {
    while (before(*left, pivot)) ++left;
    do --right;
    while (before(pivot, *right));
    if (left >= right) return left;
    std::swap(*left, *right);
  }
}

}  // namespace select_detail

// Brings the `count` entries that come before all others, 1 <= count <= size, to the front, in
// order.
template <class T, class Before>
void select_first(T* entries, std::size_t size, std::size_t count, const Before& before) {
  T* begin = entries;
  T* end = entries + size;
  T* const last = entries + count - 1;
  while (end - begin > 3) {
    select_detail::place_pivot(*begin, begin[1], begin[(end - begin) / 2], end[-1], before);
    T* const cut = select_detail::partition(begin, end, before);
    (cut <= last ? begin : end) = cut;
  }
  select_detail::insertion_sort(begin, end, before);
  select_detail::insertion_sort(entries, last, before);
}

}  // namespace nmrf

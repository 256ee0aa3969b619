// A doubly linked list whose links are part of the elements, so that joining and leaving cost no
// allocation and no search. An element is in at most one list of each tag.
#pragma once

#include "emulator/assert.h"

namespace urxe::emulator {

template <typename Tag>
class ListLink {
 public:
  ListLink() = default;
  ListLink(const ListLink&) = delete;
  ListLink& operator=(const ListLink&) = delete;
  ~ListLink() { unlink(); }

  [[nodiscard]] bool linked() const { return next_ != nullptr; }
  void unlink() {
    if (next_ == nullptr) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = nullptr;
  }

 private:
  template <typename T, typename ListTag>
  friend class IntrusiveList;
  ListLink* next_ = nullptr;
  ListLink* previous_ = nullptr;
};

// T derives from ListLink<Tag>.
template <typename T, typename Tag>
class IntrusiveList {
 public:
  IntrusiveList() { root_.next_ = root_.previous_ = &root_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    while (!empty()) root_.next_->unlink();
    root_.next_ = root_.previous_ = nullptr;
  }

  [[nodiscard]] bool empty() const { return root_.next_ == &root_; }
  [[nodiscard]] T* front() const { return empty() ? nullptr : static_cast<T*>(root_.next_); }
  // `visit` must not take elements out.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (auto* link = root_.next_; link != &root_; link = link->next_) {
      visit(*static_cast<T*>(link));
    }
  }
  // Both do nothing if the element is in the list already.
  void push_back(T& element) { insert(element, root_.previous_, &root_); }
  void push_front(T& element) { insert(element, &root_, root_.next_); }

 private:
  static void insert(T& element, ListLink<Tag>* previous, ListLink<Tag>* next) {
    ListLink<Tag>& link = element;
    if (link.linked()) return;
    link.previous_ = previous;
    link.next_ = next;
    previous->next_ = &link;
    next->previous_ = &link;
  }

  ListLink<Tag> root_;
};

}  // namespace urxe::emulator

#include "emulator/intrusive_list.h"

#include <memory>
#include <vector>

#include <catch2/catch.hpp>

namespace urxe::emulator {
namespace {

struct Item : ListLink<struct FirstTag>, ListLink<struct SecondTag> {
  explicit Item(int item_number) : number(item_number) {}
  int number;
};
using First = IntrusiveList<Item, FirstTag>;
using Second = IntrusiveList<Item, SecondTag>;

std::vector<int> drain(First& list) {
  std::vector<int> numbers;
  while (Item* item = list.front()) {
    numbers.push_back(item->number);
    item->ListLink<FirstTag>::unlink();
  }
  return numbers;
}

TEST_CASE("elements come out in the order in which they stand") {
  Item a(1);
  Item b(2);
  Item c(3);
  First list;
  list.push_back(a);
  list.push_back(b);
  list.push_front(c);
  CHECK_FALSE(list.empty());
  CHECK(drain(list) == std::vector{3, 1, 2});
  CHECK(list.empty());
}

TEST_CASE("pushing an element that is in the list changes nothing") {
  Item a(1);
  Item b(2);
  First list;
  list.push_back(a);
  list.push_back(b);
  list.push_back(a);
  list.push_front(b);
  CHECK(drain(list) == std::vector{1, 2});
}

TEST_CASE("an element may leave from anywhere, twice, and come back") {
  Item a(1);
  Item b(2);
  Item c(3);
  First list;
  for (Item* item : {&a, &b, &c}) list.push_back(*item);
  b.ListLink<FirstTag>::unlink();
  b.ListLink<FirstTag>::unlink();
  CHECK_FALSE(b.ListLink<FirstTag>::linked());
  list.push_back(b);
  CHECK(drain(list) == std::vector{1, 3, 2});
}

TEST_CASE("an element that dies leaves the list, and a list that dies leaves its elements") {
  auto list = std::make_unique<First>();
  Item a(1);
  {
    Item b(2);
    list->push_back(b);
    list->push_back(a);
  }
  CHECK(list->front() == &a);
  list.reset();
  CHECK_FALSE(a.ListLink<FirstTag>::linked());
  First another;
  another.push_back(a);
  CHECK(another.front() == &a);
}

TEST_CASE("lists of different tags do not know of each other") {
  Item a(1);
  Item b(2);
  First first;
  Second second;
  first.push_back(a);
  second.push_back(b);
  second.push_back(a);
  a.ListLink<FirstTag>::unlink();
  CHECK(first.empty());
  CHECK(second.front() == &b);
  CHECK(a.ListLink<SecondTag>::linked());
}

}  // namespace
}  // namespace urxe::emulator

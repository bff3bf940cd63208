// SPDX-License-Identifier: Apache-2.0
// The order of locks is kept, and breaking it ends the program at the lock that broke it.
#include <thread>

#include <bursar/core/lock_rank.hpp>

#include "support/catch.hpp"
#include "support/dies.hpp"

using namespace bursar;
using bursar::test::dies;

TEST_CASE("locks may be taken in rising order", "[core][lock_rank]") {
  RankedMutex<LockRank::vmm> vmm;
  RankedMutex<LockRank::heap> heap;
  const VmmLock outer(vmm);
  const HeapLock inner(heap);
  CHECK(outer.held());
  CHECK(inner.held());
}

TEST_CASE("a lock may be dropped before one taken after it", "[core][lock_rank]") {
  RankedMutex<LockRank::vmm> vmm;
  RankedMutex<LockRank::heap> heap;
  VmmLock outer(vmm);
  const HeapLock inner(heap);
  outer.unlock();
  CHECK(inner.held());
  CHECK_FALSE(outer.held());
}

#if BURSAR_CHECK_LEVEL >= 1

TEST_CASE("taking a lower lock under a higher one is a death", "[core][lock_rank]") {
  CHECK(dies([] {
    RankedMutex<LockRank::vmm> vmm;
    RankedMutex<LockRank::heap> heap;
    const HeapLock outer(heap);
    const VmmLock inner(vmm);
  }));
}

TEST_CASE("two locks of one rank are a death", "[core][lock_rank]") {
  CHECK(dies([] {
    RankedMutex<LockRank::heap> one;
    RankedMutex<LockRank::heap> two;
    const HeapLock outer(one);
    const HeapLock inner(two);
  }));
}

TEST_CASE("releasing what is not held is a death", "[core][lock_rank]") {
  CHECK(dies([] { lock_rank_released(LockRank::log); }));
}

TEST_CASE("no_lock_held_from looks at its rank and above", "[core][lock_rank]") {
  RankedMutex<LockRank::heap> heap;
  CHECK(no_lock_held_from(LockRank::registry));
  {
    const HeapLock lock(heap);
    CHECK_FALSE(no_lock_held_from(LockRank::vmm));
    CHECK_FALSE(no_lock_held_from(LockRank::heap));
    CHECK(no_lock_held_from(LockRank::event_pool));
  }
  CHECK(no_lock_held_from(LockRank::registry));
}

TEST_CASE("each thread has its own record", "[core][lock_rank]") {
  RankedMutex<LockRank::heap> heap;
  const HeapLock lock(heap);
  bool other_holds_none = false;
  std::thread([&] { other_holds_none = no_lock_held_from(LockRank::registry); }).join();
  CHECK(other_holds_none);
}

#endif

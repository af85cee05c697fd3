"""Locks in a transaction of the caller's: held with it, rolled back with it, and in a ``TestCase``."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import TestCase

from alkstore_django import locks
from alkstore_django.locks import LockHeld, lock
from alkstore_django.models import Lock
from alkstore_django.runtime import lock_keeper
from tests import factories
from tests.processes import wait_until


@pytest.mark.django_db(transaction=True)
class TestInTransactions:
    def test_a_rollback_gives_it_back(self) -> None:
        with transaction.atomic():
            held = lock("l").acquire()
            assert locks.holder("l") is not None
            transaction.set_rollback(True)
        assert locks.holder("l") is None and not held.renew() and held.lost

    def test_a_commit_keeps_it(self) -> None:
        with transaction.atomic():
            held = lock("l").acquire()
        found = locks.holder("l")
        assert found is not None and found.owner == held.owner
        with transaction.atomic():
            assert held.renew(100) and held.release()
        assert locks.holder("l") is None

    def test_a_rolled_back_acquisition_is_lost_before_anybody_asks(self) -> None:
        with transaction.atomic():
            with pytest.raises(LockHeld), transaction.atomic():
                inner = lock("inner", ttl=60).acquire()
                assert not inner.lost
                raise LockHeld("inner")
            outer = lock("outer", ttl=60).acquire()
            assert inner.lost and not outer.lost and inner.seconds_left == 0
            transaction.set_rollback(True)
        assert outer.lost and "lost" in repr(outer)
        assert not outer.release() and outer.lost

    def test_a_rolled_back_renewal_leaves_what_was_before(self) -> None:
        held = lock("l", ttl=30).acquire()
        before = held.expires_at
        with transaction.atomic():
            assert held.renew(1_000) and held.seconds_left > 900
            with transaction.atomic():
                assert held.renew(5_000) and held.seconds_left > 4_000
                transaction.set_rollback(True)
            assert 900 < held.seconds_left < 1_001
            transaction.set_rollback(True)
        assert held.expires_at == before and 0 < held.seconds_left <= 30 and not held.lost
        with transaction.atomic():
            assert held.renew(1_000)
        assert held.seconds_left > 900
        assert held.renew(30) and held.seconds_left <= 30
        assert held.release()

    def test_a_refusal_leaves_the_transaction_as_it_was(self) -> None:
        with lock("l") as held:
            with transaction.atomic():
                Lock.objects.create(name="mine", owner="me", expires_at=0)
                for _ in range(2):
                    with pytest.raises(LockHeld, match=f"held by '{held.owner}'"):
                        lock("l").acquire()
            assert Lock.objects.filter(pk="mine").exists() and held.renew()

    @pytest.mark.only("postgresql", "mysql")
    def test_who_is_refused_is_not_in_the_way_of_the_holder(self) -> None:
        """Not even until the end of the transaction: a renewal would wait for it."""
        held = lock("l").acquire()
        limit = {"postgresql": "SET lock_timeout = '2s'", "mysql": "SET innodb_lock_wait_timeout = 2"}
        with transaction.atomic():
            with pytest.raises(LockHeld):
                lock("l").acquire()
            with factories.another_session() as other:
                other.execute(limit[connection.vendor])
                other.execute("UPDATE _honker_locks SET expires_at = expires_at + 1 WHERE name = 'l'")
        assert held.release()

    def test_an_error_of_the_block_is_not_hidden(self) -> None:
        class Wrong(Exception):
            pass

        with pytest.raises(Wrong), transaction.atomic(), lock("l"):
            raise Wrong
        assert locks.holder("l") is None

    def test_in_a_transaction_nobody_waits(self) -> None:
        refused = pytest.raises(RuntimeError, match="Waiting in a transaction of database 'default'")
        with refused, transaction.atomic():
            lock("l", wait=5).acquire()
        with transaction.atomic():
            lock("l", wait=0).acquire().release()

    def test_it_is_renewed_from_the_commit_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lock_keeper.Keeper, "_pause", lambda keeper: 0.05)
        with transaction.atomic():
            held = lock("l", renew=True).acquire()
            before = held.expires_at
        wait_until(lambda: held.expires_at > before)
        assert held.release()

    def test_what_was_rolled_back_is_not_renewed(self) -> None:
        with transaction.atomic():
            held = lock("l", renew=True).acquire()
            transaction.set_rollback(True)
        assert not held.release() and held.lost

    @pytest.mark.parametrize("renew", [False, True])
    def test_a_rolled_back_release_gives_nothing_back(
        self, monkeypatch: pytest.MonkeyPatch, renew: bool
    ) -> None:
        monkeypatch.setattr(lock_keeper.Keeper, "_pause", lambda keeper: 0.02)
        held = lock("l", ttl=600, renew=renew).acquire()
        with transaction.atomic():
            with transaction.atomic():
                assert held.release() and held.is_released and not held.release() and not held.renew()
                transaction.set_rollback(True)
            assert not held.is_released and held.release()
            transaction.set_rollback(True)
        assert not (held.is_released or held.lost)
        if renew:
            before = held.expires_at
            wait_until(lambda: held.expires_at > before)
        assert held.renew(600)
        with transaction.atomic():
            assert held.release() and not held.lost
        assert held.is_released and not held.lost and locks.holder("l") is None
        assert not [each for each in threading.enumerate() if each.name == "alkstore-lock-l"]

    def test_callbacks_of_the_same_commit_see_it_as_it_is(self) -> None:
        released = lock("released").acquire()
        seen = []
        with transaction.atomic():
            transaction.on_commit(lambda: seen.append((held.lost, released.is_released)))
            held = lock("l").acquire()
            released.release()
        assert seen == [(False, True)] and held.release()


class InTestCase(TestCase):
    """What a project's own tests see: one connection, a transaction around it all."""

    def test_all_of_it(self) -> None:
        with lock("l", renew=True) as held:
            with self.assertRaises(LockHeld):
                lock("l").acquire()
            with self.assertRaises(LockHeld):
                lock("l", wait=0.05).acquire()
            self.assertTrue(held.renew())
            found = locks.holder("l")
            assert found is not None
            self.assertEqual(found.owner, held.owner)
        self.assertFalse(held.lost)
        again = lock("l", ttl=timedelta(seconds=90)).acquire()
        self.assertGreater(again.token, held.token)
        self.assertTrue(locks.force_release("l"))
        self.assertFalse(again.renew())

    def test_a_lock_that_ends_is_waited_for(self) -> None:
        Lock.objects.create(name="l", owner="another", expires_at=factories.at(1))
        self.assertTrue(lock("l", wait=20).acquire().release())

    def test_callbacks_of_a_commit_start_no_thread(self) -> None:
        with self.captureOnCommitCallbacks(execute=True):
            held = lock("l", ttl=2, renew=True).acquire()
        self.assertTrue(held.renew(60))
        self.assertTrue(held.release())

    def test_a_transaction_of_the_code_under_test(self) -> None:
        with self.assertRaises(RuntimeError), transaction.atomic():
            lock("l", wait=5).acquire()
        with transaction.atomic(), lock("l") as held:
            pass
        self.assertFalse(held.lost)

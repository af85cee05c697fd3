"""Plain payloads that honker enqueues, and a handler of ours gets."""

from __future__ import annotations

from tests.interop.honker import HonkerProcess
from tests.interop.shared import SharedFile


def test_a_job_of_honkers_is_handled(shared: SharedFile, honker_process: HonkerProcess) -> None:
    with honker_process.queue(shared.path, "handled") as theirs:
        job_id = theirs.enqueue({"to": "é"})
        shared.manage("alkworker", "--batch")
        assert theirs.get_job(job_id) is None
        assert theirs.get_result(job_id) == [True, {"by": "us", "to": "é"}]
        assert not shared.rows("SELECT * FROM _honker_dead")


def test_a_handler_that_fails_buries_it_where_honker_looks(
    shared: SharedFile, honker_process: HonkerProcess
) -> None:
    with honker_process.queue(shared.path, "handled", max_attempts=1) as theirs:
        job_id = theirs.enqueue({"for": "nobody"})
        shared.manage("alkworker", "--batch")
        row = shared.dead(job_id)
        assert row is not None
        assert "KeyError: 'to'" in row["last_error"]
        assert theirs.get_job(job_id) is None

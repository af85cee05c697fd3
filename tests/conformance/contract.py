"""The contract against a backend that does not keep all of it."""

from __future__ import annotations

import unittest
from collections.abc import Mapping


def assert_fails_in_just(known: Mapping[str, str], case: type[unittest.TestCase]) -> None:
    """Run the tests of a case; those that are known to fail do so, and no others. None is skipped."""
    suite = unittest.TestLoader().loadTestsFromTestCase(case)
    total = suite.countTestCases()
    result = unittest.TestResult()
    suite.run(result)
    found = {}
    for each, trace in result.failures + result.errors:
        test = getattr(each, "test_case", each)  # of a subtest
        found[test._testMethodName] = trace
    differing = found.keys() ^ known.keys()
    assert not differing, "\n".join(found.get(name, f"{name} does not fail any more") for name in differing)
    assert (result.testsRun, result.skipped) == (total, [])
    assert total > 3 * len(known)

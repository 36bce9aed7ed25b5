"""Before any test module is imported: the assertions of the public suites explain themselves too."""

import pytest

pytest.register_assert_rewrite(
    "failwise.testing.guard_conformance",
    "failwise.testing.guard_upstream",
    "failwise.testing.claim_conformance",
    "failwise.testing.figure_conformance",
    "failwise.testing.journal_conformance",
    "failwise.testing.span_conformance",
)

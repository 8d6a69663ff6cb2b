"""The pytest plugin: every assertion of `gradclinic.testing`, as one fixture.

def test_the_model_learns(training):
    training.assert_learns(make_case())
"""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def training() -> ModuleType:
    """Experiments on models and training loops, as assertions; torch is imported when one is made."""
    from gradclinic import testing

    return testing

"""pytest's way to ``@pytest.mark.gemma_jax`` and ``--gemma-jax-report``: pytest loads this module in every run.

So it stands beside the package and imports nothing of it until a test has the marker, or the option is given: importing
the package looks at JAX's release and sets up the compile cache, which is nothing for a run that does not ask for it.
"""

from __future__ import annotations

import pytest

MARKER = (
    "gemma_jax(max_compiles=None, max_transfer_bytes=None, max_cold_start_s=None): fail if the test has XLA compile "
    "more programs, has more bytes copied that nobody asked for, or waits longer for the compiler"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("gemma-jax").addoption(
        "--gemma-jax-report",
        action="append",
        default=[],
        metavar="FILE",
        help="write what JAX cost each test: JSON; for a name in .md, Markdown. May be given twice",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and watch all tests if a report is asked for."""
    config.addinivalue_line("markers", MARKER)
    if config.getoption("--gemma-jax-report"):
        _watch(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Watch the tests that have the marker, if there is any."""
    if any(item.get_closest_marker("gemma_jax") for item in items):
        _watch(config).check(items)


def _watch(config: pytest.Config):  # type: ignore[no-untyped-def]  # noqa: ANN202  its type would have to be imported
    if (watch := config.pluginmanager.get_plugin("gemma-jax-watch")) is None:
        from langchain_gemma_jax.observe.testing.watch import Watch

        watch = Watch(config)
        config.pluginmanager.register(watch, "gemma-jax-watch")
    return watch

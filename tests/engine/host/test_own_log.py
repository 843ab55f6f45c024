"""The engine's log: a user's handler that raises neither stops who logs, nor is passed over in silence."""

from __future__ import annotations

import logging
import sys

import pytest

from langchain_gemma_jax.engine.host.own_log import OwnLog, show_problem

NAME = "tests.own_log"


@pytest.fixture
def handled():
    """``handled(function)``: have each line of the log given to it."""
    logger, added = logging.getLogger(NAME), []

    class Handler(logging.Handler):
        def __init__(self, act):
            super().__init__()
            self.act = act

        def emit(self, record):
            self.act(record)

    def handled(act):
        added.append(Handler(act))
        logger.addHandler(added[-1])

    logger.setLevel(logging.INFO)
    yield handled
    for handler in added:
        logger.removeHandler(handler)


def fail(_record):
    raise OSError("by the handler")


def test_a_line_is_logged_as_it_is_and_names_who_logged(handled):
    lines = []
    handled(lines.append)
    OwnLog(NAME).warning("%d of %s", 3, "them")
    (record,) = lines
    assert (record.name, record.levelname, record.getMessage()) == (NAME, "WARNING", "3 of them")
    assert record.funcName == "test_a_line_is_logged_as_it_is_and_names_who_logged"


def test_what_a_handler_raises_is_shown_and_goes_no_further(handled, capsys):
    handled(fail)
    OwnLog(NAME).info("a line")
    shown = capsys.readouterr().err
    assert "a log handler raised on a thread of the engine, which goes on" in shown
    assert "OSError: by the handler" in shown


def test_an_interrupt_is_no_handlers_mistake(handled):
    def interrupted(_record):
        raise KeyboardInterrupt

    handled(interrupted)
    with pytest.raises(KeyboardInterrupt):
        OwnLog(NAME).info("a line")


def test_nothing_is_shown_where_logging_shows_nothing(handled, capsys, monkeypatch):
    handled(fail)
    monkeypatch.setattr(logging, "raiseExceptions", False)
    OwnLog(NAME).info("a line")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(logging, "raiseExceptions", True)
    monkeypatch.setattr(sys, "stderr", None)  # as in a process without a console
    OwnLog(NAME).info("a line")


def test_a_console_that_is_gone_stops_nobody(monkeypatch):
    class Gone:
        def write(self, _text):
            raise OSError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Gone())
    show_problem("a hook")

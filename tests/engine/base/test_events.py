import logging

from langchain_gemma_jax.engine.base.events import Events, StepRouted

ROUTED = StepRouted("light", switched=False, escalated=False)


def test_a_reader_gets_the_records_of_its_kind_until_it_has_enough():
    events, seen = Events(), []
    enough = events.subscribe(StepRouted, seen.append)
    events.publish("another kind of record")
    events.publish(ROUTED)
    enough()
    enough()
    events.publish(ROUTED)
    assert seen == [ROUTED]


def test_what_one_reader_raises_reaches_neither_the_engine_nor_the_other_readers(caplog):
    events, seen = Events(), []

    def fail(_):
        raise ValueError("a secret of the user's")

    events.subscribe(StepRouted, fail)
    events.subscribe(StepRouted, seen.append)
    with caplog.at_level(logging.WARNING):
        events.publish(ROUTED)
    assert seen == [ROUTED]
    assert "StepRouted records raised ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_a_reader_may_leave_while_it_is_told_something():
    events, seen = Events(), []

    def once(record):
        seen.append(record)
        enough()

    enough = events.subscribe(StepRouted, once)
    events.subscribe(StepRouted, seen.append)
    events.publish(ROUTED)
    events.publish(ROUTED)
    assert seen == [ROUTED] * 3

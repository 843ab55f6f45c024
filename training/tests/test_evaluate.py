import pytest

from training import evaluate
from training.parse import Answer, parse


class Knowing:
    """Does what is wanted."""

    def answer(self, questions):
        return [parse(question.step.answer) for question in questions]


class Silent:
    """Says nothing and calls nothing."""

    def answer(self, questions):
        return [Answer((), "") for _ in questions]


def test_who_does_what_is_wanted_gets_everything_right():
    for score in evaluate.evaluate(Knowing(), each=4):
        assert score.right == score.total > 0, score.exam.name
        assert not score.mistakes


def test_who_does_nothing_gets_only_what_needs_nothing():
    right = {score.exam.name for score in evaluate.evaluate(Silent(), each=4) if score.right}
    assert right <= {"no call when none fits", "no call in small talk"}


def test_a_wrong_argument_is_a_wrong_call_to_the_right_tool():
    class Careless(Knowing):
        def answer(self, questions):
            return [
                Answer(tuple((name, {"x": 1}) for name, _ in each.calls), each.text)
                for each in super().answer(questions)
            ]

    scores = {score.exam.name: score for score in evaluate.evaluate(Careless(), each=4)}
    assert scores["right tool of 8"].right == 4
    assert scores["call exact, of 8"].right == 0
    assert scores["answer from result"].right == 4
    assert scores["schema fields, as call"].right == 0


def test_questions_are_of_the_side_and_have_the_tools_that_the_exam_is_about():
    seen = []

    class Watching(Silent):
        def answer(self, questions):
            seen.extend(questions)
            return super().answer(questions)

    list(evaluate.evaluate(Watching(), each=2))
    of_eight = [each for each in seen if each.conversation.skill == "right tool"]
    assert {len(each.conversation.tools) for each in of_eight} == {8}
    assert all(each.step.graded for each in seen)


def test_the_report_is_a_table():
    scores = list(evaluate.evaluate(Silent(), each=1))
    assert evaluate.report(scores).count("\n") == len(evaluate.EXAMS) + 2


@pytest.mark.parametrize(("first", "second", "same"), [(2.0, 2, True), ([1.0], [1], True), ("2", 2, False)])
def test_numbers_are_compared_as_numbers(first, second, same):
    assert evaluate._same(first, second) is same

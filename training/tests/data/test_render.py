from training.data.conversation import Call, Calls, Conversation, Model, Say, Tool, User
from training.data.render import declaration, pieces, steps, value

TOOL = Tool(
    "look_up",
    "Looks up.",
    {
        "type": "object",
        "properties": {
            "zip": {"type": "string", "description": "Where"},
            "City": {"type": "string", "enum": ["a", "b"]},
            "box": {
                "type": "object",
                "properties": {"n": {"type": "integer", "nullable": True}},
                "required": ["n"],
            },
            "all": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["zip", "City"],
    },
)


def conversation():
    call = Call("look_up", {"zip": "x", "City": "a"}, {"n": 2})
    turns = (User(" Hi "), Model((Calls((call, call)), Say("Two."))), User("Bye"), Model((Say("Bye."),), graded=False))
    return Conversation("skill", turns, (TOOL,), "Be brief.")


def test_a_declaration():
    assert declaration(TOOL) == (
        '<|tool>declaration:look_up{description:<|"|>Looks up.<|"|>,parameters:{properties:{'
        'all:{items:{type:<|"|>NUMBER<|"|>},type:<|"|>ARRAY<|"|>},'
        'box:{properties:{n:{nullable:true,type:<|"|>INTEGER<|"|>}},required:[<|"|>n<|"|>],type:<|"|>OBJECT<|"|>},'
        'City:{enum:[<|"|>a<|"|>,<|"|>b<|"|>],type:<|"|>STRING<|"|>},'
        'zip:{description:<|"|>Where<|"|>,type:<|"|>STRING<|"|>}},'
        'required:[<|"|>zip<|"|>,<|"|>City<|"|>],type:<|"|>OBJECT<|"|>}}<tool|>'
    )


def test_a_tool_without_parameters():
    assert '{description:<|"|>d<|"|>,parameters:{type:<|"|>OBJECT<|"|>}}' in declaration(
        Tool("t", "d", {"type": "object", "properties": {}})
    )


def test_values():
    assert value({"b": [1, 2.5, 3.0], "A": {"x": None}, "c": True, "d": "ä\n"}) == (
        '{A:{x:null},b:[1,2.5,3],c:true,d:<|"|>ä\n<|"|>}'
    )


def test_a_conversation_from_begin_to_end():
    call = '<|tool_call>call:look_up{City:<|"|>a<|"|>,zip:<|"|>x<|"|>}<tool_call|>'
    response = "<|tool_response>response:look_up{n:2}<tool_response|>"
    assert "".join(piece.text for piece in pieces(conversation())) == (
        f"<bos><|turn>system\nBe brief.{declaration(TOOL)}<turn|>\n<|turn>user\nHi<turn|>\n"
        f"<|turn>model\n{call}{call}{response}{response}Two.<turn|>\n"
        "<|turn>user\nBye<turn|>\n<|turn>model\nBye.<turn|>\n"
    )


def test_the_model_writes_its_calls_with_the_opener_after_them_and_its_words_with_the_turns_end():
    own = [piece.text for piece in pieces(conversation()) if piece.by_model]
    assert own[0].endswith("<tool_call|><|tool_response>")
    assert own[1:] == ["Two.<turn|>", "Bye.<turn|>"]


def test_each_step_comes_with_all_that_is_before_it():
    whole = "".join(piece.text for piece in pieces(conversation()))
    found = list(steps(conversation()))
    assert [each.graded for each in found] == [True, True, False]
    for each in found:
        assert whole.startswith(each.prompt + each.answer)
    assert found[1].prompt.endswith("<tool_response|>")


def test_without_tools_and_system_line_there_is_no_system_turn():
    assert next(pieces(Conversation("skill", (User("Hi"),)))).text == "<bos>"

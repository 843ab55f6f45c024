"""Charts are pictures that hold what they were given, whatever it is called, and nothing that runs."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from langchain_gemma_jax.charts import bars, moments, table

SVG = "{http://www.w3.org/2000/svg}"


def test_each_bar_is_as_long_as_its_share():
    drawn = ET.fromstring(
        bars("Seconds", {"one": 1.0, "two": 2.0, "none": 0.0}, {"one": "1 s", "two": "2 s", "none": ""})
    )
    lengths = [float(rect.get("width")) for rect in drawn.iter(f"{SVG}rect")]
    assert lengths[1] == 2 * lengths[0] > 0 == lengths[2]
    assert [text.text for text in drawn.iter(f"{SVG}text")][:3] == ["Seconds", "one", "1 s"]
    assert max(float(rect.get("x")) + float(rect.get("width")) for rect in drawn.iter(f"{SVG}rect")) < 460


def test_nothing_can_be_drawn():
    for drawn in (bars("Nothing", {}), moments("Nothing", []), bars("Zero", {"a": 0.0}), moments("Zero", [(0.0, 0.0)])):
        assert ET.fromstring(drawn).tag == f"{SVG}svg"


def test_names_are_text_and_never_markup():
    hostile = '<script>alert("1")</script>\x00\x1b&'
    for drawn in (
        bars(hostile, {hostile: 1.0}),
        table([(hostile.replace("\x00", "").replace("\x1b", ""), hostile[:20])]),
    ):
        assert "<script" not in drawn
        ET.fromstring(drawn)


def test_moments_stand_where_they_happened():
    drawn = ET.fromstring(moments("Compiles", [(0.0, 1.0), (5.0, 2.0), (10.0, 4.0)]))
    lines = [
        (float(line.get("x1")), float(line.get("y1")) - float(line.get("y2"))) for line in drawn.iter(f"{SVG}line")
    ][1:]
    assert lines[1][0] - lines[0][0] == lines[2][0] - lines[1][0] > 0
    assert lines[2][1] == 2 * lines[1][1] == 4 * lines[0][1]

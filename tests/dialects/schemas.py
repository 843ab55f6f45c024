"""Random JSON schemas that some value fits."""

from __future__ import annotations

import random
from typing import Any

NAMES = ("a", "b", "city", "days", "from:to", "ö", "x y", "type", "name", '"q"', "A", "z_1", "[0]", "漢字")
PATTERNS = (
    *(r"^[a-z]{2,5}$", r"^\d{3}-\d{2}$", r"^(foo|bar)+$", r"x", r"^[^\s]+$", r"^.{0,4}$", r"^\w+\.(com|org)$"),
    r"^[A-Z][a-z]*( [A-Z][a-z]*)?$",
)
FORMATS = (
    *("date", "time", "date-time", "email", "uuid", "ipv4", "ipv6", "uri", "hostname", "duration", "json-pointer"),
)
SCALARS = ("string", "integer", "number", "boolean", "null", "enum", "const", "pattern", "format")
STRUCTURES = (
    *("object",) * 5,
    *("array",) * 3,
    *("union", "tuple", "nullable", "both", "map", "tagged", "anything"),
)


class Schemas:
    """Makes them. ``whole()`` gives one with its definitions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._known: tuple[str, ...] = ()

    def whole(self) -> Any:
        rng = self.rng
        self._known = rng.choice([(), (), ("Node",), ("Node", "Leaf")])
        known, found = self._known, self.schema(3)
        if not known or not isinstance(found, dict):
            return found
        self._known = ()
        node = {
            "type": "object",
            "properties": {
                "v": self.schema(1),
                "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": rng.choice([[], ["v"], ["next"]]),
        }
        return found | {"$defs": {"Node": node, "Leaf": self.schema(1)}}

    def parameters(self) -> dict[str, Any]:
        """Those of a tool."""
        rng, names = self.rng, self._names(4)
        if rng.random() < 0.2:
            return {}
        found: dict[str, Any] = {"type": "object", "properties": {name: self.schema(2) for name in names}}
        found["required"] = rng.sample(names, rng.randint(0, len(names)))
        if rng.random() < 0.1:
            found["additionalProperties"] = {"type": "integer"}
        return found

    def schema(self, depth: int) -> Any:
        kinds = [*SCALARS, *(STRUCTURES if depth else ()), *(["reference"] * 2 if self._known else ())]
        return getattr(self, f"_{self.rng.choice(kinds)}")(depth - 1)

    def value(self, depth: int = 2) -> Any:
        rng = self.rng
        scalars = [None, True, False, rng.randint(-99, 99), round(rng.uniform(-9, 9), 2), self._text()]
        kind = rng.randrange(8 if depth else 6)
        if kind < 6:
            return scalars[kind]
        if kind == 6:
            return [self.value(depth - 1) for _ in range(rng.randint(0, 3))]
        return {name: self.value(depth - 1) for name in self._names(3)}

    def _text(self) -> str:
        letters = 'abcXYZ09_ -é"\\{}:,😀\n<|'
        return "".join(self.rng.choice(letters) for _ in range(self.rng.randint(0, 6)))

    def _names(self, most: int) -> list[str]:
        return list(dict.fromkeys(self.rng.choice(NAMES) for _ in range(self.rng.randint(0, most))))

    def _string(self, _: int) -> Any:
        rng, low = self.rng, self.rng.randint(0, 5)
        found: dict[str, Any] = {"type": "string"}
        if rng.random() < 0.4:
            found["minLength"] = low
        if rng.random() < 0.4:
            found["maxLength"] = low + rng.randint(0, 8)
        return found

    def _number(self, _: int, kind: str = "number") -> Any:
        rng = self.rng
        low = rng.choice([rng.randint(-1000, 1000), round(rng.uniform(-50, 50), rng.randint(0, 4))])
        if rng.random() < 0.1:
            return {"type": kind, "multipleOf": rng.choice([1, 2, 5, 10, 25])}
        found: dict[str, Any] = {"type": kind}
        if rng.random() < 0.5:
            found[rng.choice(["minimum", "exclusiveMinimum"])] = low
        if rng.random() < 0.5:
            found[rng.choice(["maximum", "exclusiveMaximum"])] = low + rng.choice([2, 10.5, 1000])
        return found

    def _integer(self, depth: int) -> Any:
        return self._number(depth, "integer")

    def _boolean(self, _: int) -> Any:
        return {"type": "boolean"}

    def _null(self, _: int) -> Any:
        return {"type": "null"}

    def _enum(self, _: int) -> Any:
        return {"enum": [self.value() for _ in range(self.rng.randint(1, 4))]}

    def _const(self, _: int) -> Any:
        return {"const": self.value()}

    def _pattern(self, _: int) -> Any:
        return {"type": "string", "pattern": self.rng.choice(PATTERNS)}

    def _format(self, _: int) -> Any:
        return {"type": "string", "format": self.rng.choice(FORMATS)}

    def _object(self, depth: int) -> Any:
        rng, names = self.rng, self._names(5)
        found: dict[str, Any] = {"type": "object", "properties": {name: self.schema(depth) for name in names}}
        found["required"] = rng.sample(names, rng.randint(0, len(names)))
        if rng.random() < 0.4:
            found["additionalProperties"] = rng.choice([False, self.schema(depth)])
        if rng.random() < 0.1:
            found["minProperties"] = rng.randint(0, len(names))
        if rng.random() < 0.1:
            found["maxProperties"] = rng.randint(len(found["required"]), len(names) + 1)
        return found

    def _array(self, depth: int) -> Any:
        rng, low = self.rng, self.rng.randint(0, 2)
        found: dict[str, Any] = {"type": "array", "items": self.schema(depth)}
        if rng.random() < 0.4:
            found["minItems"] = low
        if rng.random() < 0.4:
            found["maxItems"] = low + rng.randint(0, 3)
        return found

    def _tuple(self, depth: int) -> Any:
        rng, count = self.rng, self.rng.randint(1, 3)
        found: dict[str, Any] = {"type": "array", "prefixItems": [self.schema(depth) for _ in range(count)]}
        if rng.random() < 0.5:
            found["minItems"] = rng.randint(0, count)
        if rng.random() < 0.5:
            found["items"] = rng.choice([False, self.schema(depth)])
        return found

    def _union(self, depth: int) -> Any:
        return {"anyOf": [self.schema(depth) for _ in range(self.rng.randint(1, 3))]}

    def _nullable(self, depth: int) -> Any:
        return {"anyOf": [self.schema(depth), {"type": "null"}]}

    def _tagged(self, depth: int) -> Any:
        options = [
            {"type": "object", "properties": {"kind": {"const": tag}, "v": self.schema(depth)}, "required": ["kind"]}
            for tag in ("p", "q")
        ]
        return {"oneOf": options}

    def _both(self, depth: int) -> Any:
        first = {"type": "object", "properties": {"a": self.schema(depth)}, "required": ["a"]}
        return {"allOf": [first, {"properties": {"b": self.schema(depth)}}]}

    def _map(self, depth: int) -> Any:
        rng = self.rng
        found: dict[str, Any] = {"type": "object", "additionalProperties": self.schema(depth)}
        if rng.random() < 0.3:
            found |= {"patternProperties": {"^[a-z]{1,3}$": self.schema(depth)}, "additionalProperties": False}
        elif rng.random() < 0.2:
            found["propertyNames"] = {"enum": ["a", "b", "c"]}
        if rng.random() < 0.3:
            found["minProperties"] = 1
        return found

    def _anything(self, _: int) -> Any:
        return self.rng.choice([{}, True, {"type": "object"}, {"type": "array"}])

    def _reference(self, _: int) -> Any:
        return {"$ref": f"#/$defs/{self.rng.choice(self._known)}"}

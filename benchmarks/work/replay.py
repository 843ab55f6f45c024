"""A tool-calling turn that repeats itself, as such turns do: names from a schema, values from a result.

The context holds two tools, a question, a first call, and its result. The answer is the second call,
which brings its own structure, a few words of its own, and much that it read.
"""

from __future__ import annotations

import json
import re

# About how Gemma's vocabulary splits JSON: words with the space before them, single digits, runs of punctuation.
_TOKEN = re.compile(r" ?[A-Za-z]+|\d| ?[^\sA-Za-z\d]+|\s+")

_TOOLS = [
    {
        "name": "search_orders",
        "description": "Find the orders of a customer, newest first.",
        "parameters": {
            "type": "object",
            "properties": {
                "customer_email": {"type": "string", "description": "The address that the customer wrote from."},
                "status": {"type": "string", "enum": ["open", "shipped", "delivered", "returned"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            },
            "required": ["customer_email"],
        },
    },
    {
        "name": "create_return",
        "description": "Open a return for items of one delivered order, and send the customer a label.",
        "parameters": {
            "type": "object",
            "properties": {
                "order_id": {"type": "string"},
                "customer_email": {"type": "string"},
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "sku": {"type": "string"},
                            "quantity": {"type": "integer", "minimum": 1},
                            "reason": {"type": "string"},
                        },
                        "required": ["sku", "quantity", "reason"],
                    },
                },
                "pickup_address": {"type": "string"},
                "notify": {"type": "boolean"},
            },
            "required": ["order_id", "customer_email", "items", "pickup_address"],
        },
    },
]
_QUESTION = (
    "Hello, this is Ada Brandt, ada.brandt@example.org. Of my last delivery the desk lamp flickers and one of the "
    "two shelves has a crack. I would like to send both back; please have them picked up where you brought them."
)
_FIRST_CALL = {
    "name": "search_orders",
    "arguments": {"customer_email": "ada.brandt@example.org", "status": "delivered", "limit": 1},
}
_ADDRESS = "Lindenhof 14, 3rd floor, 20355 Hamburg"
_RESULT = {
    "orders": [
        {
            "order_id": "A-2291-77804",
            "customer_email": "ada.brandt@example.org",
            "status": "delivered",
            "delivered_on": "2026-03-18",
            "address": _ADDRESS,
            "items": [
                {"sku": "LMP-4410-BRS", "title": "Desk lamp, brass", "quantity": 1, "price": "49.90"},
                {"sku": "SHF-0093-OAK", "title": "Wall shelf, oak", "quantity": 2, "price": "35.00"},
                {"sku": "BLB-0027-WRM", "title": "Bulb, warm white", "quantity": 4, "price": "3.20"},
            ],
        }
    ]
}
_SECOND_CALL = {
    "name": "create_return",
    "arguments": {
        "order_id": "A-2291-77804",
        "customer_email": "ada.brandt@example.org",
        "items": [
            {"sku": "LMP-4410-BRS", "quantity": 1, "reason": "The lamp flickers."},
            {"sku": "SHF-0093-OAK", "quantity": 1, "reason": "One shelf arrived with a crack."},
        ],
        "pickup_address": _ADDRESS,
        "notify": True,
    },
}

CONTEXT = (
    f"You help the customers of a shop. Answer with one call as JSON, or with text.\n{json.dumps(_TOOLS)}\n"
    f"user: {_QUESTION}\ncall: {json.dumps(_FIRST_CALL)}\nresult: {json.dumps(_RESULT)}\ncall:"
)
ANSWER = " " + json.dumps(_SECOND_CALL)


def pieces(text: str) -> list[str]:
    """A text, token by token."""
    return _TOKEN.findall(text)

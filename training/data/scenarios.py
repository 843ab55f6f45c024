"""Tools of everyday life, written by hand, with the ways in which people ask for them.

A field is ``name:kind``, ``name:a/b/c`` for an enum, with ``?`` in front if it is optional. Names and descriptions
have alternatives, as templates have.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from training.data.scenario import Scenario, read, told
from training.data.side import Split, templates

_WRITTEN_OUT = (
    Scenario(
        "[set|start|create]_timer",
        "[Set|Start] a timer[.|, in minutes.]",
        ("minutes:count",),
        (
            "[Set|Start] a timer for {minutes} minutes.",
            "Wake me in {minutes} minutes.",
            "Timer, {minutes} min[, please|].",
            "I need to boil eggs, {minutes} minutes.",
            "Count down {minutes} minutes for me.",
        ),
    ),
    Scenario(
        "[set|create|add]_alarm",
        "Set an alarm for a time of day.",
        ("time:time", "?label:title"),
        (
            "Wake me up at {time}.",
            "Set an alarm for {time}.",
            "I have to get up at {time}.",
            "Alarm at {time}[ please|], call it {label}.",
        ),
    ),
    Scenario(
        "send_[email|mail]",
        "Send an e-mail[.| to somebody.]",
        ("to:email", "subject:title", "body:message"),
        (
            'Mail {to} with the subject "{subject}" and write "{body}".',
            'Send an e-mail to {to}. Subject: {subject}. Text: "{body}"',
            'Write to {to}: "{body}" The subject is {subject}.',
        ),
    ),
    Scenario(
        "send_[sms|text|message]",
        "Send a text message to a phone[.| number.]",
        ("number:phone", "text:message"),
        ('Text {number}: "{text}"', 'Send "{text}" to {number}.', 'Tell {number} that "{text}".'),
    ),
    Scenario(
        "[add|plus|sum]_numbers",
        "Adds two numbers.",
        ("a:integer", "b:integer"),
        (
            "How much is {a} + {b}?",
            "Add {a} and {b}.",
            "{a} plus {b}?",
            "What do {a} and {b} add up to?",
            "Sum of {a} and {b}",
        ),
    ),
    Scenario(
        "multiply[_numbers|]",
        "Multiply two [numbers|factors].",
        ("a:integer", "b:integer"),
        ("How much is {a} * {b}?", "Multiply {a} by {b}.", "{a} times {b}?", "What is {a} times {b}?"),
    ),
    Scenario(
        "divide[_numbers|]",
        "Divide one number by another.",
        ("dividend:count", "divisor:count"),
        ("How much is {dividend} / {divisor}?", "Divide {dividend} by {divisor}.", "{dividend} over {divisor}?"),
    ),
    Scenario(
        "subtract",
        "Subtract a number from another.",
        ("first:count", "second:count"),
        ("How much is {first} - {second}?", "{first} minus {second}?", "Take {second} away from {first}."),
    ),
    Scenario(
        "[square_root|sqrt]",
        "Square root of a number.",
        ("x:count",),
        ("What is the square root of {x}?", "sqrt of {x}", "Root of {x}, please."),
    ),
    Scenario(
        "[convert_currency|exchange_money]",
        "Convert an amount of money to another currency.",
        ("amount:decimal", "from_currency:USD/EUR/GBP/JPY/CHF/SEK", "to_currency:USD/EUR/GBP/JPY/CHF/SEK"),
        (
            "How much is {amount} {from_currency} in {to_currency}?",
            "Convert {amount} {from_currency} to {to_currency}.",
            "I have {amount} {from_currency} and need {to_currency}.",
        ),
    ),
    Scenario(
        "convert_[units|unit|measure]",
        "Convert a value from one unit to another.",
        ("value:decimal", "from_unit:unit", "to_unit:unit"),
        (
            "How many {to_unit} are {value} {from_unit}?",
            "Convert {value} {from_unit} to {to_unit}.",
            "{value} {from_unit} in {to_unit}?",
        ),
    ),
    Scenario(
        "translate[_text|]",
        "Translate a text into another language.",
        ("text:message", "target_language:language"),
        (
            'Translate "{text}" into {target_language}.',
            'How do you say "{text}" in {target_language}?',
            'What is "{text}" in {target_language}?',
        ),
    ),
    Scenario(
        "[search_web|web_search|search]",
        "Search the [web|internet].",
        ("query:topic",),
        (
            "Search for {query}.",
            "Look up {query} on the internet.",
            "Find something about {query}.",
            "Google {query}.",
            "What does the web say about {query}?",
        ),
    ),
    Scenario(
        "[get_stock_price|stock_price|stock_quote]",
        "Current price of a stock.",
        ("ticker:word",),
        (
            "What is the stock price of {ticker}?",
            "How much is {ticker} stock?",
            "Price of {ticker} shares?",
            "How is {ticker} doing on the stock market?",
        ),
    ),
    Scenario(
        "[get_time|current_time|local_time]",
        "[Get the|The] local time in a city.",
        ("city:place",),
        (
            "What time is it in {city}?",
            "Local time in {city}?",
            "How late is it in {city}?",
            "Tell me the time in {city}.",
        ),
    ),
    Scenario(
        "[get_population|population]",
        "Number of people who live in a place.",
        ("place:place",),
        ("How many people live in {place}?", "What is the population of {place}?", "How big is {place}?"),
    ),
    Scenario(
        "[find|search]_flights",
        "Find flights between two cities[.| on a date.]",
        ("origin:place", "destination:place", "?date:date"),
        (
            "Find flights from {origin} to {destination}.",
            "I want to fly from {origin} to {destination} on {date}.",
            "Flights {origin} to {destination} on {date}?",
            "How can I fly to {destination} from {origin}?",
        ),
    ),
    Scenario(
        "book_[table|restaurant]",
        "Book a table at a restaurant.",
        ("restaurant:company", "people:count", "?time:time"),
        (
            "Book a table for {people} at {restaurant}.",
            "Table at {restaurant} for {people} people at {time}.",
            "We are {people} and want to eat at {restaurant} at {time}.",
        ),
    ),
    Scenario(
        "book_hotel[_room|]",
        "Book a hotel[.| room.]",
        ("city:place", "check_in:date", "nights:count"),
        (
            "I need a hotel in {city} from {check_in} for {nights} nights.",
            "Book {nights} nights in {city}, starting {check_in}.",
            "Hotel in {city}, {nights} nights, arriving {check_in}.",
        ),
    ),
    Scenario(
        "[add|create]_[event|appointment]",
        "Add an event to the calendar.",
        ("title:title", "date:date", "?time:time"),
        (
            'Put "{title}" into my calendar for {date}.',
            'I have "{title}" on {date} at {time}, please add it.',
            "New event {title} on {date} at {time}.",
        ),
    ),
    Scenario(
        "[set|add|create]_reminder",
        "Remind the user of something.",
        ("text:message", "?date:date"),
        ('Remind me: "{text}"', 'Remind me on {date}: "{text}"', 'Don\'t let me forget: "{text}"'),
    ),
    Scenario(
        "add_to_[shopping_list|cart]",
        "Add [an item|something] to the shopping list.",
        ("item:word", "?quantity:count"),
        (
            "Put {item} on my shopping list.",
            "We need {quantity} {item}.",
            "Buy {quantity} {item}.",
            "Add {item} to the list.",
        ),
    ),
    Scenario(
        "[play_song|play_music|play]",
        "Play a song.",
        ("song:title", "?artist:person"),
        ("Play {song}.", 'Play "{song}" by {artist}.', "I want to hear {song} by {artist}.", "Put on {song}."),
    ),
    Scenario(
        "[turn_on|switch_on]_[light|lamp]",
        "Turn on the light in a room.",
        ("room:kitchen/bedroom/hall/cellar/bathroom/office",),
        (
            "Turn on the light in the {room}.",
            "It's dark in the {room}.",
            "{room} light on!",
            "Light in the {room}, please.",
        ),
    ),
    Scenario(
        "[get|find]_recipe",
        "Find a recipe with an ingredient.",
        ("ingredient:word",),
        (
            "What can I cook with {ingredient}?",
            "A recipe with {ingredient}[, please|]?",
            "I have {ingredient} and I am hungry.",
        ),
    ),
    Scenario(
        "[track_package|track_parcel|get_shipment]",
        "Where a parcel is.",
        ("tracking_id:code",),
        ("Where is my parcel {tracking_id}?", "Track {tracking_id}.", "Has {tracking_id} been delivered?"),
    ),
    Scenario(
        "[get_order|order_status]",
        "Status of an order.",
        ("order_id:code",),
        ("What happened to order {order_id}?", "Status of {order_id}?", "My order is {order_id}. Where is it?"),
    ),
    Scenario(
        "cancel_order",
        "Cancel an order.",
        ("order_id:code", "?reason:message"),
        (
            "Cancel order {order_id}.",
            'I don\'t want {order_id} any more. Reason: "{reason}"',
            "Please cancel {order_id}.",
        ),
    ),
    Scenario(
        "[find_contact|get_phone_number|lookup_person]",
        "Find the phone number of a person.",
        ("name:person",),
        (
            "What is the phone number of {name}?",
            "How can I reach {name}?",
            "{name}'s number?",
            "I want to call {name}, what's the number?",
        ),
    ),
    Scenario(
        "[get_distance|distance]",
        "Distance between two places.",
        ("start:place", "end:place"),
        (
            "How far is it from {start} to {end}?",
            "Distance between {start} and {end}?",
            "{start} to {end}, how many kilometres?",
        ),
    ),
    Scenario(
        "[read_file|open_file]",
        "Read a file.",
        ("path:url",),
        ("Read {path}.", "What is in {path}?", "Show me the contents of {path}."),
    ),
    Scenario(
        "[create_user|add_user|register]",
        "Create a user account.",
        ("username:word", "email:email", "?role:admin/editor/viewer"),
        (
            "New user {username}, {email}.",
            "Create an account for {username} with {email} as {role}.",
            "Register {username} ({email}).",
        ),
    ),
    Scenario(
        "[define_word|word_meaning|define]",
        "The meaning of a word.",
        ("word:word",),
        ("What does {word} mean?", "Define {word}.", 'Meaning of "{word}"?', "What is a {word}?"),
    ),
    Scenario(
        "[roll_dice|roll]",
        "Roll some dice.",
        ("count:count", "?sides:count"),
        ("Roll {count} dice.", "Throw {count} dice with {sides} sides."),
    ),
    Scenario(
        "transfer_money",
        "Transfer money to an account.",
        ("amount:decimal", "recipient:person"),
        ("Send {amount} to {recipient}.", "Transfer {amount} to {recipient}.", "I owe {recipient} {amount}, pay it."),
    ),
    Scenario(
        "[write_note|save_note|take_note]",
        "Save a note.",
        ("content:message",),
        ('Note: "{content}"', 'Write this down: "{content}"', 'Keep "{content}" for me.'),
    ),
    Scenario(
        "[make_drawing|draw|paint_picture]",
        "Draw a picture [in a style|of something].",
        ("style:word", "subject:word"),
        (
            "Draw a {style} {subject}.",
            "A picture of a {subject}, {style} style.",
            "Using the tool, paint a {style} {subject}.",
        ),
    ),
    Scenario(
        "[compose_song|make_song]",
        "Make a song in some style.",
        ("style:word",),
        (
            "Make a {style} song.",
            "I'd like a {style} song.",
            "Compose a song, {style} please.",
            "A {style} song, with the tool.",
        ),
    ),
)

_ERRANDS = sorted((Path(__file__).parent / "errands").glob("*.txt"))

TRAIN = (*_WRITTEN_OUT, *chain.from_iterable(read(each.read_text(encoding="utf-8")) for each in _ERRANDS))

HELD_OUT = (
    Scenario(
        "rent_kayak",
        "Rent a kayak at a harbour.",
        ("harbour:place", "paddlers:count"),
        ("We want to paddle in {harbour}, {paddlers} of us.", "Rent a kayak in {harbour} for {paddlers}."),
    ),
    Scenario(
        "renew_passport",
        "Renew the passport of its bearer.",
        ("bearer:person", "passport_no:code"),
        ("{bearer}'s passport {passport_no} must be renewed.", "Renew passport {passport_no} for {bearer}."),
    ),
    Scenario(
        "refill_insulin",
        "Order insulin from the pharmacy.",
        ("vials:count",),
        ("I am running out of insulin, get {vials} vials.", "Order {vials} vials of insulin."),
    ),
    Scenario(
        "thermostat_degrees",
        "Set the thermostat.",
        ("setpoint:count",),
        ("It's cold, thermostat to {setpoint}.", "Thermostat at {setpoint} degrees."),
    ),
    Scenario(
        "tide_table",
        "Tides at a seafront.",
        ("seafront:place",),
        ("When is high tide in {seafront}?", "Tides at {seafront}?", "What are the tides in {seafront}?"),
    ),
    Scenario(
        "modulo",
        "Remainder of a division.",
        ("numerator:count", "modulus:count"),
        ("What remains of {numerator} modulo {modulus}?", "Remainder of {numerator} by {modulus}?"),
    ),
    Scenario(
        "broadcast_podcast",
        "Publish a podcast episode.",
        ("episode:title", "narrator:person"),
        ('Publish the podcast episode "{episode}" with {narrator}.', "Podcast: {episode}, told by {narrator}."),
    ),
    Scenario(
        "page_oncall",
        "Page the engineer on call.",
        ("pager:phone", "alert_text:message"),
        ('Page {pager}: "{alert_text}"', 'Get the engineer at {pager}, tell them "{alert_text}".'),
    ),
    Scenario(
        "adopt_hamster",
        "Adopt a hamster.",
        ("pet_name:title", "colour:beige/umber/fawn"),
        ("I want the {colour} hamster, name it {pet_name}.", "Adopt a hamster, {colour}, called {pet_name}."),
    ),
)

SCENARIOS = Split(TRAIN, HELD_OUT)
UNUSUAL = read((Path(__file__).parent / "errands_held_out.txt").read_text(encoding="utf-8"))
"""More that are held out, for an examination alone: what few people ask for, in as many manners as people have."""

MORE = read((Path(__file__).parent / "errands_wider.txt").read_text(encoding="utf-8"))
"""More to learn from, in the last stage of training: what people ask an agent first."""

ASKS = templates(*([told(ask)[0] for each in side for ask in each.asks] for side in (TRAIN + MORE, HELD_OUT + UNUSUAL)))

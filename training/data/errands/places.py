"""Errands with places in them: where something is, where it goes, from where to where."""

TEXT = """
[order_taxi|call_cab] | Order a taxi. | from_street:street to_where:place ?pick_up_at:time
A taxi from {from_street} to {to_where}.
I am at {from_street} and have to go to {to_where}.
Get me a cab to {to_where}, I wait at {from_street}, {pick_up_at}.
At {pick_up_at} I need a taxi, {from_street} to {to_where}.

[buy_ticket|train_ticket] | Buy train tickets. | board_at:place get_off_at:place travellers:count
{travellers} tickets from {board_at} to {get_off_at}.
Buy tickets to {get_off_at} for {travellers}, we leave from {board_at}.
We are {travellers} and go from {board_at} to {get_off_at} by train.
{board_at} to {get_off_at}, {travellers} people.

[rent_car|hire_car] | Rent a car in a city. | pick_up_in:place days:count ?gearbox:automatic/stick
Rent a car in {pick_up_in} for {days} days.
I need a car for {days} days in {pick_up_in}.
{days} days {pick_up_in}, rental car, {gearbox} if you can.
In {pick_up_in} I want to drive {gearbox}, {days} days.

[rent_bike|hire_bike] | Rent bicycles. | station:place bikes:count
{bikes} bikes in {station}.
We'd like to cycle in {station}, {bikes} of us.
Get {bikes} bicycles from {station}.
At {station} we need {bikes} bikes.

[open_branch|new_branch] | Open a branch of a company. | chain:company branch_city:place
{chain} opens a shop in {branch_city}.
Open {chain} in {branch_city}.
There will be a {chain} in {branch_city}.
{branch_city} gets its own {chain}.

[ship_parcel|send_parcel] | Send a parcel. | parcel_weight:decimal to_city:place
Send a parcel of {parcel_weight} kilos to {to_city}.
My parcel weighs {parcel_weight} and goes to {to_city}.
{to_city}, {parcel_weight} kg, by post.
What I send to {to_city} has {parcel_weight} kilos.

[move_house|change_home] | Tell the office that somebody moves. | mover:person new_home:street
{mover} moves to {new_home}.
{mover} lives at {new_home} now.
The new address of {mover} is {new_home}.
From next week on you find {mover} at {new_home}.

[twin_towns|make_partners] | Make two towns partners. | one_town:place other_town:place
Make {one_town} and {other_town} partners.
{one_town} wants to be partner of {other_town}.
Partners: {one_town} and {other_town}.

[plant_trees|new_trees] | Plant trees in a park. | tree:word park:place trees:count
Plant {trees} {tree} trees in {park}.
{park} needs {trees} more {tree} trees.
{trees} times {tree} for {park}.
Put {trees} {tree} trees in the ground in {park}.

[report_pothole|street_damage] | Report damage to a street. | damaged_street:street damage:phrase
{damaged_street} has {damage}.
There is {damage} at {damaged_street}.
Look at {damaged_street}: {damage}.

[rent_flat|find_flat] | Find a flat to rent. | quarter:place rooms:count ?rent_up_to:decimal
A flat in {quarter} with {rooms} rooms.
{rooms} rooms in {quarter}, at most {rent_up_to}.
We want to live in {quarter} and need {rooms} rooms.
Is there a flat with {rooms} rooms in {quarter} for {rent_up_to}?

[visit_museum|museum_tickets] | Tickets for a museum. | museum:title visitors:count ?visit_day:date
We want to see the {museum}, {visitors} people.
{visitors} tickets for the "{museum}".
"{museum}" on {visit_day}, {visitors} tickets.
On {visit_day} {visitors} of us go to the {museum}.

[book_campsite|reserve_tent] | Book a place for tents. | campground:place tents:count
Room for {tents} tents in {campground}.
{campground}, {tents} tents.
We camp in {campground} with {tents} tents.
Is there a place for {tents} tents at {campground}?

[measure_rain|get_rainfall] | Rain that fell at a place on a day. | gauge:place rain_day:date
How much rain fell in {gauge} on {rain_day}?
Was it wet in {gauge} on {rain_day}?
Rain on {rain_day}, {gauge}?

[sunrise|get_sunrise] | When the sun rises. | sky:place ?morning:date
When does the sun rise in {sky}?
Sunrise in {sky} on {morning}?
When will it be light in {sky}?

[list_events|whats_on] | What is on in a town. | evening_in:place ?evening:date
What is on in {evening_in}?
What can we do in {evening_in} on {evening}?
I'm in {evening_in} on {evening} and bored.
Anything happening in {evening_in}?

[find_doctor|nearest_doctor] | Find a doctor nearby. | nearby:street ?speaks:language
I need a doctor near {nearby}.
A doctor who speaks {speaks}, close to {nearby}.
We are at {nearby} and somebody is ill.
Who can see me near {nearby}? I only speak {speaks}.

[bus_stop|next_bus] | When the next bus leaves. | stop:street line:count
When does the {line} leave from {stop}?
Next bus {line} at {stop}?
I'm at {stop} and wait for the {line}.
Bus {line}, {stop}, when?

[mayor|get_mayor] | Who runs a town. | governed:place
Who is the mayor of {governed}?
Who runs {governed}?
Mayor of {governed}?

[country_capital|capital] | Capital of a country. | country:place
What is the capital of {country}?
Capital of {country}?
Which city governs {country}?

[area_code|dialling_code] | Dialling code of a town. | called_town:place
What do I dial first for {called_town}?
Dialling code of {called_town}, please.
I want to call somebody in {called_town}, what's the code?

[close_road|block_road] | Close a road. | blocked:street reopened:date ?why:phrase
Close {blocked} until {reopened}.
Nobody gets through {blocked} before {reopened}.
{blocked} is closed up to {reopened} because of {why}.

[deliver_pizza|order_pizza] | Have a pizza delivered. | topping:word eater_address:street ?pizzas:count
A pizza with {topping} to {eater_address}.
We're hungry at {eater_address}, {pizzas} pizzas with {topping}.
{pizzas} times {topping} to {eater_address}.
Bring a {topping} pizza to {eater_address}.

[move_stock|transfer_goods] | Move goods from one store to another. | goods:word out_of:place into:place
Move the {goods} from {out_of} to {into}.
{into} needs {goods}, {out_of} has some.
Take {goods} out of {out_of} and bring it to {into}.

[fly_drone|send_drone] | Send a drone somewhere. | goal:place metres_up:count
Fly to {goal}, {metres_up} metres up.
Send the drone over {goal} at {metres_up} metres.
At {metres_up} metres to {goal}, please.

[name_star|name_planet] | Name something in the sky. | catalogue_no:code sky_name:title
Call {catalogue_no} "{sky_name}".
{catalogue_no} is "{sky_name}" from today.
"{sky_name}" is the name for {catalogue_no}.
"""

"""Errands with things in them: what is bought, made, counted, mended, switched."""

TEXT = """
[sell_item|put_up_for_sale] | Put something up for sale. | item_name:title asking_price:decimal
Sell "{item_name}" for {asking_price}.
"{item_name}", {asking_price}. Put it online.
I want {asking_price} for "{item_name}".
Put {item_name} up for sale at {asking_price}.

[reorder_stock|order_goods] | Order more from a supplier. | article:word units_wanted:count from_supplier:company
Order {units_wanted} {article} from {from_supplier}.
{from_supplier} should send {units_wanted} more {article}.
We are out of {article}, get {units_wanted} at {from_supplier}.
{units_wanted} times {article}, from {from_supplier}.

[repair_device|order_repair] | Have a device repaired. | device:code fault:phrase
{device} is broken: {fault}.
Repair {device}, it is {fault}.
{fault}, that is what is wrong with {device}.

[return_goods|send_back] | Send something back that was bought. | bought:code complaint:message
I send {bought} back. "{complaint}"
{bought} goes back, because "{complaint}".
Take back {bought}: "{complaint}"

[insure|buy_insurance] | Insure something. | insured:title worth_of:decimal ?insurer:company
Insure "{insured}" for {worth_of}.
My "{insured}" is worth {worth_of}, I want it insured.
{insurer} should insure "{insured}" for {worth_of}.

[set_heating|warm_room] | Heat a room. | heated_room:attic/nursery/workshop/study/corridor degrees:count
{degrees} degrees in the {heated_room}.
Heat the {heated_room} to {degrees}.
The {heated_room} is too cold, make it {degrees}.
In the {heated_room} I want {degrees} degrees.

[set_volume|loudness] | How loud the music is. | loudness:count
Volume {loudness}.
Turn it up to {loudness}.
Music at {loudness}, please.
That's too loud, {loudness} is enough.

[tv_channel|switch_channel] | Switch to a channel. | channel:count
Channel {channel}.
Put on channel {channel}.
I want to watch {channel}.
Switch over to number {channel}.

[boil_water|use_kettle] | Boil water for drinks. | cups:count drink:green/black/mint/camomile
{cups} cups of {drink} tea.
Make {drink} tea for {cups}.
We want {drink}, {cups} cups.
Tea! {drink}, {cups} cups.

[paint_wall|choose_paint] | Paint a wall. | wall:north/south/east/west paint:word
Paint the {wall} wall {paint}.
I want {paint} on the {wall} wall.
{paint} for the {wall} one, please.

[feed_animal|feed] | Feed an animal. | animal:title grams:count
Give {animal} {grams} grams.
{animal} is hungry, {grams} grams.
{grams} grams for {animal}.
Feed {animal}, {grams} is enough.

[water_plants|watering] | Water the plants. | litres:decimal bed_number:count
{litres} litres for bed {bed_number}.
Water bed {bed_number} with {litres} litres.
Bed {bed_number} is dry, give it {litres} litres.

[mix_drink|make_cocktail] | Mix a drink. | spirit:word fruit:word ?strength:weak/strong
{spirit} with {fruit}, please.
Mix {spirit} and {fruit}.
A {strength} one with {spirit} and {fruit}.
I drink {spirit} with {fruit}.

[bake_cake|order_cake] | Order a cake with words on it. | flavour:word icing:message ?cake_day:date
A {flavour} cake that says "{icing}".
Bake something with {flavour} and write "{icing}" on it.
For {cake_day}: {flavour} cake, "{icing}".
"{icing}" on a {flavour} cake, for {cake_day}.

[donate|give_money] | Give money to an organisation. | donation:decimal charity:company
Give {donation} to {charity}.
{charity} gets {donation} from me.
I'd like to donate {donation}, to {charity}.
{donation} for {charity}.

[lay_bet|place_bet] | Bet on a team. | stake:decimal team_name:title
{stake} on {team_name}.
I bet {stake} that "{team_name}" wins.
"{team_name}" will win, put {stake} on them.

[buy_shares|trade_shares] | Buy shares of a company. | shares:count of_company:company
Buy {shares} shares of {of_company}.
{shares} {of_company}, please.
I want {shares} of {of_company}.
Get me into {of_company}, {shares} shares.

[split_bill|share_bill] | Split a bill among people. | bill:decimal heads:count
Split {bill} among {heads}.
We are {heads} and have to pay {bill}.
{bill} for {heads} people, how much is that for each?
{heads} people, {bill} in all.

[tip|work_out_tip] | Tip for a meal. | meal_price:decimal percent:count
{percent} percent tip on {meal_price}.
The meal was {meal_price}, I want to give {percent} percent.
How much is {percent}% of {meal_price}?

[power_of|raise_to_power] | A number to the power of another. | root_number:count exponent:count
{root_number} to the power of {exponent}?
Raise {root_number} to the {exponent}.
{root_number} ^ {exponent}
What is {root_number} multiplied {exponent} times by itself?

[percentage|what_share] | Which share of a number another one is. | part:count whole:count
What percentage of {whole} is {part}?
{part} out of {whole}, in percent?
{part} of {whole} passed. Which share is that?
How many percent are {part} of {whole}?

[greatest_common|common_divisor] | The largest number that divides both. | one_number:count other_number:count
What divides both {one_number} and {other_number}?
Largest common divisor of {one_number} and {other_number}?
{one_number} and {other_number}: what do they have in common?

[random_between|random_number] | A random number between two. | lowest:count highest:count
A number between {lowest} and {highest}.
Pick one from {lowest} to {highest}.
Anything from {lowest} up to {highest}, you choose.
Not below {lowest} and not above {highest}, at random.

[days_between|count_days] | Days between two dates. | earlier:date later:date
How many days are there from {earlier} to {later}?
Between {earlier} and {later}, how long is that?
{earlier} until {later}, in days?

[weekday_of|get_weekday] | Day of the week of a date. | calendar_day:date
Which day of the week is {calendar_day}?
Is {calendar_day} a Monday?
What day was {calendar_day}?

[speed_of|work_out_speed] | Speed from a way and how long it took. | kilometres:decimal hours_taken:decimal
{kilometres} kilometres in {hours_taken} hours, how fast is that?
I drove {kilometres} km and it took {hours_taken} hours.
How fast was I? {hours_taken} hours for {kilometres} km.

[loan_payment|monthly_payment] | What a loan costs a month. | borrowed:decimal years:count
{borrowed} over {years} years, what do I pay?
I borrow {borrowed} for {years} years.
A loan of {borrowed}, paid back in {years} years.

[weigh_in|log_weight] | Write down a weight. | kilos:decimal ?weighed_on:date
I weigh {kilos}.
{kilos} kilos on {weighed_on}.
The scales said {kilos} today.
On {weighed_on} it was {kilos}.

[log_run|save_run] | Write down a run. | run_km:decimal run_minutes:count
I ran {run_km} km in {run_minutes} minutes.
{run_minutes} minutes for {run_km} km today.
Ran {run_km}, took me {run_minutes} minutes.

[check_dictionary|spell_word] | How a word is written in a language. | looked_up:word in_language:language
How do you write {looked_up} in {in_language}?
{looked_up}, in {in_language}?
Is {looked_up} right in {in_language}?
The {in_language} for {looked_up}?

[rhyme|find_rhyme] | Words that rhyme. | rhymes_with:word
What rhymes with {rhymes_with}?
Rhymes for {rhymes_with}?
I need a word that sounds like {rhymes_with}.

[knit|order_knitwear] | Order something knitted. | garment:scarf/socks/mittens/jumper wool:word
A {garment} made of {wool}.
Knit me {garment} from {wool}.
I want {wool} {garment}.
{garment}, {wool} please.
"""

"""Errands with people in them: who gets what, who is told what, who is called how."""

TEXT = """
[lend_book|loan_book] | Lend a book to a reader. | book:title reader:person ?until:date
Lend "{book}" to {reader}.
{reader} wants to borrow {book}.
{reader} takes "{book}" home until {until}.
The book "{book}" goes to {reader}, back by {until}.

[invite_guest|send_invitation] | Invite somebody to a party. | guest:person day:date ?dish:word
Invite {guest} for {day}.
I'd like to have {guest} over on {day}.
{guest} should come on {day} and bring {dish}.
Ask {guest} to the party on {day}.

[hire_person|add_employee] | Hire somebody for a job. | candidate:person salary:decimal ?begins:date
Hire {candidate} for {salary} a month.
{candidate} gets the job, at {salary}.
We take {candidate}. The pay is {salary}, from {begins} on.
Offer {candidate} the position with {salary} a month.

[give_present|buy_present] | Buy somebody a present. | for_whom:person present:word ?budget:decimal
Buy {for_whom} a {present}.
A {present} for {for_whom}, please.
{for_whom} has birthday and likes {present}, not more than {budget}.
I want to give {for_whom} a {present} for about {budget}.

[phone_somebody|make_call] | Call somebody on the phone. | who:person phone_line:phone
Call {who} at {phone_line}.
Ring {who}, the number is {phone_line}.
{who} waits for a call on {phone_line}.
Get me {who} on the line, {phone_line}.

[leave_voicemail|voice_message] | Leave a spoken message for somebody. | callee:phone spoken:message
Call {callee} and say "{spoken}".
Leave "{spoken}" on the machine of {callee}.
When {callee} does not pick up, tell them "{spoken}".

[rename_person|change_name] | Change a person's name. | old_name:person new_name:person
{old_name} is called {new_name} now.
{old_name} got married and is now {new_name}.
Change the name from {old_name} to {new_name}.
Call {old_name} {new_name} from now on.

[introduce|make_introduction] | Introduce one person to another by e-mail. | mentor:person newcomer_mail:email
Introduce {mentor} to {newcomer_mail}.
Tell {newcomer_mail} about {mentor}.
{newcomer_mail} should get to know {mentor}.

[pay_wages|pay_out] | Pay somebody for hours of work. | worker:person hours_worked:count
Pay {worker} for {hours_worked} hours.
{worker} worked {hours_worked} hours.
{hours_worked} hours for {worker}, pay them out.
{worker}'s hours this week: {hours_worked}.

[record_grade|grade_pupil] | Write down the grade of a pupil. | pupil:person school_subject:word grade:count
{pupil} got a {grade} in {school_subject}.
Give {pupil} {grade} points in {school_subject}.
{school_subject}: {pupil}, {grade} points.
A {grade} for {pupil} in {school_subject}, write it down.

[renew_membership|extend_membership] | Renew the membership of somebody. | club_member:person card:code
{club_member}'s membership card is {card}, renew it.
Renew {card} of {club_member}.
{club_member} ({card}) stays a member.
The membership of {club_member} with card {card} ran out and has to go on.

[change_seat|move_passenger] | Give a passenger another seat. | passenger:person seat:code
{passenger} wants seat {seat}.
Put {passenger} in {seat}.
Move {passenger} to seat {seat}.
Seat {seat} is for {passenger}.

[admit_patient|new_patient] | Admit a patient to a ward. | patient_name:person ward:word ?bed:count
{patient_name} has to go to the {ward} ward.
Admit {patient_name}, ward {ward}, bed {bed}.
{ward}: new patient {patient_name}.
Please take in {patient_name} on {ward}, there is bed {bed}.

[prescribe|write_prescription] | Prescribe a medicine to somebody. | sick_person:person medicine:word ?tablets:count
Prescribe {sick_person} {medicine}.
{sick_person} needs {medicine}, {tablets} tablets.
{tablets} tablets of {medicine} for {sick_person}.
{medicine} for {sick_person}, please.

[book_lesson|reserve_lesson] | Book a lesson with a teacher. | teacher:person lesson_language:language ?lesson_day:date
I want to learn {lesson_language} with {teacher}.
A {lesson_language} lesson with {teacher} on {lesson_day}.
Book {teacher} for {lesson_language}.
{teacher} teaches {lesson_language}, get me a lesson on {lesson_day}.

[credit_author|set_author] | Say who wrote a book. | volume:title writer:person
"{volume}" was written by {writer}.
The author of {volume} is {writer}.
{writer} wrote "{volume}", note that.
{volume}, by {writer}.

[cast_role|cast_actor] | Give an actor a part in a play. | play:title actor:person
{actor} plays in "{play}".
Cast {actor} in {play}.
For "{play}" we take {actor}.
{play}: {actor} has the part.

[award_prize|give_prize] | Give somebody a prize. | winner:person prize:title ?prize_money:decimal
The "{prize}" goes to {winner}.
{winner} wins the {prize}.
Give {winner} the "{prize}" and {prize_money}.
{prize}: {winner}, {prize_money} in cash.

[fine_driver|write_fine] | Fine the driver of a car. | driver:person plate:code fine:decimal
Fine {driver} {fine} for the car {plate}.
{driver} in {plate} was too fast, that makes {fine}.
{plate}, driven by {driver}: {fine}.

[set_birthday|save_birthday] | Remember somebody's birthday. | friend:person born_on:date
{friend}'s birthday is {born_on}.
{friend} was born on {born_on}.
Remember {born_on}, it is the birthday of {friend}.
On {born_on} we celebrate {friend}.

[nickname_contact|save_contact] | Save the phone number of somebody. | contact_name:person digits:phone
{contact_name} has a new number, {digits}.
Save {digits} as {contact_name}.
{digits} belongs to {contact_name}.
{contact_name}: {digits}

[ask_question|pass_question] | Ask an expert a question. | expert:person question:message
Ask {expert}: "{question}"
"{question}" - pass this on to {expert}.
I have a question for {expert}: "{question}"
{expert} should answer this: "{question}"

[quote_person|save_quote] | Save what somebody said. | speaker:person quote:message
{speaker} said "{quote}".
"{quote}" ({speaker})
As {speaker} said: "{quote}". Keep that.
Save a quote of {speaker}: '{quote}'

[send_flowers|order_flowers] | Send flowers to an address. | flowers:word house:street ?stems:count
Send {flowers} to {house}.
{stems} {flowers}, to {house} please.
Somebody at {house} should get {flowers}.
Order {flowers} for {house}, {stems} of them.

[assign_locker|give_locker] | Give somebody a locker. | swimmer:person locker:count
Locker {locker} is for {swimmer}.
{swimmer} gets number {locker}.
Give {swimmer} locker {locker}.

[vote_for|cast_vote] | Vote for somebody. | choice:person votes:count
{votes} votes for {choice}.
{choice} gets {votes}.
Give {choice} {votes} votes.
Count {votes} more for {choice}.

[report_missing|missing_person] | Report that somebody is missing. | missing_one:person last_seen:place ?since_when:date
{missing_one} was last seen in {last_seen}.
Nobody has heard of {missing_one} since {since_when}, it was in {last_seen}.
{missing_one} is missing, last in {last_seen}.
I can't find {missing_one}. We were in {last_seen} on {since_when}.

[swap_shift|trade_shift] | Let somebody work instead of another one. | off_duty:person stand_in:person shift_day:date
{stand_in} works for {off_duty} on {shift_day}.
On {shift_day} {off_duty} is away and {stand_in} comes.
{off_duty} is ill, let {stand_in} do {shift_day}.

[sign_up_runner|enter_race] | Sign somebody up for a race. | runner:person start_number:count ?club:company
{runner} runs with number {start_number}.
Sign up {runner}, number {start_number}.
Number {start_number}: {runner}, {club}.
{runner} of {club} starts with {start_number}.
"""

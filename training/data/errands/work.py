"""Errands of an office and of who looks after computers."""

TEXT = """
[open_ticket|file_bug] | File a bug. | bug:title found_in:code ?urgency:low/high/critical
File a bug for {found_in}: "{bug}"
"{bug}" in {found_in}.
{found_in} has a bug, "{bug}". It's {urgency}.
New {urgency} bug, {found_in}: {bug}

[assign_ticket|hand_over] | Give a ticket to somebody. | ticket_number:code engineer:person
{engineer} takes {ticket_number}.
Give {ticket_number} to {engineer}.
{ticket_number} is for {engineer}.
Let {engineer} look at {ticket_number}.

[comment_on|add_remark] | Comment on a ticket. | on_ticket:code said:message
{on_ticket}: "{said}"
Comment "{said}" on {on_ticket}.
Write under {on_ticket}: "{said}"
"{said}" should stand under {on_ticket}.

[merge_branch|merge] | Merge one branch into another. | source_branch:word target_branch:word
Merge {source_branch} into {target_branch}.
{source_branch} is done, it goes into {target_branch}.
Bring {target_branch} up to date with {source_branch}.

[deploy|roll_out] | Deploy a service in some version. | service_name:word version:code ?stage_name:staging/production
Deploy {service_name} {version}.
Roll {version} of {service_name} out to {stage_name}.
{service_name} should run {version} in {stage_name}.
Put {service_name} at {version}.

[restart_machine|reboot] | Restart a machine. | machine:code ?restart_at:time
Restart {machine}.
{machine} hangs, reboot it.
{machine} at {restart_at}, restart.
At {restart_at} please restart {machine}.

[grow_disk|resize_disk] | Make a disk larger. | disk:code gigabytes:count
{disk} needs {gigabytes} GB.
Make {disk} {gigabytes} GB large.
{gigabytes} GB for {disk}.
{disk} is full, grow it to {gigabytes} GB.

[scale_service|set_replicas] | How many copies of a service run. | scaled:word replicas:count
Run {replicas} of {scaled}.
{scaled} needs {replicas} copies.
Scale {scaled} to {replicas}.
{replicas} times {scaled}, there is a lot of load.

[rename_file|move_file] | Rename a file. | old_file:title new_file:title
Rename "{old_file}" to "{new_file}".
"{old_file}" should be called "{new_file}".
The new name of "{old_file}" is "{new_file}".

[download|fetch_file] | Download something and save it under a name. | from_address:url saved_as:title
Download {from_address} as "{saved_as}".
Save {from_address} under "{saved_as}".
Get me {from_address}, call it "{saved_as}".

[shorten_link|short_url] | Make a short link. | long_link:url ?short_name:word
Shorten {long_link}.
{long_link} is too long.
Make {short_name} out of {long_link}.
A short link for {long_link}, {short_name} if it's free.

[redirect_page|add_redirect] | Send visitors of one page to another. | old_page:url new_page:url
{old_page} moved to {new_page}.
Send everybody from {old_page} to {new_page}.
Who opens {old_page} should get {new_page}.

[check_site|is_site_up] | Whether a page can be reached. | checked_page:url
Is {checked_page} up?
Does {checked_page} work?
I can't open {checked_page}.
Check {checked_page} for me.

[subscribe|add_subscriber] | Put an address on a mailing list. | subscriber:email mailing_list:title
Put {subscriber} on "{mailing_list}".
{subscriber} wants to get {mailing_list}.
Subscribe {subscriber} to "{mailing_list}".
"{mailing_list}" for {subscriber} too.

[forward_mail|redirect_mail] | Forward the mail of one address to another. | old_inbox:email new_inbox:email
Everything for {old_inbox} goes to {new_inbox}.
Forward {old_inbox} to {new_inbox}.
{new_inbox} gets the mail of {old_inbox}.

[reset_password|new_password] | Reset the password of an account. | account_mail:email
{account_mail} forgot the password.
Reset {account_mail}.
New password for {account_mail}.
I can't log in, my address is {account_mail}.

[block_sender|block_address] | Block mail from an address. | unwanted:email
No more mail from {unwanted}.
Block {unwanted}.
{unwanted} writes too much.

[schedule_call|plan_call] | Plan a call with a client. | client_name:company call_day:date call_hour:time
Call with {client_name} on {call_day} at {call_hour}.
{client_name} has time on {call_day}, {call_hour}.
On {call_day} at {call_hour} we talk to {client_name}.
{call_day}, {call_hour}: {client_name}.

[move_meeting|postpone] | Move a meeting to another day. | meeting_name:title moved_to:date
Move "{meeting_name}" to {moved_to}.
"{meeting_name}" is on {moved_to} now.
We can't make it, put {meeting_name} on {moved_to}.
{moved_to} is better for "{meeting_name}".

[book_room|reserve_room] | Reserve a room for a meeting. | room_code:code seats:count ?from_hour:time
Room {room_code} for {seats}.
We are {seats}, is {room_code} free at {from_hour}?
Reserve {room_code}, {seats} people, {from_hour}.
{seats} of us meet in {room_code}.

[pay_invoice|settle_invoice] | Pay an invoice. | invoice_number:code sum:decimal
Pay {sum} for invoice {invoice_number}.
Invoice {invoice_number}, {sum}.
{invoice_number} is open, it's {sum}.
Transfer {sum} with the reference {invoice_number}.

[send_invoice|bill_client] | Send an invoice to a company. | billed:company total_due:decimal ?due_on:date
Bill {billed} {total_due}.
{billed} owes us {total_due}, due {due_on}.
An invoice over {total_due} to {billed}.
{total_due}, to be paid by {billed} until {due_on}.

[sign_contract|new_contract] | Make a contract with a company. | partner:company runs_until:date
A contract with {partner} until {runs_until}.
{partner} signs up to {runs_until}.
We work with {partner} until {runs_until}, make a contract.

[register_company|found_company] | Register a new company. | new_company:company seat_in:place
Register {new_company} in {seat_in}.
{new_company} has its seat in {seat_in}.
We found {new_company}, in {seat_in}.

[translate_page|translate_site] | Translate a web page. | page_address:url into_language:language
{page_address} in {into_language}, please.
Translate {page_address} into {into_language}.
I want to read {page_address} in {into_language}.
Make {page_address} {into_language}.

[write_post|publish_post] | Publish a post. | post_title:title post_text:message
Publish "{post_title}" with the text "{post_text}".
New post: {post_title}. "{post_text}"
Post "{post_text}", with "{post_title}" on top.

[write_article|draft_article] | Draft an article about something. | article_topic:topic words:count
{words} words about {article_topic}.
Write about {article_topic}, {words} words.
An article on {article_topic} with {words} words.
I need {words} words, the topic is {article_topic}.

[find_paper|search_papers] | Find papers by somebody about something. | researched:topic researcher:person
What did {researcher} write about {researched}?
Papers on {researched} by {researcher}.
{researcher}, {researched}: any papers?
Find what {researcher} published on {researched}.

[sort_table|order_table] | Sort a table. | table_name:title column:word ?direction:upwards/downwards
Sort "{table_name}" by {column}.
"{table_name}", {direction} by {column}.
By {column} please, the table "{table_name}".

[run_query|query_table] | Look for a value in a column of a table. | searched_column:word wanted_value:code
Where is {searched_column} {wanted_value}?
Find {wanted_value} in {searched_column}.
All rows with {wanted_value} in {searched_column}.

[log_hours|book_hours] | Write down hours worked for a project. | project:title hours:decimal
{hours} hours for "{project}".
I worked {hours} hours on {project}.
"{project}": {hours} h.
Put down {hours} for "{project}".

[approve_leave|book_holiday] | Write down somebody's holidays. | away:person first_day:date last_day:date
{away} is off from {first_day} to {last_day}.
{away} goes on holiday on {first_day} and is back after {last_day}.
From {first_day} until {last_day} {away} is not there.

[print_document|print_pages] | Print a document. | document:title copies_wanted:count ?paper:thin/heavy
Print {copies_wanted} copies of "{document}".
"{document}", {copies_wanted} times.
{copies_wanted} times "{document}" on {paper} paper.
I need "{document}" on paper, {copies_wanted} copies.
"""

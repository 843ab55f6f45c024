"""A mailbox to a list of what has to be done, the urgent first.

python examples/recipes/mail_triage.py ~/mail/inbox.mbox google/gemma-4-E4B-it
"""

import mailbox
import sys
import tempfile
from email import message, message_from_bytes, policy
from typing import Literal

from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax


class Triage(BaseModel):
    """What a mail wants."""

    kind: Literal["incident", "invoice", "question", "news"]
    urgency: int = Field(ge=1, le=5, description="5 is the most urgent")
    to_do: str = Field(max_length=60)


path, model = (*sys.argv[1:], *(tempfile.mkdtemp() + "/mbox", "sprout-m")[len(sys.argv) - 1 :])
box = mailbox.mbox(path, create=not sys.argv[1:])
if not sys.argv[1:]:  # two to try
    for subject, kind, urgency, to_do in ("Lunch", "news", 1, "Eat soup"), ("Server", "incident", 5, "Restart it"):
        (mail := message.EmailMessage())["Subject"] = subject
        mail.set_content(f"The kind is {kind}. The urgency is {urgency}. The to do is {to_do}.")
        box.add(mail)
mails = [message_from_bytes(each.as_bytes(), policy=policy.default) for each in box]
bodies = [each.get_body(("plain", "html")) for each in mails]
told = zip(mails, bodies, strict=True)
texts = [f"{mail['Subject']}\n{body.get_content() if body else ''}"[:4000] for mail, body in told]
triage = ChatGemmaJax(model=model, temperature=0, max_tokens=120).with_structured_output(Triage)
found = zip(texts, triage.batch(list(texts), return_exceptions=True), strict=True)
for text, each in sorted(found, key=lambda pair: -getattr(pair[1], "urgency", 9)):  # what cannot be read comes first
    print(f"{text.splitlines()[0]:20} {each!s:.120}")

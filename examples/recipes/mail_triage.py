"""A mailbox to a list of what has to be done, the urgent first.

python examples/recipes/mail_triage.py ~/mail/inbox.mbox google/gemma-4-E4B-it
"""

import mailbox
import sys
import tempfile
from email.message import EmailMessage
from typing import Literal

from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax


class Triage(BaseModel):
    """What a mail wants."""

    kind: Literal["incident", "invoice", "question", "news"]
    urgency: int = Field(ge=1, le=5, description="5 is the most urgent")
    to_do: str = Field(max_length=60)


path, model = (*sys.argv[1:], *(tempfile.mkdtemp() + "/mbox", "sprout-m")[len(sys.argv) - 1 :])
box = mailbox.mbox(path)
if not len(box):  # none was named: two to try
    for subject, text in {"Server is down!": "Nobody can log in.", "Lunch": "The menu is soup."}.items():
        mail = EmailMessage()
        mail["Subject"] = subject
        mail.set_content(text)
        box.add(mail)
texts = [f"{each['Subject']}\n{each.get_payload()}"[:4000] for each in box]
triage = ChatGemmaJax(model=model, temperature=0, max_tokens=120).with_structured_output(Triage)
found = zip(texts, triage.batch(list(texts), return_exceptions=True), strict=True)
for text, each in sorted(found, key=lambda pair: -getattr(pair[1], "urgency", 9)):  # what cannot be read comes first
    print(f"{text.splitlines()[0]:20} {each!r:.120}")

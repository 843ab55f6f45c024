"""Answers from documents: the right ones are found, read, and asked about.

    python examples/rag.py                                # a small model, and embeddings of letters
    python examples/rag.py google/gemma-4-E4B-it

The embeddings here compare letters, so that nothing has to be installed: enough to find words, and not what they mean.
In a program of yours take real ones: ``semantic_search.py`` has ``GemmaJaxEmbeddings``.
"""

from __future__ import annotations

import math
import sys
from collections import Counter

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_gemma_jax import ChatGemmaJax, engine

RULES = [
    "The library opens at nine and closes at six.",
    "The pool opens at seven. Children swim with an adult.",
    "Bicycles belong in the cellar, behind the green door.",
]
QUESTIONS = ["When does the pool open?", "Where do bicycles belong?"]
SIZE = 256


class LetterEmbeddings(Embeddings):
    """How often each three letters stand in a text, as a vector of length one."""

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        padded = f" {text.lower()} "
        counts = Counter(sum(map(ord, padded[at : at + 3])) % SIZE for at in range(len(padded) - 2))
        length = math.sqrt(sum(count**2 for count in counts.values()))
        return [counts[place] / length for place in range(SIZE)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of some texts."""
        return [self.embed_query(text) for text in texts]


def main(llm: ChatGemmaJax) -> None:
    """Ask each question about the document that is found for it."""
    store = InMemoryVectorStore(LetterEmbeddings())
    store.add_documents([Document(rule) for rule in RULES])
    # What all prompts have in common stands first, so it is read once.
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You know the rules of a house. Answer from what you are given."), ("human", "{found}\n\n{asked}")]
    )
    found = store.as_retriever(search_kwargs={"k": 1}) | (lambda documents: documents[0].page_content)
    chain = {"found": found, "asked": RunnablePassthrough()} | prompt | llm | StrOutputParser()
    for question in QUESTIONS:
        print(f"> {question}\n  found: {found.invoke(question)}\n  said: {chain.invoke(question)}")
    report = engine().report()
    print(f"{report.prefilled_tokens} tokens read, {report.reused_tokens} known already")


if __name__ == "__main__":
    main(ChatGemmaJax(model=sys.argv[1] if sys.argv[1:] else "sprout-s", temperature=0, max_tokens=32))

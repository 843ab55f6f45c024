"""Answers from documents that are found by what they mean: embeddings and answers from one engine.

hf download google/embeddinggemma-300m --local-dir embeddinggemma-300m
python examples/semantic_search.py                                     # that folder, and a small model that answers
python examples/semantic_search.py google/embeddinggemma-300m google/gemma-3-4b-it
"""

from __future__ import annotations

import sys

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_gemma_jax import ChatGemmaJax, GemmaJaxEmbeddings, engine

RULES = [
    "The library opens at nine and closes at six.",
    "The pool opens at seven. Children swim with an adult.",
    "Bicycles belong in the cellar, behind the green door.",
]
QUESTIONS = ["When can I swim?", "Where do I leave my bike?"]


def main(embeddings: GemmaJaxEmbeddings, llm: ChatGemmaJax) -> None:
    """Ask each question about the document that is nearest to it."""
    store = InMemoryVectorStore.from_texts(RULES, embeddings)
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You know the rules of a house. Answer from what you are given."), ("human", "{found}\n\n{asked}")]
    )
    found = store.as_retriever(search_kwargs={"k": 1}) | (lambda documents: documents[0].page_content)
    chain = {"found": found, "asked": RunnablePassthrough()} | prompt | llm | StrOutputParser()
    for question in QUESTIONS:
        print(f"> {question}")
        for document, likeness in store.similarity_search_with_score(question, k=len(RULES)):
            print(f"  {likeness:.2f} {document.page_content}")
        print(f"  said: {chain.invoke(question)}")
    for status in engine().models():
        print(status)


if __name__ == "__main__":
    finds = sys.argv[1] if sys.argv[1:] else "./embeddinggemma-300m"
    answers = sys.argv[2] if sys.argv[2:] else "sprout-s"
    main(GemmaJaxEmbeddings(model=finds), ChatGemmaJax(model=answers, temperature=0, max_tokens=32))

"""Two engines on Ray, and conversations that stay with theirs.

    pip install 'langchain-gemma-jax[ray]'
    python examples/two_replicas.py

A cluster of this machine alone is started, and ended. The second turn of each conversation reuses what its replica
remembers of the first one, so it was sent to the same replica. On several machines nothing of this changes but who
starts the cluster: ``serve run langchain_gemma_jax.scale.ray:app model=sprout-s replicas=2``.
"""

from __future__ import annotations

from langchain_core.messages import HumanMessage

from langchain_gemma_jax import ChatGemmaJax, InstallationError

PORT = 8123
GREETINGS = ("Hello!", "Good morning!", "Hi there!", "Good evening!")


def main() -> None:
    """Start the cluster, talk to it, and end it."""
    try:
        from langchain_gemma_jax.scale.ray import app
    except InstallationError as error:
        print(error)
        return
    import ray
    from ray import serve

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": PORT})
        serve.run(app({"model": "sprout-s", "replicas": 2, "max_context": 256}))
        model = ChatGemmaJax(server=f"http://127.0.0.1:{PORT}", max_tokens=12, temperature=0)
        for greeting in GREETINGS:
            messages = [HumanMessage(greeting)]
            first = model.invoke(messages)
            second = model.invoke([*messages, first, HumanMessage("Who are you?")])
            if used := second.usage_metadata:
                reused = used["input_token_details"].get("cache_read", 0)
                print(f"{greeting} -> {second.text}  ({reused} of {used['input_tokens']} tokens reused)")
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()

"""One replica: the engine of a process, ready before the first call, and the app that answers."""

from __future__ import annotations

from langchain_gemma_jax.errors import ClosedError
from langchain_gemma_jax.scale.plan import DeploymentPlan
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.app import GemmaJaxApp
from langchain_gemma_jax.server.http.api_keys import read_keys
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.readiness import Readiness


class Replica:
    """The engine of this process for one model. The constructor returns when weights and programs are loaded."""

    def __init__(self, plan: DeploymentPlan) -> None:
        """Load the model and warm up.

        Raises:
            GemmaJaxError: the model cannot be loaded, or a setting is not possible.
        """
        from langchain_gemma_jax.engine.api.process import configure

        keys = read_keys(plan.api_key_file) if plan.api_key_file else None
        places = {name: path for name in ("prefix_folder", "prefix_key_file") if (path := getattr(plan, name))}
        settings = {} if plan.max_context is None else {"max_context": plan.max_context}
        configure(max_waiting=max(1, plan.ongoing), **settings, **places)
        models = (plan.named_model,)
        readiness = Readiness(models, warmup=plan.warmup, max_context=plan.max_context)
        readiness.make_ready()
        limits = ServerLimits(call_s=plan.call_s, drain_s=plan.drain_s)
        self.app = GemmaJaxApp(ServedModels(models), keys, limits, readiness)

    def check(self) -> None:
        """Check that the engine can take calls.

        Raises:
            ClosedError: the engine has ended.
        """
        from langchain_gemma_jax.engine.api.process import running_engine

        if running_engine() is None:
            raise ClosedError("The engine of this replica has ended: the replica has to be replaced.")

    def load(self) -> dict[str, float]:
        """Return the engine's load. This does not wait for the device."""
        from langchain_gemma_jax.engine.api.process import running_engine

        if (engine := running_engine()) is None:
            return {"running": 0.0, "waiting": 0.0, "oldest_wait_s": 0.0}
        report = engine.report()
        return {
            "running": float(report.running),
            "waiting": float(report.waiting),
            "oldest_wait_s": report.oldest_wait_s,
        }

    def close(self) -> None:
        """Close the engine, before the process ends."""
        from langchain_gemma_jax.engine.api.process import running_engine

        if (engine := running_engine()) is not None:
            engine.close(5)

"""The files in deploy/ are what Kubernetes and its extensions take, and what the package does.

Kubernetes' own objects are held to its schemas, those of KEDA and of Prometheus' operator to models of their CRDs, and
Ray's application to Ray's schema, where packages that have them are installed: kubernetes-validate,
cloudcoil-models-keda, cloudcoil-models-prometheus-operator, ray[serve]. No package has the CRDs of RayService,
InferencePool and LeaderWorkerSet: ``WRITTEN_HERE`` has the documented fields that are used.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from langchain_gemma_jax.cli.command import parser
from langchain_gemma_jax.observe.metrics.families import families
from langchain_gemma_jax.observe.metrics.vllm_names import vllm_families
from langchain_gemma_jax.scale.hosts.group import TOGETHER, GroupPlan
from langchain_gemma_jax.scale.plan import DeploymentPlan
from langchain_gemma_jax.server import running
from langchain_gemma_jax.server.pages import PATHS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deploy" / "kubernetes"
KUBERNETES = "1.37"
OF_KUBERNETES = {"Deployment", "Service", "ServiceAccount", "PodDisruptionBudget", "PersistentVolumeClaim", "Job"}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
LABELS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}


def an_object(required: str, **properties: Any) -> dict[str, Any]:
    """The schema of an object that has these fields, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


GROUP = {
    "rayStartParams": {"type": "object", "additionalProperties": {"type": "string"}},
    "template": {"type": "object"},
}
WHOLE = {"type": "integer", "minimum": 0}
WRITTEN_HERE = {
    "RayService": an_object(
        "serveConfigV2 rayClusterConfig",
        serveConfigV2={"type": "string"},
        rayClusterDeletionDelaySeconds=WHOLE,
        rayClusterConfig=an_object(
            "headGroupSpec",
            rayVersion={"type": "string"},
            authOptions=an_object("mode", mode={"enum": ["token", "disabled"]}),
            headGroupSpec=an_object("rayStartParams template", **GROUP),
            workerGroupSpecs={
                "type": "array",
                "items": an_object(
                    "groupName rayStartParams template",
                    groupName={"type": "string"},
                    replicas=WHOLE,
                    minReplicas=WHOLE,
                    maxReplicas=WHOLE,
                    **GROUP,
                ),
            },
        ),
    ),
    "LeaderWorkerSet": an_object(
        "leaderWorkerTemplate",
        replicas=WHOLE,
        startupPolicy={"enum": ["LeaderCreated", "LeaderReady"]},
        rolloutStrategy=an_object(
            "type",
            type={"enum": ["RollingUpdate"]},
            rollingUpdateConfiguration=an_object("", maxUnavailable=WHOLE, maxSurge=WHOLE),
        ),
        leaderWorkerTemplate=an_object(
            "workerTemplate",
            size={"type": "integer", "minimum": 1},
            restartPolicy={"enum": ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"]},
            leaderTemplate={"type": "object"},
            workerTemplate={"type": "object"},
        ),
    ),
    "InferencePool": an_object(
        "selector targetPorts endpointPickerRef",
        selector=an_object("matchLabels", matchLabels=LABELS),
        targetPorts={"type": "array", "minItems": 1, "maxItems": 8, "items": an_object("number", number=PORT)},
        endpointPickerRef=an_object(
            "name",
            group={"type": "string"},
            kind={"type": "string"},
            name={"type": "string", "minLength": 1},
            port=an_object("number", number=PORT),
            failureMode={"enum": ["FailOpen", "FailClose"]},
        ),
    ),
}


def documents() -> list[dict[str, Any]]:
    """Every object of the folder but values of charts."""
    files = sorted(path for path in FOLDER.glob("*.yaml") if "values" not in path.name)
    return [each for path in files for each in yaml.safe_load_all(path.read_text())]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = (each for each in documents() if each["kind"] == kind)
    return found


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """The pods that are made, by who makes them."""
    for kind in ("Deployment", "Job"):
        yield kind, of_kind(kind)["spec"]["template"]
    cluster = of_kind("RayService")["spec"]["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        yield "RayService", group["template"]
    yield from (("LeaderWorkerSet", template) for template in hosts())


def hosts() -> tuple[dict[str, Any], dict[str, Any]]:
    """The pods of a group of hosts: the leader's, and the followers'."""
    group = of_kind("LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    return group["leaderTemplate"], group["workerTemplate"]


def values(tree: Any, name: str) -> Iterator[Any]:
    """Everything in a tree that is called so."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == name:
                yield value
            yield from values(value, name)
    elif isinstance(tree, list):
        for each in tree:
            yield from values(each, name)


def quietly(module: str) -> Any:
    """A package, without the warnings of its import; skipped if it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ImportError:
            pytest.skip(f"{module} is not installed")


def test_every_object_is_checked_by_something():
    kinds = [each["kind"] for each in documents()]
    others = {"ScaledObject", "PodMonitor", "PrometheusRule", *WRITTEN_HERE}
    assert set(kinds) == OF_KUBERNETES | others
    assert len(kinds) == len(set(kinds))


def test_kubernetes_takes_them():
    validate = quietly("kubernetes_validate").validate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in documents():
            if each["kind"] in OF_KUBERNETES:
                validate(each, KUBERNETES, strict=True)
        for maker, template in pods():
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": maker.lower()}, "spec": template["spec"]}
            validate(pod, KUBERNETES, strict=True)
        with pytest.raises(Exception, match="tolerate"):
            validate(of_kind("Deployment") | {"tolerate": 1}, KUBERNETES, strict=True)


@pytest.mark.parametrize(
    ("module", "kinds"),
    [
        ("cloudcoil.models.keda.v1alpha1", ["ScaledObject"]),
        ("cloudcoil.models.prometheus_operator.v1", ["PodMonitor", "PrometheusRule"]),
    ],
)
def test_the_operators_take_them(module, kinds):
    models = quietly(module)
    for kind in kinds:
        document = of_kind(kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = getattr(models, kind).model_validate(document)
            back = made.model_dump(by_alias=True, exclude_unset=True, mode="json")
        # What a model does not know, it drops: so all has to come back.
        assert without_nothing(back["spec"]) == without_nothing(document["spec"])


def without_nothing(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: without_nothing(value) for key, value in tree.items() if value is not None}
    return [without_nothing(each) for each in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize("kind", WRITTEN_HERE)
def test_the_documented_fields_are_used_as_documented(kind):
    spec = of_kind(kind)["spec"]
    jsonschema.validate(spec, WRITTEN_HERE[kind])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spec | {"another": 1}, WRITTEN_HERE[kind])


def test_ray_takes_its_application_and_so_do_we():
    spec = of_kind("RayService")["spec"]
    config = yaml.safe_load(spec["serveConfigV2"])
    for application in config["applications"]:
        assert application["import_path"] == "langchain_gemma_jax.scale.ray:app"
        plan = DeploymentPlan.read(application["args"])
        for maker, template in pods():
            if maker == "RayService":
                assert template["spec"]["terminationGracePeriodSeconds"] >= plan.drain_s
                room = float(template["spec"]["containers"][0]["resources"]["requests"]["cpu"])
                assert plan.cpus < room, "Ray's own processes need some of it"
        assert spec["rayClusterDeletionDelaySeconds"] >= plan.drain_s
    pins = dict(line.split("==") for line in pinned())
    assert spec["rayClusterConfig"]["rayVersion"] == pins["ray"]
    quietly("ray.serve.schema").ServeDeploySchema.model_validate(config)


def test_nobody_is_root_and_nothing_is_written_where_it_should_not_be():
    for maker, template in pods():
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["automountServiceAccountToken"] is False
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"] is True
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["capabilities"]["drop"] == ["ALL"]
            is_folders = container["name"] == "folders"
            assert ("runAsUser" in rights, "add" in rights["capabilities"]) == (is_folders, is_folders)
            assert "limits" in container["resources"]
        # Programs are code: who serves can read them, and only the job writes them.
        stores = [mount for mount in values(template, "volumeMounts") for mount in mount if mount["name"] == "store"]
        claims = [claim.get("readOnly", False) for claim in values(template, "persistentVolumeClaim")]
        assert {mount.get("readOnly", False) for mount in stores} == {maker != "Job"} == set(claims)
        assert ("fsGroup" in spec["securityContext"]) == (maker != "Job")


def test_the_server_is_asked_for_what_it_does():
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    asked = parser().parse_args(["serve", *container["args"]])
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[name]["httpGet"]["path"] in PATHS
        assert container[name]["httpGet"]["port"] == container["ports"][0]["name"]
    assert container["ports"][0]["containerPort"] == asked.port
    waits = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert waits + asked.drain + 2 * running.AFTER_DRAIN <= pod["terminationGracePeriodSeconds"]
    assert asked.open_metrics, "who scrapes has no key"
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert mounted[str(Path(asked.api_key_file).parent)] == "keys"
    assert [secret["defaultMode"] for secret in values(pod, "secret")] == [0o440]
    job = of_kind("Job")["spec"]["template"]["spec"]["containers"][0]
    assert parser().parse_args(job["command"][1:]).model == asked.models[0]
    places = [
        {each["name"]: each.get("value") for each in env if each["name"] in {"GEMMA_JAX_CACHE_DIR", "HF_HOME"}}
        for _, template in pods()
        for env in values(template, "env")
    ]
    assert all(each == places[0] for each in places)


def test_a_group_of_hosts_is_started_as_one():
    injected = {"LWS_GROUP_SIZE": "2", "LWS_LEADER_ADDRESS": "gemma-jax-hosts-0.gemma-jax-hosts"}
    leads, follows = (template["spec"]["containers"][0] for template in hosts())
    assert leads["args"] == follows["args"], "which one it is, its number says"
    for number, container in enumerate((leads, follows)):
        text = "\0".join(container["args"])
        for name, value in (injected | {"LWS_WORKER_INDEX": str(number)}).items():
            text = text.replace(f"$({name})", value)
        asked = parser().parse_args(["serve", *text.split("\0")])
        plan = GroupPlan(asked.hosts, asked.host_number, asked.leader, b"")
        assert (plan.hosts, plan.number) == (2, number)
        mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert mounted[str(Path(asked.hosts_key_file).parent)] == "keys"
    open_ports = {each["name"]: each["containerPort"] for each in leads["ports"]}
    assert open_ports == {"http": asked.port, "jax": plan.address[1], "group": plan.address[1] + 1}
    group = of_kind("LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    assert group["restartPolicy"] == "RecreateGroupOnPodRestart", "the end of one is the end of all"
    comes = leads["startupProbe"]["periodSeconds"] * leads["startupProbe"]["failureThreshold"]
    assert comes > TOGETHER
    waits = leads["lifecycle"]["preStop"]["sleep"]["seconds"] + asked.drain + 2 * running.AFTER_DRAIN
    served = of_kind("Service")["spec"]["selector"]
    assert hosts()[0]["metadata"]["labels"] == served != hosts()[1]["metadata"]["labels"]
    assert all(waits <= template["spec"]["terminationGracePeriodSeconds"] for template in hosts())


def test_selectors_find_the_server_and_nothing_else():
    labels = of_kind("Deployment")["spec"]["template"]["metadata"]["labels"]
    found = [*values(documents(), "matchLabels"), of_kind("Service")["spec"]["selector"]]
    found.append(gateway()["router"]["modelServers"]["matchLabels"])
    assert len(found) == 6
    assert all(each == labels for each in found)
    assert of_kind("Job")["spec"]["template"]["metadata"]["labels"] != labels
    assert of_kind("ScaledObject")["spec"]["scaleTargetRef"]["name"] == of_kind("Deployment")["metadata"]["name"]


def test_what_is_watched_is_there():
    files = ROOT / "langchain_gemma_jax" / "observe" / "files"
    rules = [yaml.safe_load((files / f"prometheus-{name}.yaml").read_text()) for name in ("rules", "objectives")]
    assert of_kind("PrometheusRule")["spec"] == {"groups": [group for each in rules for group in each["groups"]]}, (
        "run: python scripts/objectives.py"
    )
    monitor = of_kind("PodMonitor")
    job = of_kind("Deployment")["spec"]["template"]["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    assert {each["path"] for each in monitor["spec"]["podMetricsEndpoints"]} <= set(PATHS)
    known = {each.name for each in (*families(None), *vllm_families(None))}
    triggers = of_kind("ScaledObject")["spec"]["triggers"]
    for trigger in triggers:
        name, said = re.fullmatch(r'sum\(([\w:]+)\{job="([\w-]+)"\}\)', trigger["metadata"]["query"]).groups()
        assert name in known
        assert said == job
    assert any("vllm:num_requests_waiting" in each["metadata"]["query"] for each in triggers)


def gateway() -> Mapping[str, Any]:
    return yaml.safe_load((FOLDER / "gateway-values.yaml").read_text())


def test_the_endpoint_picker_is_told_of_this_server():
    router = gateway()["router"]
    assert router["modelServers"]["targetPorts"] == of_kind("InferencePool")["spec"]["targetPorts"]
    assert router["epp"]["metricsDataSource"]["path"] in PATHS
    config = yaml.safe_load(router["epp"]["pluginsCustomConfig"][router["epp"]["pluginsConfigFile"]])
    declared = {plugin.get("name", plugin["type"]) for plugin in config["plugins"]}
    assert {each["pluginRef"] for each in config["schedulingProfiles"][0]["plugins"]} <= declared
    assert "x-session-id" in values(config, "header")


def pinned() -> list[str]:
    lines = (ROOT / "deploy" / "constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_the_image_is_pinned_and_is_of_no_root():
    words = [line.split() for line in _lines_of_the_image()]
    arguments = dict(line[1].split("=", 1) for line in words if line[0] == "ARG")
    assert re.search(r":\d+\.\d+\.\d+-", arguments["PYTHON"]) or "@sha256:" in arguments["PYTHON"]
    assert [line[1] for line in words if line[0] == "FROM"] == ["${PYTHON}"] * 2
    assert [line[1] for line in words if line[0] == "USER"][-1] == "10001:10001"
    for line in words:
        if line[0] == "COPY":
            sources = [arguments["FILES"] if source == "${FILES}" else source for source in line[1:-1]]
            assert all((ROOT / source).exists() for source in sources), line
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pins = dict(line.split("==") for line in pinned())
    assert pinned() == [f"{name}=={version}" for name, version in sorted(pins.items())]
    for text in (*project["dependencies"], *extras["serve"], *extras["metrics"], *extras["ray"]):
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text
    assert set(arguments["EXTRAS"].split(",")) <= set(extras)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="only Linux on x86 has these classes")
def test_the_image_is_warm(tmp_path):
    """Run the image's own command here: a later process compiles nothing."""
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor is of no class")
    words = [line.split(maxsplit=1) for line in _lines_of_the_image()]
    arguments = dict(rest.split("=", 1) for word, rest in words if word == "ARG")
    settings = dict(pair.split("=", 1) for word, rest in words if word == "ENV" for pair in rest.split())
    agent, cache = tmp_path / "agent", tmp_path / "cache"
    agent.mkdir()
    (agent / "tools.py").write_text('def add(a: int, b: int) -> int:\n    """Add two numbers."""\n    return a + b\n')
    arguments |= {"MODEL": "sprout-s", "CORES": "1"}
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "GEMMA_JAX_"))}
    environment = plain | {
        name: re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], value) for name, value in settings.items()
    }
    environment |= {"GEMMA_JAX_CACHE_DIR": str(cache), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (command,) = [rest for word, rest in words if word == "RUN" and "gemma-jax warmup" in rest]
    command = command.replace("cd /agent", f"cd {agent}")
    said = subprocess.run(
        ["sh", "-c", command], env=environment | arguments, check=True, capture_output=True, text=True
    )
    assert "programs, " in said.stdout
    assert "1 tools are " in said.stdout
    code = """
import os
os.sched_setaffinity(0, {0})
from langchain_gemma_jax import ChatGemmaJax, engine
print(ChatGemmaJax(max_tokens=4).invoke("Hello").content and engine().report().compiles)
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "0\n"


def _lines_of_the_image() -> list[str]:
    text = (ROOT / "deploy" / "Containerfile").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


# For cards.

GPU = FOLDER / "gpu"


def patched(tree: Any, patch: Any) -> Any:
    """A strategic merge, as Kubernetes does it: fields by name, containers, variables and mounts by theirs."""
    if isinstance(tree, dict) and isinstance(patch, dict):
        return {
            name: patched(tree.get(name), patch[name]) if name in patch else tree[name] for name in {**tree, **patch}
        }
    if isinstance(tree, list) and isinstance(patch, list) and all("name" in each for each in patch):
        known = {each["name"]: each for each in patch}
        merged = [patched(each, known.pop(each["name"])) if each["name"] in known else each for each in tree]
        return [*merged, *known.values()]
    return patch


def test_a_card_is_asked_for_and_left_to_jax_as_it_should_be():
    patch = yaml.safe_load((GPU / "server.yaml").read_text())
    found = patched(of_kind("Deployment"), patch)
    before, (container,) = of_kind("Deployment"), found["spec"]["template"]["spec"]["containers"]
    quietly("kubernetes_validate").validate(found, KUBERNETES, strict=True)
    (server,) = before["spec"]["template"]["spec"]["containers"]
    assert container["args"] == server["args"], "all else stays"
    assert container["securityContext"] == server["securityContext"]
    resources = container["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert set(environment) >= {"GEMMA_JAX_CACHE_DIR", "XLA_CLIENT_MEM_FRACTION"}
    assert 0.75 < float(environment["XLA_CLIENT_MEM_FRACTION"]) < 1


def test_what_cards_say_is_scraped_and_scales():
    monitor, rules = yaml.safe_load_all((GPU / "dcgm.yaml").read_text())
    scaled = yaml.safe_load((GPU / "scaling.yaml").read_text())
    for module, document in (
        ("cloudcoil.models.prometheus_operator.v1", monitor),
        ("cloudcoil.models.prometheus_operator.v1", rules),
        ("cloudcoil.models.keda.v1alpha1", scaled),
    ):
        models = quietly(module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = getattr(models, document["kind"]).model_validate(document)
            back = made.model_dump(by_alias=True, exclude_unset=True, mode="json")
        assert without_nothing(back["spec"]) == without_nothing(document["spec"])
    assert scaled["metadata"]["name"] == of_kind("ScaledObject")["metadata"]["name"], "it stands in its place"
    known = {
        f"{each.name}_total" if each.kind == "counter" else each.name
        for each in (*families(None), *vllm_families(None))
    }
    for trigger in scaled["spec"]["triggers"]:
        asked = re.findall(r"\b(?:gemma_jax_\w+|vllm:\w+|DCGM_FI_\w+)", trigger["metadata"]["query"])
        assert all(name in known or name.startswith("DCGM_FI_") for name in asked)
        assert asked
    pages = (ROOT / "docs" / "kubernetes.md").read_text()
    assert all(
        rule["annotations"]["runbook"] == "docs/kubernetes.md#gpus" for rule in rules["spec"]["groups"][0]["rules"]
    )
    assert "## GPUs" in pages

"""The facts on a model that judges pictures, in its folder: ShieldGemma 2 says yes or no to a picture and a policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from langchain_gemma_jax.models.checkpoint.read_template import read_template
from langchain_gemma_jax.models.configuration.chat_format import PictureJudge
from langchain_gemma_jax.models.configuration.config_fields import Fields
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import read_object

KIND = "shieldgemma2"
_CONFIG = "config.json"
_ANSWERS = {"yes_token_index": 10_784, "no_token_index": 3_771}
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")  # the newest last


def picture_judge_in(folder: Path) -> PictureJudge | None:
    """Return the facts. None: the model in the folder is of another kind.

    Raises:
        CheckpointError, ConfigError: a file is wrong.
    """
    if not (folder / _CONFIG).is_file():
        return None
    fields = Fields(read_object(real_file(folder, _CONFIG), folder / _CONFIG), {}, str(folder / _CONFIG))
    if fields.raw.get("model_type") != KIND:
        return None
    yes, no = (fields.token_ids(name, (default,))[0] for name, default in _ANSWERS.items())
    return PictureJudge(yes, no, _policies(folder), read_template(folder))


def _policies(folder: Path) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in _PROCESSORS:
        if (folder / name).is_file():
            shown = folder / name
            fields = Fields(read_object(real_file(folder, name), shown), {}, str(shown))
            for policy, text in fields.table("policy_definitions").items():
                if not isinstance(text, str):
                    raise fields.error(f"the policy {policy!r}", "a text", text)
                found[policy] = text
    return found

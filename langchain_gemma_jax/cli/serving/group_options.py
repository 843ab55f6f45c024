"""The options of a server that runs on several hosts: the group, and the place of this process in it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from langchain_gemma_jax.cli.terminal.arguments import Parser, count, count_from_0
from langchain_gemma_jax.errors import InputError

if TYPE_CHECKING:
    from langchain_gemma_jax.scale.hosts.group import GroupPlan


def add_group(parser: Parser) -> None:
    """Add the options."""
    group = parser.add_argument_group("one model on the devices of several hosts: the same command on each")
    group.add_argument(
        "--hosts", type=count, metavar="COUNT", help="the number of hosts, each with a process of its own"
    )
    group.add_argument("--host-number", type=count_from_0, metavar="N", help="0 leads and serves; the others follow it")
    group.add_argument("--leader", metavar="HOST:PORT", help="the address of host 0; it also uses the next port")
    group.add_argument("--hosts-key-file", metavar="FILE", help="a file with a secret key, the same on each host")


def group_of(options: argparse.Namespace) -> GroupPlan | None:
    """Return the group that the options describe; None if they describe none.

    Raises:
        InputError: something is missing, or not possible.
    """
    from langchain_gemma_jax.private.key_file import read_key
    from langchain_gemma_jax.scale.hosts.group import GroupPlan

    given = {
        "--hosts": options.hosts,
        "--host-number": options.host_number,
        "--leader": options.leader,
        "--hosts-key-file": options.hosts_key_file,
    }
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        return None
    if missing:
        raise InputError(f"Several hosts: expected {', '.join(given)}; {', '.join(missing)} is missing.")
    plan = GroupPlan(options.hosts, options.host_number, options.leader, b"")
    key = read_key(options.hosts_key_file, "--hosts-key-file", "Make one, and give all hosts the same")
    return GroupPlan(plan.hosts, plan.number, plan.leader, key)

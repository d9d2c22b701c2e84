"""The clusters that a program names: every other task is a TensorFlow server in this process.

Nothing leaves the machine: each address that the program names becomes a free port of this host. A server has the
devices of its task, the GPUs among them emulated, and logs what it places (tensorflow/core/distributed_runtime/).
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from simplace.machine.machine import Task
from simplace.oracle.child.call_limit import Stopped
from simplace.oracle.child.devices import session_config
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.tensors import task_of
from simplace.oracle.child.tf_private import context, server_lib
from simplace.oracle.protocol import Request

_SCHEME = "grpc://"
_PORT, _SESSION_PORT = 2222, 2223  # of addresses that stand for others: an eager context is a server of its own
_HOW = "--devices, such as --devices ps=cpu:1+2xworker=cpu:1,gpu:2"

_CHOOSE = "Tasks that differ are given like --devices ps=cpu:1+2xworker=cpu:1,gpu:2."

Address = tuple[str, int, str]  # job, index, "host:port"


class NoSuchCluster(Exception):  # noqa: N818  (what the program's author reads)
    """Report a cluster, or a task of one, whose devices neither the program nor the user describes."""


class Clusters:
    """Start the tasks that a program relies on, and list the devices that each of them sees."""

    def __init__(self, request: Request, recorder: Recorder) -> None:
        self._machine = request.machine
        self._plugin = request.plugin
        self._begins_joined = bool(self._machine.tasks) and (self._machine.connected or request.mode != "script")
        self._recorder = recorder
        self._ports: dict[str, str] = {}  # by the address that the program names
        self._held: list[socket.socket] = []  # the ports, until the process ends
        self._known: list[Any] = []  # ClusterDefs, the newest last
        self._servers: dict[str, Any] = {}  # by address; one that ends takes its devices along
        self._joined: Any = None  # the ServerDef that the eager context has joined

    def watch(self) -> None:
        """Intercept all servers and connections from now on; set TF_CONFIG as a cluster's environment would."""
        if self._machine.tasks:
            os.environ.setdefault("TF_CONFIG", json.dumps(_make_tf_config(self._machine.tasks)))
        # Each op on another task is then over, and logged, when the call of it returns.
        os.environ["TF_ENABLE_EAGER_CLIENT_STREAMING_ENQUEUE"] = "False"
        self._watch_servers()
        self._watch_connections()

    @property
    def are_joined(self) -> bool:
        """Return whether functions may be placed on other tasks than the program's own."""
        return self._joined is not None

    def session_target(self, target: str | bytes) -> str:
        """Start all tasks of a session's cluster and return the session's target here; "" for this process alone."""
        text = target.decode() if isinstance(target, bytes) else target or ""
        if not text:
            return self._own_master() if self._begins_joined else ""
        if not text.startswith(_SCHEME):
            return text
        address = self._ports.get(text.removeprefix(_SCHEME), text.removeprefix(_SCHEME))
        for cluster in reversed(self._known):
            if any(address == each for _, _, each in _list_tasks(cluster)):
                self._start(cluster)
                return _SCHEME + address
        if self._machine.tasks:
            return self._own_master()
        raise NoSuchCluster(
            f"the session's target {text} is not a task of a cluster that the program makes; say which tasks there are "
            f"with {_HOW}"
        )

    def seen_from(self, device: str) -> list[str]:
        """List the devices that a device's task sees, its own first; [] where there is no cluster."""
        if self._joined is None:
            return []
        home = task_of(device)
        filters = self._filters(home)
        names = [str(name) for name in context.context()._context_devices]
        own = [name for name in names if task_of(name) == home]
        return own + [name for name in names if task_of(name) != home and _passes_filter(name, filters)]

    def _watch_servers(self) -> None:
        patch_method(server_lib, "_make_server_def", self._make_local)
        patch_method(server_lib.Server, "join", self._stop_at_join)

    def _watch_connections(self) -> None:
        for name in ("set_server_def", "update_server_def"):
            patch_method(context.Context, name, self._joining)
        patch_method(context.Context, "enable_collective_ops", self._among_workers)
        if self._begins_joined:
            patch_method(context.Context, "ensure_initialized", self._initialize_joined)

    def _make_local(self, make: Any) -> Any:
        def make_local(*args: Any, **kwargs: Any) -> Any:
            return self._adopted(make(*args, **kwargs))

        return make_local

    def _stop_at_join(self, _: Any) -> Any:
        def join(server: Any) -> None:
            definition = server.server_def
            self._recorder.remark(
                f"The program waits for others as /job:{definition.job_name}/task:{definition.task_index}, so it was "
                "ended there: run it as the task that builds the graph."
            )
            raise Stopped("the program waits for other tasks")

        return join

    def _initialize_joined(self, initialize: Any) -> Any:
        def initialize_joined(ctx: Any) -> None:
            if not ctx._initialized and ctx._server_def is None:
                ctx._server_def = self._join(self._own_definition(ctx.config))
            initialize(ctx)

        return initialize_joined

    def _joining(self, method: Any) -> Any:
        def joined(ctx: Any, server_def: Any, *args: Any, **kwargs: Any) -> Any:
            return method(ctx, self._join(server_def) if server_def else server_def, *args, **kwargs)

        return joined

    def _among_workers(self, method: Any) -> Any:
        """Keep a worker of MultiWorkerMirroredStrategy on this machine, alone: its server would wait for the others."""

        def enabled(ctx: Any, server_def: Any) -> Any:
            others = sum(1 for _ in _list_tasks(server_def.cluster)) - 1
            if others > 0:
                raise NoSuchCluster(
                    f"/job:{server_def.job_name}/task:{server_def.task_index} waits for {others} more of its cluster, "
                    "each of which would have to run this program in a process of its own; run it with a TF_CONFIG "
                    "that names this worker alone"
                )
            made = tf.train.ServerDef()
            made.CopyFrom(server_def)
            self._localize(made.cluster)
            made.port = 0
            return method(ctx, made)

        return enabled

    def _join(self, server_def: Any) -> Any:
        """Rewrite the definition of the eager context's own server, and start all tasks but that one."""
        made = tf.train.ServerDef()
        made.CopyFrom(server_def)
        self._localize(made.cluster)
        own = made.cluster.job[[job.name for job in made.cluster.job].index(made.job_name)].tasks[made.task_index]
        self._start(made.cluster, but=own)
        self._joined = made
        return made

    def _adopted(self, server_def: Any) -> Any:
        """Rewrite the definition of a server that the program makes, with the devices of its task."""
        self._localize(server_def.cluster)
        job, index = server_def.job_name, server_def.task_index
        machine = self._machine.of_task(job, index)
        if machine is None:
            there = ", ".join(task.name for task in self._machine.tasks)
            raise NoSuchCluster(
                f"the program's cluster has the task /job:{job}/task:{index}, which --devices does not describe; it "
                f"describes {there}"
            )
        config, _ = session_config(server_def.default_session_config, machine, self._plugin)
        server_def.default_session_config.CopyFrom(config)
        for each_job, each_index, address in _list_tasks(server_def.cluster):
            if (each_job, each_index) == (job, index):
                self._servers.setdefault(address, None)
        self._known.append(server_def.cluster)
        return server_def

    def _localize(self, cluster: Any) -> None:
        for job in cluster.job:
            for index in list(job.tasks):
                job.tasks[index] = self._local(job.tasks[index])

    def _local(self, address: str) -> str:
        if address in self._ports.values():
            return address
        if address.endswith(":0"):  # the program asks for any free port
            made = self._reserve_address()
            self._ports[made] = made
            return made
        if address not in self._ports:
            self._ports[address] = self._reserve_address()
        return self._ports[address]

    def _reserve_address(self) -> str:
        """Return a free port of this host that no other process is given before a server takes it.

        A socket that does not listen keeps it; a server, which sets SO_REUSEADDR as well, may still bind to it.
        """
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("localhost", 0))
        self._held.append(held)
        return f"localhost:{held.getsockname()[1]}"

    def _start(self, cluster: Any, but: str = "") -> None:
        """Start the tasks of a cluster that nobody has started, except the one at the address `but`."""
        missing = [task for task in _list_tasks(cluster) if task[2] not in self._servers and task[2] != but]
        for job, index, address in missing:
            definition = tf.train.ServerDef(cluster=cluster, job_name=job, task_index=index, protocol="grpc")
            self._servers[address] = server_lib.Server(definition)
        if missing and not self._machine.tasks:  # else the user knows
            there = "; ".join(self._described(*task) for task in missing)
            self._recorder.remark(f"The rest of the program's cluster is emulated: {there}. {_CHOOSE}")

    def _described(self, job: str, index: int, _: str) -> str:
        machine = self._machine.of_task(job, index)
        assert machine is not None, "a server was made for it"
        gpus = f",gpu:{machine.logical_gpus}" if machine.logical_gpus else ""
        return f"/job:{job}/task:{index} with cpu:{machine.cpus}{gpus}"

    def _own_master(self) -> str:
        """Return the target of the first task of the user's cluster."""
        definition = self._own_definition(tf.compat.v1.ConfigProto(), _SESSION_PORT)
        self._localize(definition.cluster)
        self._start(definition.cluster)
        first = self._machine.tasks[0]
        address = next(
            a for job, index, a in _list_tasks(definition.cluster) if (job, index) == (first.job, first.index)
        )
        return _SCHEME + address

    def _own_definition(self, config: Any, port: int = _PORT) -> Any:
        """Define the cluster that the user describes, and the program as its first task."""
        first = self._machine.tasks[0]
        spec: dict[str, dict[int, str]] = {}
        for task in self._machine.tasks:
            spec.setdefault(task.job, {})[task.index] = _make_address(task, port)
        return tf.train.ServerDef(
            cluster=tf.train.ClusterSpec(spec).as_cluster_def(),
            job_name=first.job,
            task_index=first.index,
            protocol="grpc",
            default_session_config=config,
        )

    def _filters(self, home: str) -> list[str]:
        for job in self._joined.cluster_device_filters.jobs:
            for index, task in job.tasks.items():
                if home == f"/job:{job.name}/replica:0/task:{index}":
                    return list(task.device_filters)
        return []


def _make_tf_config(tasks: tuple[Task, ...]) -> dict[str, Any]:
    """Return the value of TF_CONFIG: which tasks there are, and that the program is the first of them."""
    jobs: dict[str, list[str]] = {}
    for task in tasks:
        jobs.setdefault(task.job, []).append(_make_address(task))
    return {"cluster": jobs, "task": {"type": tasks[0].job, "index": tasks[0].index}}


def _make_address(task: Task, port: int = _PORT) -> str:
    return f"{task.job}{task.index}:{port}"


def _list_tasks(cluster: Any) -> Iterator[Address]:
    for job in cluster.job:
        for index in sorted(job.tasks):
            yield job.name, index, job.tasks[index]


def _passes_filter(name: str, filters: list[str]) -> bool:
    """Return whether a device matches a filter, a partial device name; without filters every device does."""
    parts = name.split("/")
    return not filters or any(all(part in parts for part in each.split("/") if part) for each in filters)

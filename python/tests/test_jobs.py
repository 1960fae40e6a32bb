"""The Job of Kubernetes that runs a sweep in shards (packaging/sweep-job.yaml)."""

import os
import shlex
import subprocess

import pytest
from conftest import ROOT


def test_the_job_runs_every_shard_of_one_sweep(command, tmp_path):
    yaml = pytest.importorskip("yaml", reason="NOT RUN: pyyaml is not installed")
    job = yaml.safe_load((ROOT / "packaging/sweep-job.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed" and spec["parallelism"] == spec["completions"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}

    program = tmp_path / "headstart"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    lines = []
    for index in range(spec["completions"]):
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "JOB_COMPLETION_INDEX": str(index)}
        words = [*container["command"], *container["args"]]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        lines.append(done.stdout.splitlines())
    shards = [line[line.index("--shard") + 1] for line in lines]
    assert shards == [f"{number}/{len(lines)}" for number in range(1, len(lines) + 1)]
    assert len({shlex.join(line[: line.index("--shard")]) for line in lines}) == 1, "one sweep"
    # The command takes the line: it refuses only the size of a point that is as large as this.
    done = command(*lines[0], "--duration", "1000000 s")
    assert done.returncode == 2 and "--large" in done.stderr, done.stderr

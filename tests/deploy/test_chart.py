"""The Helm chart: Helm accepts it, its manifests are valid for Kubernetes, and a server runs by the environment that it sets.

The group `deploy` installs Helm; METASTORE_TEST_HELM names another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.servers import ROOT, free_port, serving

yaml = pytest.importorskip("yaml", reason="pip install --group deploy")

CHART = ROOT / "deploy" / "helm" / "metastore"
HELM = os.environ.get("METASTORE_TEST_HELM") or shutil.which("helm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
KUBERNETES = ("1.25.0", "1.31.0", "1.36.0")
NEEDED = ("settings.authentication=users", "settings.warehouse=s3a://bucket/", "secrets.db.name=database", "secrets.db.key=url")
ALL = (
    "settings.authentication={users,jwt}", "settings.workers=1", "settings.max_message_size=104857600",
    "settings.proxy_users.trino.hosts=10.0.0.0/8",
    "settings.jwt_issuers={https://issuer.example.org}", "tls.secretName=certificate", "tls.clientCa=true",
    "serviceMonitor.enabled=true", "serviceMonitor.labels.release=prometheus", "serviceMonitor.basicAuthSecret=prometheus",
    "secrets.filesystem_options.name=s3", "secrets.filesystem_options.key=options", "service.type=LoadBalancer",
    "service.annotations.a=b", "serviceAccount.annotations.role=x", "podAnnotations.a=b", "podLabels.team=data",
    "nodeSelector.disk=ssd", "tolerations[0].key=a", "tolerations[0].operator=Exists", "extraEnv[0].name=HMS", "extraEnv[0].value=b",
    "extraVolumes[0].name=keytab", "extraVolumes[0].secret.secretName=keytab", "extraVolumeMounts[0].name=keytab",
    "extraVolumeMounts[0].mountPath=/keytab", "imagePullSecrets[0].name=registry", "replicas=3",
)  # fmt: skip

pytestmark = pytest.mark.skipif(HELM is None, reason="pip install --group deploy")


def helm(*arguments: str, values: tuple[str, ...], fails: bool = False) -> str:
    """Run Helm; return its output, or with `fails` its error message about the values."""
    assert HELM is not None
    options = [part for value in values for part in ("--set", value)]
    done = subprocess.run([HELM, *arguments, *options], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def manifests(*values: str, release: str = "hms", version: str = KUBERNETES[1]) -> dict[str, Any]:
    """Return the chart's objects by "kind name"."""
    text = helm("template", release, str(CHART), "--namespace", "data", "--kube-version", version, values=(*NEEDED, *values))
    return {f"{each['kind']} {each['metadata']['name']}": each for each in yaml.safe_load_all(text) if each}


def test_helm_finds_no_fault() -> None:
    for values in ((), ALL):
        helm("lint", str(CHART), "--strict", "--kube-version", KUBERNETES[1], values=(*NEEDED, *values))


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_manifests_are_those_of_kubernetes(version: str) -> None:
    check = pytest.importorskip("kubernetes_validate", reason="pip install --group deploy")
    for values in ((), ALL):
        made = manifests(*values, version=version)
        assert "Deployment hms" in made
        for each in made.values():
            if not each["apiVersion"].startswith("monitoring.coreos.com/"):  # a type of an operator, not of Kubernetes
                check.validate(each, version.rpartition(".")[0], strict=True)
    broken = manifests()["Deployment hms"]
    broken["spec"]["template"]["spec"]["containers"][0]["readinessProb"] = {}
    with pytest.raises(check.ValidationError):
        check.validate(broken, "1.31", strict=True)


def test_the_manifests_follow_the_values() -> None:
    plain, full = manifests(), manifests(*ALL)
    assert set(plain) == {"Deployment hms", "Service hms", "Service hms-admin", "ServiceAccount hms", "PodDisruptionBudget hms"}
    assert set(full) == {*plain, "ServiceMonitor hms"}
    assert "PodDisruptionBudget hms" not in manifests("replicas=1")
    pod = full["Deployment hms"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["enableServiceLinks"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {probe["httpGet"]["scheme"] for name, probe in container.items() if name.endswith("Probe")} == {"HTTPS"}
    variables = {each["name"]: each for each in container["env"]}
    assert variables["METASTORE_MAX_MESSAGE_SIZE"]["value"] == "104857600"
    assert variables["METASTORE_DB"]["valueFrom"]["secretKeyRef"] == {"name": "database", "key": "url"}
    assert pod["terminationGracePeriodSeconds"] > 10 + 30
    selector = full["ServiceMonitor hms"]["spec"]["selector"]["matchLabels"]
    chosen = [name for name, each in full.items() if name.startswith("Service ") and selector.items() <= each["metadata"]["labels"].items()]
    assert chosen == ["Service hms-admin"]
    assert (
        full["Deployment hms"]["spec"]["selector"]["matchLabels"].items()
        <= full["Deployment hms"]["spec"]["template"]["metadata"]["labels"].items()
    )


@pytest.mark.parametrize(
    ("left_out", "value", "said"),
    [
        ("settings.authentication", "", "settings.authentication is missing"),
        ("settings.warehouse", "", "a folder of the pod would go with it"),
        ("secrets.db", "", "secrets.db names the Secret"),
        ("", "settings.port=9090", "settings.port is the chart's own"),
        ("", "settings.db=postgresql://u:p@h/n", "db stands in settings and in secrets"),
        ("", "replica=3", "replica"),
        ("", "replicas=many", "replicas"),
        ("", "secrets.db.password=x", "password"),
    ],
)
def test_values_that_do_not_fit_are_refused(left_out: str, value: str, said: str) -> None:
    values = tuple(each for each in NEEDED if not left_out or not each.startswith(left_out))
    error = helm("template", "hms", str(CHART), "--kube-version", KUBERNETES[1], values=(*values, *([value] if value else ())), fails=True)
    assert said in error


def test_a_server_runs_by_the_environment_of_the_chart(tmp_path: Path) -> None:
    """Things that only a pod has are replaced: the address, the database, the folders."""
    (container,) = manifests("settings.workers=1", "settings.proxy_users.trino.hosts=127.0.0.1")["Deployment hms"]["spec"]["template"][
        "spec"
    ]["containers"]
    port = free_port()
    own = {"METASTORE_HOST": "127.0.0.1", "METASTORE_ADMIN_PORT": str(port), "METASTORE_DATA_DIRECTORY": str(tmp_path / "data")}
    variables = {each["name"]: each.get("value") for each in container["env"]} | own
    variables["METASTORE_DB"] = f"sqlite:///{tmp_path}/metastore.db"
    variables["METASTORE_WAREHOUSE"] = f"file:{tmp_path}/warehouse"
    with serving(home=tmp_path, variables=variables) as server:
        assert server.process.poll() is None
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = container[name]["httpGet"]
            assert probe["port"] == "admin"
            url = f"{probe['scheme'].lower()}://127.0.0.1:{port}{probe['path']}"
            assert urllib.request.urlopen(url, timeout=10).status == 200

"""Start OpenLDAP's server with a few people and groups, on a port of this machine, as the user who runs the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import ldap3

from tests.support.logins.certificates import Authority
from tests.support.servers.servers import free_port

SUFFIX = "dc=example,dc=org"
ADMIN = f"cn=admin,{SUFFIX}"
PASSWORD = "correct horse"
PROGRAM = shutil.which("slapd", path="/usr/sbin:/usr/lib/openldap:/usr/libexec:" + os.environ.get("PATH", ""))

_CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCertificateFile {certificate}
TLSCertificateKeyFile {certificate}
database mdb
suffix "{suffix}"
rootdn "{admin}"
rootpw "{password}"
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
"""


@dataclass(frozen=True)
class Directory:
    """A directory that answers. People: ann (analysts, staff), bob (staff), "o'hara, (jo)*" (no group), a guest whose entry is called
    ann too, and carl, whose entry has the common name root. A device has that common name too, and belongs to no person. All have the same
    password.
    """

    url: str
    secure_url: str
    ca: Path


@contextmanager
def directory() -> Iterator[Directory]:
    """Start a directory, yield it, and end it."""
    with tempfile.TemporaryDirectory() as folder, _running(Path(folder)) as started:  # another user can not enter pytest's own folders
        yield started


@contextmanager
def _running(folder: Path) -> Iterator[Directory]:
    assert PROGRAM is not None
    (folder / "data").mkdir(parents=True)
    authority = Authority(folder, "directory-authority")
    configuration = folder / "slapd.conf"
    configuration.write_text(
        _CONFIGURATION.format(folder=folder, certificate=authority.issue("directory"), suffix=SUFFIX, admin=ADMIN, password=PASSWORD)
    )
    url, secure_url = f"ldap://127.0.0.1:{free_port()}", f"ldaps://127.0.0.1:{free_port()}"
    command = [PROGRAM, "-d", "0", "-f", str(configuration), "-h", f"{url}/ {secure_url}/"]
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        command += ["-u", "nobody", "-g", "nogroup"]
    with (folder / "slapd.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _fill(url)
        yield Directory(url, secure_url, authority.file)
    finally:
        process.terminate()
        process.wait(30)


def _fill(url: str) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            connection = ldap3.Connection(url, ADMIN, PASSWORD, auto_bind=True, raise_exceptions=True)
            break
        except ldap3.core.exceptions.LDAPException:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    connection.add(SUFFIX, ["dcObject", "organization"], {"o": "Example", "dc": "example"})
    for unit in ("people", "groups", "guests", "devices", "staff"):
        connection.add(f"ou={unit},{SUFFIX}", "organizationalUnit")
    people = {name: f"uid={ldap3.utils.dn.escape_rdn(name)},ou=people,{SUFFIX}" for name in ("ann", "bob", "o'hara, (jo)*")}
    for name, dn in people.items():
        connection.add(dn, "inetOrgPerson", {"uid": name, "cn": name, "sn": name, "userPassword": PASSWORD})
    connection.add(f"uid=ann,ou=guests,{SUFFIX}", "inetOrgPerson", {"uid": "guest", "cn": "ann", "sn": "ann", "userPassword": PASSWORD})
    connection.add(f"cn=root,ou=staff,{SUFFIX}", "inetOrgPerson", {"uid": "carl", "cn": "root", "sn": "carl", "userPassword": PASSWORD})
    connection.add(f"cn=root,ou=devices,{SUFFIX}", ["device", "simpleSecurityObject"], {"cn": "root", "userPassword": PASSWORD})
    for name, members in {"analysts": ["ann"], "staff": ["ann", "bob"]}.items():
        connection.add(f"cn={name},ou=groups,{SUFFIX}", "groupOfNames", {"member": [people[each] for each in members]})
    connection.unbind()

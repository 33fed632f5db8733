"""Declare every setting: its type, default, one line of documentation and the names that Hive has for it.

A default that depends on the machine or on another setting is filled in when the object is made. Never reads a file. It is one long
list, in the order of docs/settings.md, so that a setting is found, and added, in one place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from metastore.config.values import ConfigError, Value, render
from metastore.secrecy import names_secret, without_passwords


@dataclass(frozen=True)
class Setting:
    """The declaration of one setting: all facts except its value."""

    name: str
    default: Value
    doc: str
    hive: tuple[str, ...] = ()
    """Hive's names for it; the first is the one that documentation uses."""
    unit: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    secret: bool = False
    group: str = ""

    @property
    def environment(self) -> str:
        return f"METASTORE_{self.name.upper()}"


def _hive(name: str) -> tuple[str, ...]:
    """Return both names of a property that Hive 3 renamed by dropping the prefix `hive.`."""
    return (f"hive.{name}", name)


def _setting(
    default: Any,
    doc: str,
    hive: tuple[str, ...] = (),
    *,
    unit: str = "",
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    secret: bool = False,
    factory: Callable[[], Any] | None = None,
) -> Any:
    """Declare a field. `default` is the documented default; `factory` makes the value of a mapping."""
    metadata = {
        "doc": doc, "hive": hive, "unit": unit, "choices": choices, "minimum": minimum, "secret": secret,
        "default": default,
    }  # fmt: skip
    return field(default_factory=factory, metadata=metadata) if factory else field(default=default, metadata=metadata)


def _group(title: str, setting: Any) -> Any:
    """Mark the first setting of a group with the group's title, for the documentation."""
    found = cast("Field[Any]", setting)
    found.metadata = {**found.metadata, "group": title}  # type: ignore[assignment]
    return setting


@dataclass(frozen=True)
class Config:
    """Every setting of the server; `sources` has the source of each value, `other` the foreign Hive properties."""

    host: str = _group(
        "Address and wire",
        _setting(
            "127.0.0.1",
            "Address to listen on.",
            (*_hive("metastore.thrift.bind.host"), "metastore.thrift.host"),
        ),
    )
    port: int = _setting(
        9083,
        "Port to listen on; 0 takes a free one, which the line `ready` in the log names.",
        (*_hive("metastore.port"), "metastore.thrift.port"),
        minimum=0,
    )
    admin_port: int = _setting(
        0, "Port at which the HTTP pages (probes, metrics, console) are served as well, without Thrift; 0 opens none.", minimum=0
    )
    admin_host: str = _setting("", "Address of `admin_port`; unset: the address of `host`.")
    workers: int = _setting(0, "Worker processes that share the port; 0 starts one for each core.", minimum=0)
    max_message_size: int = _setting(
        100 << 20,
        "Largest request; a larger one is refused and its connection closed.",
        _hive("metastore.server.max.message.size"),
        unit="bytes",
        minimum=1024,
    )
    max_container_size: int = _setting(
        10_000_000,
        "Most elements of a list, set or map in a request.",
        minimum=1,
    )
    idle_timeout: float = _setting(
        3600.0,
        "Closes a connection that has been silent for this long; clients connect again.",
        unit="s",
        minimum=1,
    )
    connection_lifetime: float = _setting(
        0.0,
        "Closes a connection this long after its login, between two calls, even if it is busy: its client logs in again, unless its "
        "user has been locked. 0 closes none.",
        unit="s",
        minimum=0,
    )
    drain_timeout: float = _setting(
        30.0,
        "How long running calls may still take after SIGTERM.",
        unit="s",
        minimum=0,
    )
    drain_notice: float = _setting(
        0.0,
        "How long after SIGTERM connections are still accepted while `/readyz` answers 503, so that balancers send clients elsewhere.",
        unit="s",
        minimum=0,
    )
    tls_certificate: str | None = _setting(None, "PEM file of the server's certificate chain; switches TLS on.")
    tls_key: str | None = _setting(None, "PEM file of the certificate's key; unset: it is in `tls_certificate`.")
    tls_client_ca: str | None = _setting(
        None, "PEM file of the authorities whose client certificates are accepted; unset: none is requested."
    )
    tls_client_crl: str | None = _setting(
        None,
        "PEM file of the lists of revoked certificates (CRL) of the authorities in `tls_client_ca`. Clients of an authority whose "
        "list is missing or out of date are refused. Unset: certificates are accepted until they expire.",
    )
    tls_required: bool = _setting(True, "With `tls_certificate`: refuses connections without TLS.")
    http_path: str = _setting(
        "/metastore",
        "Path at which Thrift over HTTP is served, on the same port.",
        _hive("metastore.server.thrift.http.path"),
    )
    hsts_age: float = _setting(
        0.0,
        "How long browsers that have connected by TLS must use only TLS for this host (`Strict-Transport-Security`), on all of its "
        "ports, those of other servers too; 0 does not send the header.",
        unit="s",
        minimum=0,
    )
    console: bool = _setting(True, "Serves the web console at `/ui` and `/api/v1` where `metastore[console]` is installed.")

    authentication: tuple[str, ...] = _group(
        "Authentication",
        _setting(
            (),
            "Accepted logins: any of `kerberos`, `token`, `ldap`, `users`, `jwt`, `certificate`, and `anonymous` for clients without a "
            "login. Unset: `anonymous`, which must be set explicitly unless the address is this machine's alone.",
            choices=("kerberos", "token", "ldap", "users", "jwt", "certificate", "anonymous"),
        ),
    )
    proxy_users: Mapping[str, Any] = _setting(
        {},
        "Users who may act for others, such as `{trino = {hosts = '10.0.0.0/8', groups = 'analysts'}}`; "
        "keys `hosts`, `users` and `groups`, `*` for all. "
        "Hadoop's `hadoop.proxyuser.NAME.hosts` and so on count too.",
        factory=dict,
    )
    set_ugi_mismatch: str = _setting(
        "refuse",
        "Treatment of a `set_ugi` that names neither the user of the login nor one for whom that user may act: `refuse` answers an error, "
        "`ignore` logs it.",
        choices=("refuse", "ignore"),
    )
    group_mapping: str = _setting(
        "none",
        "Source of the groups of a user whose login brings none: `system` asks the operating system.",
        choices=("none", "system"),
    )
    login_failures: int = _setting(
        100,
        "Most wrong passwords from one address (IPv6: from the first 64 bits of one) within `login_failures_period`, for all users "
        "together. After that, a worker checks no more passwords from there, except keys and passwords of users who logged in from there "
        "within a day. Successful logins do not count. 0 sets no limit: use it where all clients have the address of one proxy.",
        minimum=0,
    )
    login_failures_period: float = _setting(600.0, "Period in which `login_failures` are counted.", unit="s", minimum=1)
    certificate_user: str = _setting(
        "cn",
        "Which name of a client's certificate is the user: the subject's common name, its whole distinguished name, "
        "or the first alternative name of a kind.",
        choices=("cn", "dn", "dns", "email", "uri"),
    )
    ldap_url: tuple[str, ...] = _setting(
        (), "The directory's servers, `ldaps://HOST` or `ldap://HOST`, tried in turn.", _hive("metastore.authentication.ldap.url")
    )
    ldap_start_tls: bool = _setting(False, "Encrypts connections to `ldap:` servers (StartTLS).")
    ldap_ca: str | None = _setting(None, "PEM file of the authorities of the directory's certificate; unset: the system's.")
    ldap_base_dn: str = _setting("", "Base of searches in the directory.", _hive("metastore.authentication.ldap.baseDN"))
    ldap_domain: str = _setting("", "Users bind as `NAME@DOMAIN` (Active Directory).", _hive("metastore.authentication.ldap.Domain"))
    ldap_user_dn_pattern: str = _setting(
        "",
        "Users' distinguished names, such as `uid=%s,ou=people,dc=example`, where `%s` is the name; several are separated by colons.",
        _hive("metastore.authentication.ldap.userDNPattern"),
    )
    ldap_group_dn_pattern: str = _setting("", "The same for groups.", _hive("metastore.authentication.ldap.groupDNPattern"))
    ldap_user_filter: tuple[str, ...] = _setting((), "Users who may log in; unset: all.", _hive("metastore.authentication.ldap.userFilter"))
    ldap_group_filter: tuple[str, ...] = _setting(
        (), "Groups: a user must be in at least one of them; unset: no group is needed.", _hive("metastore.authentication.ldap.groupFilter")
    )
    ldap_guid_key: str = _setting("uid", "The attribute with a user's name.", _hive("metastore.authentication.ldap.guidKey"))
    ldap_group_membership_key: str = _setting(
        "member", "A group's attribute with its members.", _hive("metastore.authentication.ldap.groupMembershipKey")
    )
    ldap_user_membership_key: str = _setting(
        "",
        "A user's attribute with the user's groups, such as `memberOf`; unset: groups are searched by their members.",
        _hive("metastore.authentication.ldap.userMembershipKey"),
    )
    ldap_group_class_key: str = _setting(
        "groupOfNames", "The object class of groups.", _hive("metastore.authentication.ldap.groupClassKey")
    )
    ldap_custom_query: str = _setting(
        "",
        "Filter of a search that replaces `ldap_user_filter` and `ldap_group_filter`: the entries that it finds, and their members, "
        "may log in.",
        _hive("metastore.authentication.ldap.customLDAPQuery"),
    )
    ldap_user_search_filter: str = _setting(
        "", "Filter to find a user; `{0}` is the name.", _hive("metastore.authentication.ldap.userSearchFilter")
    )
    ldap_group_base_dn: str = _setting(
        "", "Base of searches for groups; unset: `ldap_base_dn`.", _hive("metastore.authentication.ldap.groupBaseDN")
    )
    ldap_group_search_filter: str = _setting(
        "",
        "Filter to find a user's groups; `{0}` is the user's distinguished name and `{1}` the name.",
        _hive("metastore.authentication.ldap.groupSearchFilter"),
    )
    ldap_bind_dn: str = _setting("", "The account for searches; unset: each user's own.", _hive("metastore.authentication.ldap.binddn"))
    ldap_bind_password: str | None = _setting(None, "Its password.", _hive("metastore.authentication.ldap.bindpw"), secret=True)
    jwt_jwks_urls: tuple[str, ...] = _setting(
        (),
        "URLs of the keys of tokens, `https:` or `file:`; unset: from the issuers' OpenID configuration.",
        _hive("metastore.authentication.jwt.jwks.url"),
    )
    jwt_issuers: tuple[str, ...] = _setting(
        (), "Accepted issuers of tokens (`iss`), each with the keys of the URL at the same position in `jwt_jwks_urls`; unset: any."
    )
    jwt_audiences: tuple[str, ...] = _setting((), "Accepted audiences of tokens (`aud`); unset: any.")
    jwt_user_claim: str = _setting("sub", "The claim of a token that names the user.")
    jwt_groups_claim: str = _setting("", "The claim that names the user's groups, as a list or a text with spaces or commas; unset: none.")
    kerberos_principal: str | None = _setting(
        None,
        "The server's Kerberos principal, `service/host@REALM`; `_HOST` stands for this host's full name.",
        _hive("metastore.kerberos.principal"),
    )
    kerberos_keytab: str | None = _setting(
        None,
        "File with the principal's key; it is read again for each login.",
        (*_hive("metastore.kerberos.keytab.file"), "metastore.kerberos.keytab"),
    )
    kerberos_name_rules: str = _setting(
        "DEFAULT",
        "Rules that make a user's short name from a principal; `DEFAULT` takes the first part in the realm of `kerberos_principal`.",
        ("hadoop.security.auth_to_local",),
    )
    sasl_protection: tuple[str, ...] = _setting(
        ("authentication",),
        "Protection of messages after a login by Kerberos or token: `authentication` (none), `integrity`, `privacy` (encryption); the "
        "client chooses among several.",
        ("hadoop.rpc.protection",),
        choices=("authentication", "integrity", "privacy"),
    )
    delegation_token_max_lifetime: float = _setting(
        7 * 86400.0,
        "How long a delegation token can be renewed.",
        ("hive.cluster.delegation.token.max-lifetime", "metastore.cluster.delegation.token.max-lifetime"),
        unit="s",
        minimum=1,
    )
    delegation_token_renew_interval: float = _setting(
        86400.0,
        "How long a delegation token is valid without a renewal; one whose renewer is the server itself needs none.",
        ("hive.cluster.delegation.token.renew-interval", "metastore.cluster.delegation.token.renew-interval"),
        unit="s",
        minimum=1,
    )
    delegation_token_clean_interval: float = _setting(
        3600.0,
        "How often delegation tokens that can no longer be renewed are removed; 0 never.",
        ("hive.cluster.delegation.token.gc-interval", "metastore.cluster.delegation.token.gc-interval"),
        unit="s",
        minimum=0,
    )
    delegation_token_store_users: tuple[str, ...] = _setting(
        (),
        "Users, such as HiveServer2's, who may store the tokens and master keys of their own server here (`add_token`, `get_master_keys` "
        "...). With these, their holder can act for anybody at that server. Unset: nobody.",
    )

    data_directory: str = _group(
        "State",
        _setting(
            "",
            "Folder of the embedded database, the default warehouse and the journals. "
            "Unset: `metastore` in the user's data folder (`$XDG_DATA_HOME`, else `~/.local/share`).",
        ),
    )
    db: str = _setting(
        "",
        "SQLAlchemy URL of the database: `sqlite:///FILE`, `postgresql://USER:PASSWORD@HOST/NAME` or "
        "`mysql://USER:PASSWORD@HOST/NAME`. Unset: the SQLite file `metastore.db` in `data_directory`. "
        "Behind PgBouncer with `pool_mode=transaction`: `postgresql://..?prepared_statements=false`.",
        secret=True,
    )
    db_read: str = _setting(
        "",
        "URL of a replica of a PostgreSQL `db`: it serves reads of the catalog while it is recent enough. A client that has changed "
        "something reads from `db` for as long as `db_read_staleness`.",
        secret=True,
    )
    db_read_staleness: float = _setting(
        5.0,
        "Largest age of data read from `db_read`; a replica with a larger delay is not read from.",
        unit="s",
        minimum=1,
    )
    database_pool_size: int = _setting(
        10,
        "Most connections of one worker to the database.",
        ("datanucleus.connectionPool.maxPoolSize",),
        minimum=1,
    )

    warehouse: str = _group(
        "Warehouse",
        _setting(
            "",
            "Root of managed tables, a path or URI. Unset: the folder `warehouse` in `data_directory`.",
            _hive("metastore.warehouse.dir"),
        ),
    )
    external_warehouse: str | None = _setting(
        None,
        "Root of external tables without a location; unset: below `warehouse`.",
        _hive("metastore.warehouse.external.dir"),
    )
    filesystem_options: Mapping[str, Any] = _setting(
        {},
        'fsspec options by scheme, such as `{s3 = {endpoint_url = "http://127.0.0.1:9000"}}`; `s3a` and `s3n` use those of `s3`.',
        secret=True,
        factory=dict,
    )
    directory_threads: int = _setting(
        16,
        "Threads of one worker that make or remove directories at the same time.",
        _hive("metastore.fshandler.threads"),
        minimum=1,
    )
    warehouse_timeout: float = _setting(
        30.0,
        "How long a request to a remote file system may take; listing, copying and deleting many files may take ten times as "
        "long. A file system that did not answer is not asked again for ten seconds. Local files have no limit but the system's.",
        unit="s",
    )
    accept_moved_directories: bool = _setting(
        False,
        "Treats a missing directory as moved if it exists at the location to which a rename or an exchange would move it. For a trial "
        "beside another metastore that executes the same changes in the same warehouse, as with `metastore shadow --send-changes`.",
    )
    trash_interval: int = _setting(
        0,
        "Minutes that dropped data stays in the trash; 0 deletes it at once. The server never empties the trash.",
        ("fs.trash.interval",),
        unit="min",
        minimum=0,
    )

    default_catalog: str = _group(
        "Tables and partitions",
        _setting(
            "hive",
            "Catalog of requests that name none.",
            ("metastore.catalog.default",),
        ),
    )
    table_translation: str = _setting(
        "legacy",
        "`legacy` stores the requested table type, as Hive 3.1 does; `strict` turns managed tables that are not transactional into "
        "external ones, as Hive 4 does.",
        choices=("legacy", "strict"),
    )
    translated_location: str = _setting(
        "force",
        "Location of a translated table (`strict`) whose default directory exists already: that directory (`force`) or a numbered one "
        "(`seqsuffix`, `seqprefix`); `prohibit` refuses the table.",
        ("metastore.metadata.transformer.location.mode",),
        choices=("force", "seqsuffix", "seqprefix", "prohibit"),
    )
    create_as_acid: bool = _setting(
        False,
        "Makes new managed tables transactional where their format allows it.",
        ("metastore.create.as.acid", "hive.create.as.acid"),
    )
    client_capability_check: bool = _setting(
        True,
        "Refuses a table to clients that do not declare that they can read its kind.",
        _hive("metastore.client.capability.check"),
    )
    full_acid_check: bool = _setting(
        True,
        "Refuses a full ACID table to clients that name no capability, such as Spark's own SQL, which would show some of its rows or none "
        "and write files beside its own. Also refuses to create a transactional table for such a Spark. Tables that Hive 2.3 creates are "
        "returned to all.",
    )
    disallow_incompatible_col_type_changes: bool = _setting(
        True,
        "Refuses to alter a column to an incompatible type. Iceberg, Delta, Hudi and Paimon tables are exempt.",
        _hive("metastore.disallow.incompatible.col.type.changes"),
    )
    allow_incompatible_col_type_changes_serdes: tuple[str, ...] = _setting(
        ("org.apache.hadoop.hive.kudu.KuduSerDe", "org.apache.iceberg.mr.hive.HiveIcebergSerDe"),
        "Serdes of tables that are exempt from `disallow_incompatible_col_type_changes`, as in Hive 4.",
        _hive("metastore.allow.incompatible.col.type.changes.serdes"),
    )
    special_characters_in_table_names: bool = _setting(
        True,
        "Allows characters other than letters, digits and `_` in names of databases and tables, as Hive 4 does. Hive 3's own client can "
        "not use them in any case, as with its own server.",
        ("hive.support.special.characters.tablename", "metastore.support.special.characters.tablename"),
    )
    default_partition_name: str = _setting(
        "__HIVE_DEFAULT_PARTITION__",
        "Text in a partition's name for a null or empty value.",
        ("hive.exec.default.partition.name", "metastore.default.partition.name"),
    )
    partition_name_whitelist: str = _setting(
        "",
        "Regular expression that every partition value must match as a whole; unset: any value.",
        _hive("metastore.partition.name.whitelist.pattern"),
    )
    limit_partition_request: int = _setting(
        -1,
        "Most partitions that one request may ask for; -1 sets no limit.",
        _hive("metastore.limit.partition.request"),
        minimum=-1,
    )
    batch_retrieve_max: int = _setting(
        300,
        "Most objects that a client should request at once; only returned to clients.",
        _hive("metastore.batch.retrieve.max"),
        minimum=1,
    )
    stats_autogather: bool = _setting(
        True,
        "Counts the files and bytes of a table or partition when it is created or altered.",
        ("hive.stats.autogather", "metastore.stats.autogather"),
    )
    expression_proxy: str = _setting(
        "PartitionExpressionForMetastore",
        "Reads the partition expressions that Hive serialises; `DefaultPartitionExpressionProxy` refuses them, as Hive's metastore "
        "without its query engine does. Hive's class names are accepted for either.",
        (*_hive("metastore.expression.proxy"), "metastore.expression.proxy.class"),
    )
    wm_default_pool_size: int = _setting(
        4,
        "Queries at a time in the pool `default` of a new resource plan without a parallelism; 0 creates plans without a pool.",
        ("metastore.wm.default.pool.size", "hive.metastore.wm.default.pool.size"),
        minimum=0,
    )

    admin_users: tuple[str, ...] = _group(
        "Users",
        _setting(
            (),
            "Users who are in the role `admin`.",
            ("hive.users.in.admin.role", "metastore.users.in.admin.role"),
        ),
    )

    authorization: str = _setting(
        "none",
        "Source of decisions about users' accesses: `none` allows everybody everything, `grants` uses the stored roles and privileges, "
        "`file` uses `authorization_file`, `opa` and `ranger` ask the server at `authorization_url`; or a class, as "
        "`package.module:Class`.",
    )

    authorization_file: str | None = _setting(
        None, "File of rules in the form of Trino's file-based access control; it is read again when it changes."
    )
    authorization_url: str | None = _setting(
        None, "URL of the rules of `opa` (`http://opa:8181/v1/data/hms`), or of the policy decision point of `ranger` (`http://pdp:6500`)."
    )
    authorization_token: str | None = _setting(None, "Bearer token that is sent to `authorization_url`.", secret=True)
    authorization_timeout: float = _setting(
        2.0, "Longest wait for an answer of `authorization_url`; without an answer nothing is allowed.", unit="s", minimum=0.01
    )
    authorization_cache: float = _setting(5.0, "How long answers of `authorization_url` are cached; 0 asks each time.", unit="s", minimum=0)
    ranger_service: str = _setting("hive", "Name of the service in Ranger with the policies for `ranger`.")

    txn_timeout: float = _group(
        "Transactions and locks",
        _setting(
            300.0,
            "A transaction without a heartbeat for this long is aborted, a lock released.",
            ("hive.txn.timeout", "metastore.txn.timeout"),
            unit="s",
            minimum=0.001,
        ),
    )
    repl_txn_timeout: float = _setting(
        11 * 86400.0,
        "The same for transactions that replication opened.",
        ("hive.repl.txn.timeout", "metastore.repl.txn.timeout"),
        unit="s",
        minimum=0.001,
    )
    txn_reaper_interval: float = _setting(
        60.0,
        "How often transactions and locks without heartbeats are searched for.",
        ("metastore.acid.housekeeper.interval", "hive.metastore.acid.housekeeper.interval", "hive.timedout.txn.reaper.interval"),
        unit="s",
        minimum=0.1,
    )
    txn_max_open_batch: int = _setting(
        1000,
        "Most transactions that one request opens; a larger request gets only this many.",
        ("hive.txn.max.open.batch", "metastore.txn.max.open.batch"),
        minimum=1,
    )
    txn_max_open: int = _setting(
        100_000,
        "Most open transactions; further ones are refused.",
        ("hive.max.open.txns", "metastore.max.open.txns"),
        minimum=1,
    )

    compactor_initiator: bool = _group(
        "Compaction",
        _setting(
            True,
            "Queues compactions of transactional tables when they are due.",
            ("hive.compactor.initiator.on", "metastore.compactor.initiator.on"),
        ),
    )
    compactor_cleaner: bool = _setting(
        True,
        "Deletes files that a compaction replaced or an aborted transaction left, once nobody reads them.",
        ("metastore.compactor.cleaner.on", "hive.compactor.cleaner.on"),
    )
    compactor_housekeeper: bool = _setting(
        True,
        "Takes entries back from silent workers and removes old entries of the history.",
        ("metastore.compactor.housekeeper.on",),
    )
    compactor_check_interval: float = _setting(
        300.0,
        "How often tables are checked for due compactions, and for files of aborted transactions.",
        ("hive.compactor.check.interval", "metastore.compactor.check.interval"),
        unit="s",
        minimum=0.1,
    )
    compactor_cleaner_interval: float = _setting(
        5.0,
        "How often the queue is checked for files to delete.",
        ("hive.compactor.cleaner.run.interval", "metastore.compactor.cleaner.run.interval"),
        unit="s",
        minimum=0.1,
    )
    compactor_housekeeper_interval: float = _setting(
        120.0,
        "How often the history and the workers are checked.",
        ("hive.compactor.history.reaper.interval", "metastore.compactor.history.reaper.interval"),
        unit="s",
        minimum=0.1,
    )
    compactor_worker_threads: int = _setting(
        0,
        "Processes of this machine that compact full-ACID and insert-only ORC tables, beside the server and without Spark; see "
        "[Compaction](compaction.md). Each takes one compaction at a time. They need `pip install '.[streaming]'`: without it the server "
        "does not start. If the setting was given by Hive's name, as in a file that HiveServer2 reads too, it warns and compacts nothing.",
        ("hive.compactor.worker.threads", "metastore.compactor.worker.threads"),
        minimum=0,
    )
    compactor_worker_memory: int = _setting(
        1 << 30,
        "Resident memory of such a process; a compaction that needs more is put back for a worker on Spark.",
        unit="bytes",
        minimum=128 << 20,
    )
    compactor_worker_timeout: float = _setting(
        600.0,
        "A worker loses its entry when it and its transaction have been silent for this long.",
        ("hive.compactor.worker.timeout", "metastore.compactor.worker.timeout"),
        unit="s",
        minimum=0.001,
    )
    compactor_pool_timeout: float = _setting(
        43200.0,
        "An entry of a pool that has waited for this long is also given to workers without a pool.",
        ("hive.compactor.worker.pool.timeout", "metastore.compactor.worker.pool.timeout"),
        unit="s",
        minimum=0,
    )
    compactor_delta_number: int = _setting(
        10,
        "More deltas than this in a table or partition are compacted.",
        ("hive.compactor.delta.num.threshold",),
        minimum=0,
    )
    compactor_delta_ratio: float = _setting(
        0.1,
        "Deltas of more than this share of the base's size are compacted with it.",
        ("hive.compactor.delta.pct.threshold",),
        minimum=0,
    )
    compactor_aborted_number: int = _setting(
        1000,
        "Cleans up a table or partition once more than this many aborted transactions wrote to it.",
        ("hive.compactor.abortedtxn.threshold",),
        minimum=0,
    )
    compactor_aborted_age: float = _setting(
        43200.0,
        "Files of an aborted transaction are cleaned up when it began at least this long ago.",
        ("hive.compactor.aborted.txn.time.threshold",),
        unit="s",
        minimum=0,
    )
    compactor_failures: int = _setting(
        2,
        "After this many failures in a row no further compaction of a table or partition is queued; 0 never gives up.",
        ("hive.compactor.initiator.failed.compacts.threshold", "metastore.compactor.initiator.failed.compacts.threshold"),
        minimum=0,
    )
    compactor_retry_time: float = _setting(
        604800.0,
        "How long after the last of these failures a compaction is queued again; 0 never.",
        ("hive.compactor.initiator.failed.retry.time", "metastore.compactor.initiator.failed.retry.time"),
        unit="s",
        minimum=0,
    )
    compactor_cleaner_retries: int = _setting(
        5,
        "How often a cleaning that failed is tried again before the compaction counts as failed.",
        ("hive.compactor.cleaner.retry.maxattempts", "metastore.compactor.cleaner.retry.maxattempts"),
        minimum=0,
    )
    compactor_cleaner_pause: float = _setting(
        300.0,
        "How long after its failure a cleaning is tried again; doubled each time.",
        (
            "hive.compactor.cleaner.retry.retentionTime",
            "metastore.compactor.cleaner.retry.retentionTime",
            "hive.compactor.cleaner.retry.retention.time",
        ),
        unit="s",
        minimum=0,
    )
    compactor_history_succeeded: int = _setting(
        3,
        "Succeeded compactions that are kept for each table or partition.",
        ("hive.compactor.history.retention.succeeded", "metastore.compactor.history.retention.succeeded"),
        minimum=0,
    )
    compactor_history_failed: int = _setting(
        3,
        "The same for failed ones; never fewer than `compactor_failures`.",
        ("hive.compactor.history.retention.failed", "metastore.compactor.history.retention.failed"),
        minimum=0,
    )
    compactor_history_did_not_initiate: int = _setting(
        2,
        "The same for those that could not be queued.",
        (
            "hive.compactor.history.retention.did.not.initiate",
            "metastore.compactor.history.retention.did.not.initiate",
            "hive.compactor.history.retention.attempted",
        ),
        minimum=0,
    )
    compactor_history_refused: int = _setting(
        3,
        "The same for refused and aborted ones.",
        ("hive.compactor.history.retention.refused", "metastore.compactor.history.retention.refused"),
        minimum=0,
    )
    compactor_history_time: float = _setting(
        604800.0,
        "Compactions that failed this long ago are removed once a later one succeeded.",
        ("hive.compactor.history.retention.timeout", "metastore.compactor.history.retention.timeout"),
        unit="s",
        minimum=0,
    )

    pre_event_listeners: tuple[str, ...] = _group(
        "Listeners",
        _setting(
            (),
            "Classes, as `package.module:Class`, that are asked before an operation and may refuse it.",
            _hive("metastore.pre.event.listeners"),
        ),
    )
    transactional_listeners: tuple[str, ...] = _setting(
        (),
        "Classes that are notified of a change inside its database transaction.",
        _hive("metastore.transactional.event.listeners"),
    )
    post_event_listeners: tuple[str, ...] = _setting(
        (),
        "Classes that are notified of an operation, done or failed, after its transaction.",
        (*_hive("metastore.event.listeners"),),
    )
    end_function_listeners: tuple[str, ...] = _setting(
        (),
        "Classes that are notified of the end of every call.",
        _hive("metastore.end.function.listeners"),
    )
    init_listeners: tuple[str, ...] = _setting(
        (),
        "Classes that are notified when the server is ready to start.",
        (*_hive("metastore.init.hooks"),),
    )
    notification_log: bool = _setting(True, "Writes an event for every change into the notification log, inside the change's transaction.")
    event_message_format: str = _setting(
        "gzip(json-2.0)",
        "Format of new events' messages: compressed as in Hive 4, plain as in 3, or the name of Hive's class for it.",
        ("metastore.event.message.factory", "hive.metastore.event.message.factory"),
        choices=(
            "gzip(json-2.0)",
            "json-0.2",
            "org.apache.hadoop.hive.metastore.messaging.json.gzip.GzipJSONMessageEncoder",
            "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageEncoder",
            "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageFactory",
        ),
    )
    event_count_to_keep: int = _setting(0, "Most notification events that are kept, the newest; 0 sets no limit.", minimum=0)
    event_time_to_live: float = _setting(
        86400.0,
        "How long notification events are kept.",
        ("hive.metastore.event.db.listener.timetolive", "metastore.event.db.listener.timetolive"),
        unit="s",
        minimum=0,
    )
    event_log_clean_interval: float = _setting(
        7200.0,
        "How often notification events that are too old or too many are removed; 0 never.",
        _hive("metastore.event.db.listener.clean.interval"),
        unit="s",
        minimum=0,
    )
    event_clean_interval: float = _setting(
        0.0,
        "How often expired partition marks are removed; 0 never.",
        _hive("metastore.event.clean.freq"),
        unit="s",
        minimum=0,
    )
    event_expiry: float = _setting(
        0.0,
        "How long partition marks are kept.",
        _hive("metastore.event.expiry.duration"),
        unit="s",
        minimum=0,
    )
    max_event_response: int = _setting(
        1_000_000,
        "Most notification events in one answer.",
        _hive("metastore.max.event.response"),
        minimum=1,
    )

    scheduled_queries: bool = _group(
        "Scheduled queries, and Hive's measurements",
        _setting(
            True,
            "Stores Hive's scheduled queries and hands them out; else their methods are refused.",
            _hive("metastore.scheduled.queries.enabled"),
        ),
    )
    scheduled_query_time_zone: str | None = _setting(
        None,
        "Time zone of schedules (`Europe/Berlin`); unset: the machine's, which has to be the same for all servers of a database.",
    )
    scheduled_query_timeout: float = _setting(
        120.0,
        "An execution whose executor reports nothing for this long has timed out.",
        ("metastore.scheduled.queries.execution.timeout", "hive.metastore.scheduled.queries.progress.timeout"),
        unit="s",
        minimum=0,
    )
    scheduled_query_clean_interval: float = _setting(
        60.0,
        "How often executions without further reports are ended, and old ones removed; 0 never.",
        ("metastore.scheduled.queries.execution.maint.task.frequency", "hive.metastore.scheduled.queries.execution.clean.frequency"),
        unit="s",
        minimum=0,
    )
    scheduled_query_history: float = _setting(
        2_592_000.0,
        "How long ended executions are kept.",
        _hive("metastore.scheduled.queries.execution.max.age"),
        unit="s",
        minimum=0,
    )
    scheduled_query_disable_after: int = _setting(
        0,
        "A query that failed this many times in a row is switched off; 0 switches none off.",
        ("metastore.scheduled.queries.autodisable.count",),
        minimum=0,
    )
    scheduled_query_skip_after: int = _setting(
        0,
        "After n failures in a row the next n-1 runs of a query are skipped; at most this many failures count. 0 skips none.",
        ("metastore.scheduled.queries.skip.opportunities.after.failures",),
        minimum=0,
    )
    runtime_statistics_clean_interval: float = _setting(
        3600.0,
        "How often old runtime statistics are removed; 0 never.",
        _hive("metastore.runtime.stats.clean.frequency"),
        unit="s",
        minimum=0,
    )
    runtime_statistics_age: float = _setting(
        259_200.0, "How long runtime statistics are kept.", _hive("metastore.runtime.stats.max.age"), unit="s", minimum=0
    )
    replication_metrics_clean_interval: float = _setting(
        86_400.0,
        "How often old metrics of replication are removed; 0 never.",
        ("metastore.repl.metrics.cleanup.frequency", "hive.metastore.repl.metrics.cleanup.frequency"),
        unit="s",
        minimum=0,
    )
    replication_metrics_age: float = _setting(
        604_800.0,
        "How long metrics of replication are kept.",
        ("metastore.repl.metrics.max.age", "hive.metastore.repl.metrics.max.age"),
        unit="s",
        minimum=0,
    )

    log_level: str = _group(
        "Log",
        _setting(
            "info",
            "Least level that is logged. SIGUSR2 to the server switches to everything, all calls too, and back.",
            choices=("debug", "info", "warning", "error"),
        ),
    )
    log_format: str = _setting(
        "auto",
        "`json`, `console`, or `auto`: console on a terminal, JSON elsewhere.",
        choices=("auto", "json", "console"),
    )
    log_calls: str = _setting(
        "changes",
        "Logged calls, a line each: `changes`, calls that change something and calls that fail; `failures`, calls that fail; `all`, reads "
        "too.",
        choices=("changes", "failures", "all"),
    )

    metrics_names: tuple[str, ...] = _group(
        "Watching",
        _setting(
            ("metastore",),
            "Names of the metrics at `/metrics`: `metastore` for this server's own, `hive` for Hive's; or both.",
            choices=("metastore", "hive"),
        ),
    )
    slow_call_threshold: float = _setting(
        1.0,
        "A call that takes this long is logged with the parts of its time, and kept for `metastore slow`; 0 keeps none.",
        unit="s",
        minimum=0,
    )

    traces_endpoint: str | None = _setting(
        None,
        "OpenTelemetry collector that gets calls and their SQL, by OTLP over HTTP (`http://collector:4318`); unset: none.",
    )
    traces_ratio: float = _setting(
        1.0, "Share of the traces begun here that are sent; a request that belongs to a trace follows that trace.", minimum=0
    )

    audit_log: str | None = _setting(
        None,
        "File to which each worker appends a line for each call that changes something or was refused; unset: none is written.",
    )
    audit_format: str = _setting(
        "json",
        "Lines of `audit_log`: `json`, or `hive` for readers of the audit log of Hive's metastore.",
        choices=("json", "hive"),
    )

    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The source of each value that is not the default, by setting."""
    hive: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The source of each property under a name of Hive's, in the order in which they were given; `hive_properties` judges them."""
    other: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values of Hive's properties that the server does not use, by name: clients may ask for them."""
    warnings: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Ignored settings with the reason, one line each."""

    def __post_init__(self) -> None:
        if not self.data_directory:
            home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
            object.__setattr__(self, "data_directory", str(Path(home) / "metastore"))
        if not self.db:
            object.__setattr__(self, "db", f"sqlite:///{Path(self.data_directory).absolute() / 'metastore.db'}")
        if not self.warehouse:
            object.__setattr__(self, "warehouse", str(Path(self.data_directory).absolute() / "warehouse"))
        for setting in settings():
            check(setting, getattr(self, setting.name))
        if self.scheduled_query_time_zone is not None:
            _check_zone(self.scheduled_query_time_zone)

    def source(self, name: str) -> str:
        """Return the source of the value of a setting."""
        return self.sources.get(name, "default")

    def has_hives_name(self, name: str) -> bool:
        """Return whether the value of a setting was given under a name of Hive's, such as in a file that Hive reads too."""
        source = self.sources.get(name)
        return source is not None and any(self.hive.get(each) == source for each in by_name()[name].hive)

    def is_secret(self, name: str) -> bool:
        """Return whether the value of a property is a secret: by its setting, or by its name where it is not a setting."""
        setting = by_name().get(name)
        return names_secret(name) if setting is None else setting.secret

    def hive_value(self, name: str, default: str | None = None) -> str | None:
        """Return the value of a property by any of Hive's names or ours, as text; `default` for a secret, and without a value."""
        if self.is_secret(name):
            return default
        setting = by_name().get(name)
        if setting is not None:
            value = render(getattr(self, setting.name), setting.unit)
            return default if value is None else value
        sibling = name[5:] if name.startswith("hive.metastore.") else f"hive.{name}"
        return self.other.get(name, self.other.get(sibling, default))


def check(setting: Setting, value: Value) -> None:
    """Raise ConfigError when a value, or one of a list, is not among the setting's choices, or below its minimum."""
    for each in value if isinstance(value, tuple) else (value,):
        if setting.choices and each not in setting.choices:
            raise ConfigError(f"setting {setting.name}: {each!r} is none of {', '.join(setting.choices)}")
    if setting.minimum is not None and isinstance(value, int | float) and value < setting.minimum:
        raise ConfigError(f"setting {setting.name}: {value:g} is less than {setting.minimum:g}, the least allowed")


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise ConfigError(f"setting scheduled_query_time_zone: there is no time zone {name!r}; write one such as Europe/Berlin") from error


@cache
def settings() -> tuple[Setting, ...]:
    """Return every setting in the order of its declaration."""
    return tuple(Setting(name=found.name, **found.metadata) for found in fields(Config) if "doc" in found.metadata)


@cache
def by_name() -> Mapping[str, Setting]:
    """Return the settings by our name and by each of Hive's."""
    return {name: setting for setting in settings() for name in (setting.name, *setting.hive)}


def shown(config: Config, setting: Setting) -> str:
    """Return a setting's value as people may see it: no secret, and of a URL no password."""
    value = getattr(config, setting.name)
    if setting.secret and value and setting.name != "db":
        return "(not shown)"
    return without_passwords(render(value, setting.unit) or "")

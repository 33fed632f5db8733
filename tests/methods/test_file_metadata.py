"""Methods for metadata of files. This server does not keep such metadata, and its replies report that."""

from __future__ import annotations

from pathlib import Path

from metastore import idl
from metastore.client import connect
from tests.support.servers.servers import serving


def test_no_metadata_of_files_is_kept_and_replies_report_that(tmp_path: Path) -> None:
    with serving("--warehouse", str(tmp_path / "warehouse"), home=tmp_path) as server, connect(server.uri) as client:
        client.put_file_metadata(idl.PutFileMetadataRequest(fileIds=[1], metadata=[b"footer"]))
        found = client.get_file_metadata(idl.GetFileMetadataRequest(fileIds=[1]))
        assert (found.metadata, found.isSupported) == ({}, False)
        chosen = client.get_file_metadata_by_expr(idl.GetFileMetadataByExprRequest(fileIds=[1], expr=b"x"))
        assert (chosen.metadata, chosen.isSupported) == ({}, False)
        assert client.clear_file_metadata(idl.ClearFileMetadataRequest(fileIds=[1])) == idl.ClearFileMetadataResult()
        assert client.cache_file_metadata(idl.CacheFileMetadataRequest(dbName="default", tblName="none")).isSupported is False

"""Records of any metastore that speaks Thrift, of Hive 2.3 to 4.x."""

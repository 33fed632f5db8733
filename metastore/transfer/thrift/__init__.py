"""Records of any metastore with the Thrift interface, of Hive 2.3 to 4.x."""

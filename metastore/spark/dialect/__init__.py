"""SQL over transactional tables in a session of Spark: statements are read by Spark's own parser, and those that are Hive's alone by ours.

A statement that names no transactional table goes to Spark as it is.
"""

"""SQL over transactional tables in a session of Spark: statements are read by Spark's own parser, and statements of Hive alone by this
package.

A statement that names no transactional table is passed to Spark unchanged.
"""

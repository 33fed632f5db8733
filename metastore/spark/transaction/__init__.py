"""A transaction of a Spark program, and the frames that read within one."""

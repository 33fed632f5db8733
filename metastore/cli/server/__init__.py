"""Commands that start a server or look after one."""

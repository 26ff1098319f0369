"""Jobs: runs that the server keeps in a database and goes on with after a restart."""

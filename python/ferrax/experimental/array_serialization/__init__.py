"""Arrays in files of many processes: not provided; the module can be imported. One array goes to a file by NumPy."""

"""A project that lasts: a folder with its settings in one file, and every version of its consensus."""

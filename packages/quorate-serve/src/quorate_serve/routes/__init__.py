"""What a browser or a program can ask for, a module a page or resource."""

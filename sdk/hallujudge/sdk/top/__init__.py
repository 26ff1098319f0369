"""`hallujudge top`: a server at work, in the terminal."""

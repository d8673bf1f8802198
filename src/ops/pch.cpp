// Only here to give the shared precompiled header an object library to live in.

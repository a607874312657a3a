"""Engine compilers and runtimes. The only layer that imports vendor SDKs, lazily."""

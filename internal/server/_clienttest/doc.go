// Package clienttest holds the server against openai-go, as its users call it.
// It is a module of its own, so that nothing else depends on that client: run
// its tests with "go test" in this folder. They start a server with a tiny
// model; with INFERFLOW_URL (http://host:port/v1) and INFERFLOW_MODEL those that
// suit any model run against that server. It must never be imported. Read
// client_test.go first.
package clienttest

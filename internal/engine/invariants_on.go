//go:build invariants

package engine

// invariants switches the check of all key/value blocks after each step on
// (build with -tags invariants).
const invariants = true

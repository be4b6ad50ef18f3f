//go:build !linux

package main

// dieWithParent does nothing where the kernel has no such signal: there a killed test leaves
// its servers running.
func dieWithParent() error {
	return nil
}

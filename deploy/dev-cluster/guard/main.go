// Command guard turns itself into another program that the kernel kills as soon as the process
// that started it dies. A test that is killed thus leaves no server behind, not even a stopped
// one (SIGSTOP), which would read neither a signal nor the end of its input.
//
// usage: guard <pid of the starter> <absolute path of a program> [argument ...]
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 3 {
		return fmt.Errorf("usage: guard <pid of the starter> <program> [argument ...]")
	}
	starter, err := strconv.Atoi(arguments[1])
	if err != nil {
		return fmt.Errorf("%q is no process id", arguments[1])
	}
	if err := dieWithParent(); err != nil {
		return fmt.Errorf("cannot bind to the starter's life: %w", err)
	}
	if os.Getppid() != starter {
		return fmt.Errorf("process %d has ended already", starter)
	}
	program := arguments[2]
	if err := syscall.Exec(program, arguments[2:], os.Environ()); err != nil {
		return fmt.Errorf("cannot run %q: %w", program, err)
	}
	return nil
}
